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
		var seen codes
		for row := range column.Len() {
			code := classCode(column, row)
			at := seen.find(code)
			if at < 0 {
				at = seen.add(code)
				all, keys = append(all, class{first: row}), append(keys, keyOf(code))
				if len(all) > MaxClasses {
					return classSet{}, tooManyClasses()
				}
			}
			note(row, at)
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
	lastAt := -1
	_, text := "", false
	if column.Len() > 0 {
		_, text = classText(column, 0)
	}
	var known codes
	if !text {
		for _, key := range s.Keys {
			known.add(binary.BigEndian.Uint64([]byte(key)))
		}
	}
	for i := range labels {
		if text {
			key, _ := classText(column, i)
			if i == 0 || lastAt < 0 || s.Keys[lastAt] != key {
				lastAt = s.number(key)
			}
		} else {
			lastAt = known.find(classCode(column, i))
		}
		if lastAt < 0 {
			return fmt.Errorf("row %d of the shard: the label %s is none of the %d classes", i, batch.FormatValue(column, i), len(s.Keys))
		}
		labels[i] = float64(lastAt)
	}
	return nil
}

// codes number the codes of classes in the order in which they were added.
type codes struct {
	all  []uint64
	at   map[uint64]int // nil while they are few
	last int            // found last among many
}

// fewCodes is up to how many are compared one by one.
const fewCodes = 8

// add gives a code the next number, which it returns.
func (c *codes) add(code uint64) int {
	c.all = append(c.all, code)
	switch n := len(c.all); {
	case c.at != nil:
		c.at[code] = n - 1
	case n > fewCodes:
		c.at = make(map[uint64]int, n)
		for i, known := range c.all {
			c.at[known] = i
		}
	}
	return len(c.all) - 1
}

// find returns the number of a code, -1 where it has none. Of few it is found without a
// branch: the labels of neighbouring rows differ half of the time, and a processor that
// guesses wrong loses more time than the comparisons take.
func (c *codes) find(code uint64) int {
	if c.at != nil {
		if c.all[c.last] == code {
			return c.last
		}
		at, ok := c.at[code]
		if !ok {
			return -1
		}
		c.last = at
		return at
	}
	at := -1
	for i, known := range c.all {
		apart := code ^ known
		same := int((apart|-apart)>>63) - 1 // all bits where they are the same, else none
		at = at&^same | i&same
	}
	return at
}

func tooManyClasses() error {
	return fmt.Errorf("the label has more than %d distinct values: classes are few; for a number that varies this much train a regression", MaxClasses)
}
