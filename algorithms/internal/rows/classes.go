package rows

import (
	"encoding/binary"
	"fmt"
	"sort"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// MaxClasses is the largest number of classes that a ClassLabel may have.
const MaxClasses = 100_000

// classSet is the classes that some rows have, in ascending order of their keys.
type classSet struct {
	// Keys are such that their bytes are in the order of the classes.
	Keys   []string
	Texts  []string
	Weight []float64
}

// merge returns the classes of both sets, of which it uses up neither. Beyond
// MaxClasses+1 classes it gives up the last ones: there are too many then in any case.
func (s classSet) merge(o classSet) classSet {
	var all classSet
	i, j := 0, 0
	take := func(from *classSet, k *int) {
		all.Keys = append(all.Keys, from.Keys[*k])
		all.Texts = append(all.Texts, from.Texts[*k])
		all.Weight = append(all.Weight, from.Weight[*k])
		*k++
	}
	for (i < len(s.Keys) || j < len(o.Keys)) && len(all.Keys) <= MaxClasses {
		switch {
		case j == len(o.Keys) || i < len(s.Keys) && s.Keys[i] < o.Keys[j]:
			take(&s, &i)
		case i == len(s.Keys) || o.Keys[j] < s.Keys[i]:
			take(&o, &j)
		default:
			take(&s, &i)
			all.Weight[len(all.Weight)-1] += o.Weight[j]
			j++
		}
	}
	return all
}

// number returns the number of the class with a key, -1 where there is none.
func (s classSet) number(key string) int {
	i := sort.SearchStrings(s.Keys, key)
	if i < len(s.Keys) && s.Keys[i] == key {
		return i
	}
	return -1
}

// isText says that the classes of a column are text.
func isText(column arrow.Array) bool {
	switch column.(type) {
	case *array.String, *array.Binary:
		return true
	}
	return false
}

// classText returns the bytes of a class that is text, and whether it is.
func classText(column arrow.Array, i int) (string, bool) {
	switch arr := column.(type) {
	case *array.String:
		return arr.Value(i), true
	case *array.Binary:
		return string(arr.Value(i)), true
	}
	return "", false
}

// keyOf returns the key of a code.
func keyOf(code uint64) string {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], code)
	return string(b[:])
}

// classesOf returns the classes of the labels of a shard; nil weights are all 1.
func classesOf(column arrow.Array, weight []float64) (classSet, error) {
	type class struct {
		first  int // the first row that has it
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
			key, _ := classText(column, row)
			at, ok := seen[key]
			if !ok {
				at = len(all)
				seen[key] = at // a view of the column's memory, which outlives the map
				all, keys = append(all, class{first: row}), append(keys, key)
			}
			if len(all) > MaxClasses {
				return classSet{}, tooManyClasses()
			}
			note(row, at)
		}
	} else {
		var seen codes
		var room [codeRows]uint64
		for lo := 0; lo < column.Len(); lo += codeRows {
			part := room[:min(codeRows, column.Len()-lo)]
			classCodes(column, lo, part)
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
					all, keys = append(all, class{first: lo + i}), append(keys, keyOf(code))
					if len(all) > MaxClasses {
						return classSet{}, tooManyClasses()
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
	var set classSet
	for _, at := range order {
		text := batch.FormatValue(column, all[at].first)
		if text == "-0" && arrow.IsFloating(column.DataType().ID()) {
			text = "0"
		}
		set.Keys = append(set.Keys, string([]byte(keys[at])))
		set.Texts = append(set.Texts, text)
		set.Weight = append(set.Weight, all[at].weight)
	}
	return set, nil
}

// numbers returns the class of each row of a column: a view of it where it has them already.
func (s classSet) numbers(column arrow.Array) (labels []float64, err error) {
	unknown := -1
	if isText(column) {
		labels = make([]float64, column.Len())
		unknown = s.numbersOfText(column, labels)
	} else if values, ok := column.(*array.Float64); ok && s.areNumbers() {
		labels = values.Float64Values()
		unknown = s.codes().unknown(labels)
	} else {
		labels = make([]float64, column.Len())
		unknown = s.numbersOfCodes(column, labels)
	}
	if unknown >= 0 {
		return nil, &engine.RowError{Row: int64(unknown), Err: fmt.Errorf("the label %s is none of the %d classes", batch.FormatValue(column, unknown), len(s.Keys))}
	}
	return labels, nil
}

// areNumbers says that the classes are the floats 0, 1, …, if they are floats.
func (s classSet) areNumbers() bool {
	for i, code := range s.codes().all {
		if code != floatCode(float64(i)) {
			return false
		}
	}
	return true
}

// codes returns the codes of classes that are no text, in their order.
func (s classSet) codes() *codes {
	known := new(codes)
	for _, key := range s.Keys {
		known.add(binary.BigEndian.Uint64([]byte(key)))
	}
	return known
}

// numbersOfText is numbers for text; it returns the first row that has none of the classes,
// -1 where there is none.
func (s classSet) numbersOfText(column arrow.Array, labels []float64) int {
	at := -1
	for i := range labels {
		key, _ := classText(column, i)
		if at < 0 || s.Keys[at] != key {
			at = s.number(key)
		}
		if at < 0 {
			return i
		}
		labels[i] = float64(at)
	}
	return -1
}

// numbersOfCodes is numbersOfText for labels of a fixed size.
func (s classSet) numbersOfCodes(column arrow.Array, labels []float64) int {
	known := s.codes()
	var room [codeRows]uint64
	for lo := 0; lo < len(labels); lo += codeRows {
		part := labels[lo:min(lo+codeRows, len(labels))]
		classCodes(column, lo, room[:len(part)])
		if i := known.numbers(room[:len(part)], part); i >= 0 {
			return lo + i
		}
	}
	return -1
}

func tooManyClasses() error {
	return fmt.Errorf("the label has more than %d distinct values: classes are few; for a number that varies this much train a regression", MaxClasses)
}
