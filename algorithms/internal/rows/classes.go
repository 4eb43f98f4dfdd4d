package rows

import (
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// MaxClasses is the largest number of classes that a ClassLabel may have.
const MaxClasses = 100_000

// Dictionary holds the distinct values of a column, such as the classes, in ascending order of
// their keys. The order of the keys' bytes is the order of the values. Weight and Count are nil
// if they are not needed.
type Dictionary struct {
	Keys   []string
	Texts  []string  // the values as messages and models write them; nil if they are not needed or equal to Keys
	Weight []float64 // total weight of the rows that have the value
	Count  []int64   // number of rows of positive weight that have the value
}

// Merge returns the dictionary of the values of d and o, and modifies neither of the two. It
// keeps only the first limit+1 values, which suffice to detect that there are more than limit
// values.
func (d Dictionary) Merge(o Dictionary, limit int) Dictionary {
	if len(d.Keys) == 0 {
		return o
	}
	if len(o.Keys) == 0 {
		return d
	}
	var all Dictionary
	take := func(from *Dictionary, k *int) {
		all.Keys = append(all.Keys, from.Keys[*k])
		if from.Texts != nil {
			all.Texts = append(all.Texts, from.Texts[*k])
		}
		if from.Weight != nil {
			all.Weight = append(all.Weight, from.Weight[*k])
		}
		if from.Count != nil {
			all.Count = append(all.Count, from.Count[*k])
		}
		*k++
	}
	i, j := 0, 0
	for (i < len(d.Keys) || j < len(o.Keys)) && len(all.Keys) <= limit {
		switch {
		case j == len(o.Keys) || i < len(d.Keys) && d.Keys[i] < o.Keys[j]:
			take(&d, &i)
		case i == len(d.Keys) || o.Keys[j] < d.Keys[i]:
			take(&o, &j)
		default:
			take(&d, &i)
			last := len(all.Keys) - 1
			if o.Weight != nil {
				all.Weight[last] += o.Weight[j]
			}
			if o.Count != nil {
				all.Count[last] += o.Count[j]
			}
			j++
		}
	}
	return all
}

// Number returns the index of the value with the given key, or −1 if there is no such value.
func (d Dictionary) Number(key string) int {
	i := sort.SearchStrings(d.Keys, key)
	if i < len(d.Keys) && d.Keys[i] == key {
		return i
	}
	return -1
}

// Text returns value i as messages and models write it.
func (d Dictionary) Text(i int) string {
	if d.Texts != nil {
		return d.Texts[i]
	}
	return d.Keys[i]
}

// isText reports whether a column is text or binary. The keys of its classes are then the bytes
// of the values.
func isText(column arrow.Array) bool {
	switch column.(type) {
	case *array.String, *array.Binary:
		return true
	}
	return false
}

// textOf returns the bytes of value i of a column of text or binary. ok is false for other
// columns.
func textOf(column arrow.Array, i int) (string, bool) {
	switch arr := column.(type) {
	case *array.String:
		return arr.Value(i), true
	case *array.Binary:
		return string(arr.Value(i)), true
	}
	return "", false
}

// KeyOf returns the key in a Dictionary for a code of ClassCodes.
func KeyOf(code uint64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], code)
	return string(b[:])
}

// ClassText returns value i of a column of classes, as messages and models write the class.
func ClassText(column arrow.Array, i int) string {
	text := batch.FormatValue(column, i)
	if text == "-0" && isFloat(column.DataType()) {
		return "0"
	}
	return text
}

