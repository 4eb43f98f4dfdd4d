package rows

import (
	"encoding/binary"
	"fmt"
	"math"
	"sort"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

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

// Sign flips that bring the bits of signed numbers in the order of unsigned ones.
const signBit = 1 << 63

// classCode returns what stands for the class of a row whose label has a fixed size:
// codes are in the order of the classes.
func classCode(column arrow.Array, i int) uint64 {
	switch arr := column.(type) {
	case *array.Float64:
		return floatCode(arr.Value(i))
	case *array.Float32:
		return floatCode(float64(arr.Value(i)))
	case *array.Int8:
		return uint64(int64(arr.Value(i))) ^ signBit
	case *array.Int16:
		return uint64(int64(arr.Value(i))) ^ signBit
	case *array.Int32:
		return uint64(int64(arr.Value(i))) ^ signBit
	case *array.Int64:
		return uint64(arr.Value(i)) ^ signBit
	case *array.Date32:
		return uint64(int64(arr.Value(i))) ^ signBit
	case *array.Timestamp:
		return uint64(int64(arr.Value(i))) ^ signBit
	case *array.Uint8:
		return uint64(arr.Value(i))
	case *array.Uint16:
		return uint64(arr.Value(i))
	case *array.Uint32:
		return uint64(arr.Value(i))
	case *array.Uint64:
		return arr.Value(i)
	case *array.Boolean:
		if arr.Value(i) {
			return 1
		}
	}
	return 0
}

// floatCode brings floats in the order of unsigned numbers; −0 is 0.
func floatCode(v float64) uint64 {
	bits := math.Float64bits(v + 0)
	if v == 0 {
		bits = 0
	}
	if bits&signBit != 0 {
		return ^bits
	}
	return bits | signBit
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
	if _, text := classText(column, 0); text && column.Len() > 0 {
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
		seen := map[uint64]int{}
		last, lastAt := uint64(0), -1
		for row := range column.Len() {
			code := classCode(column, row)
			if lastAt < 0 || code != last {
				at, ok := seen[code]
				if !ok {
					at = len(all)
					seen[code] = at
					all, keys = append(all, class{first: row}), append(keys, keyOf(code))
				}
				if len(all) > MaxClasses {
					return classSet{}, tooManyClasses()
				}
				last, lastAt = code, at
			}
			note(row, lastAt)
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

// number writes the class of each row of a column to labels.
func (s classSet) numbers(column arrow.Array, labels []float64) error {
	last, lastAt := uint64(0), -1
	_, text := "", false
	if column.Len() > 0 {
		_, text = classText(column, 0)
	}
	codes := map[uint64]int{}
	if !text {
		for i, key := range s.Keys {
			codes[binary.BigEndian.Uint64([]byte(key))] = i
		}
	}
	for i := range labels {
		if text {
			key, _ := classText(column, i)
			if i == 0 || lastAt < 0 || s.Keys[lastAt] != key {
				lastAt = s.number(key)
			}
		} else if code := classCode(column, i); lastAt < 0 || code != last {
			at, ok := codes[code]
			if !ok {
				at = -1
			}
			last, lastAt = code, at
		}
		if lastAt < 0 {
			return fmt.Errorf("row %d of the shard: the label %s is none of the %d classes", i, batch.FormatValue(column, i), len(s.Keys))
		}
		labels[i] = float64(lastAt)
	}
	return nil
}

func tooManyClasses() error {
	return fmt.Errorf("the label has more than %d distinct values: classes are few; for a number that varies this much train a regression", MaxClasses)
}