// classesOf returns the classes of the labels of a shard. If weight is nil, all weights are 1.
func classesOf(column arrow.Array, weight []float64) (Dictionary, error) {
	type class struct {
		first  int // the first row of the class
		weight float64
	}
	var all []class
	var keys []string
	note := func(row, at int) {
		w := 1.0
		if weight != nil {
			w = weight[row]
		}
		all[at].weight += w
	}
	if isText(column) {
		seen := map[string]int{}
		for row := range column.Len() {
			key, _ := textOf(column, row)
			at, ok := seen[key]
			if !ok {
				at = len(all)
				seen[key] = at // key may be a view of the column's memory, because the map is used no longer than the column
				all, keys = append(all, class{first: row}), append(keys, key)
			}
			if len(all) > MaxClasses {
				return Dictionary{}, TooManyClasses()
			}
			note(row, at)
		}
	} else {
		var seen codes
		var room [codeRows]uint64
		for lo := 0; lo < column.Len(); lo += codeRows {
			part := room[:min(codeRows, column.Len()-lo)]
			ClassCodes(column, lo, part)
			if counts, ok := seen.count(part); ok && weight == nil {
				for at, n := range counts[:len(all)] {
					all[at].weight += float64(n)
				}
				continue
			}
			for i, code := range part {
				at := seen.find(code)
				if at < 0 {
					at = seen.add(code)
					all, keys = append(all, class{first: lo + i}), append(keys, KeyOf(code))
					if len(all) > MaxClasses {
						return Dictionary{}, TooManyClasses()
					}
				}
				note(lo+i, at)
			}
		}
	}
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(a, b int) bool { return keys[order[a]] < keys[order[b]] })
	var set Dictionary
	for _, at := range order {
		set.Keys = append(set.Keys, string([]byte(keys[at])))
		set.Texts = append(set.Texts, ClassText(column, all[at].first))
		set.Weight = append(set.Weight, all[at].weight)
	}
	return set, nil
}

// numbers returns the class number of each row. If the labels in column are exactly these
// numbers as float64, the result is a view of column.
func (d Dictionary) numbers(column arrow.Array) (labels []float64, err error) {
	unknown := -1
	if isText(column) {
		labels = make([]float64, column.Len())
		unknown = d.numbersOfText(column, labels)
	} else if values, ok := column.(*array.Float64); ok && d.areNumbers() {
		labels = values.Float64Values()
		unknown = d.codes().unknown(labels)
	} else {
		labels = make([]float64, column.Len())
		unknown = d.numbersOfCodes(column, labels)
	}
	if unknown >= 0 {
		return nil, &engine.RowError{Row: int64(unknown), Err: fmt.Errorf("the label %s is not one of the %d classes", batch.FormatValue(column, unknown), len(d.Keys))}
	}
	return labels, nil
}

// areNumbers reports whether the classes of a float column are exactly the numbers 0, 1, ….
func (d Dictionary) areNumbers() bool {
	for i, code := range d.codes().all {
		if code != kernel.OrderKey(float64(i)) {
			return false
		}
	}
	return true
}

// codes returns the codes of the classes, in the order of the classes. The classes must not be
// text.
func (d Dictionary) codes() *codes {
	known := new(codes)
	for _, key := range d.Keys {
		known.add(binary.BigEndian.Uint64([]byte(key)))
	}
	return known
}

// numbersOfText writes the class number of each row of a text column to labels. It returns the
// index of the first row whose value is not one of the classes, or -1 if there is no such row.
func (d Dictionary) numbersOfText(column arrow.Array, labels []float64) int {
	at := -1
	for i := range labels {
		key, _ := textOf(column, i)
		if at < 0 || d.Keys[at] != key {
			at = d.Number(key)
		}
		if at < 0 {
			return i
		}
		labels[i] = float64(at)
	}
	return -1
}

// numbersOfCodes does what numbersOfText does, for columns that are not text.
func (d Dictionary) numbersOfCodes(column arrow.Array, labels []float64) int {
	known := d.codes()
	var room [codeRows]uint64
	for lo := 0; lo < len(labels); lo += codeRows {
		part := labels[lo:min(lo+codeRows, len(labels))]
		ClassCodes(column, lo, room[:len(part)])
		if i := known.numbers(room[:len(part)], part); i >= 0 {
			return lo + i
		}
	}
	return -1
}

// TooManyClasses returns the error for a label with more than MaxClasses classes.
func TooManyClasses() error {
	return fmt.Errorf("the label has more than %d distinct values: classes are few; for a number that varies this much train a regression", MaxClasses)
}
