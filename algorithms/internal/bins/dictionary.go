package bins

import (
	"encoding/binary"
	"fmt"
	"math"
	"sort"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// dictionary is the distinct values of a column, in ascending order of their keys, which are
// such that their bytes are in the order of the values.
type dictionary struct {
	Keys   []string
	Texts  []string  // as messages and models write them; nil where they are the keys
	Weight []float64 // of the rows that have it; nil where nobody asks
	Count  []int64   // rows of positive weight that have it
}

// merge returns the dictionary of both, of which it uses up neither. Beyond limit+1 values
// it gives up the last ones: there are too many then in any case.
func (d dictionary) merge(o dictionary, limit int) dictionary {
	if len(d.Keys) == 0 {
		return o
	}
	if len(o.Keys) == 0 {
		return d
	}
	var all dictionary
	take := func(from *dictionary, k *int) {
		all.Keys = append(all.Keys, from.Keys[*k])
		if from.Texts != nil {
			all.Texts = append(all.Texts, from.Texts[*k])
		}
		if from.Weight != nil {
			all.Weight = append(all.Weight, from.Weight[*k])
		}
		all.Count = append(all.Count, from.Count[*k])
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
			all.Count[last] += o.Count[j]
			if o.Weight != nil {
				all.Weight[last] += o.Weight[j]
			}
			j++
		}
	}
	return all
}

// number returns the number of a key, −1 where it is not there.
func (d dictionary) number(key string) int {
	i := sort.SearchStrings(d.Keys, key)
	if i < len(d.Keys) && d.Keys[i] == key {
		return i
	}
	return -1
}

// text returns how messages write value i.
func (d dictionary) text(i int) string {
	if d.Texts != nil {
		return d.Texts[i]
	}
	return d.Keys[i]
}

// collector gives the values of a shard numbers, in the order they come.
type collector struct {
	byText map[string]int32
	byCode map[uint64]int32
	keys   []string
	texts  []string
}

func newCollector() *collector {
	return &collector{byText: map[string]int32{}, byCode: map[uint64]int32{}}
}

// number returns the number of the value of a row, which is not null.
func (c *collector) number(column arrow.Array, i int) int32 {
	if text, ok := column.(*array.String); ok {
		key := text.Value(i)
		at, ok := c.byText[key]
		if !ok {
			key = string([]byte(key)) // what was read is a view of the column's memory
			at = int32(len(c.keys))
			c.byText[key] = at
			c.keys = append(c.keys, key)
		}
		return at
	}
	code := orderCode(column, i)
	at, ok := c.byCode[code]
	if !ok {
		at = int32(len(c.keys))
		c.byCode[code] = at
		var key [8]byte
		binary.BigEndian.PutUint64(key[:], code)
		c.keys = append(c.keys, string(key[:]))
		text := batch.FormatValue(column, i)
		if text == "-0" && arrow.IsFloating(column.DataType().ID()) {
			text = "0"
		}
		c.texts = append(c.texts, text)
	}
	return at
}

// sorted returns the dictionary, and for each number the place in it. What the values weigh
// is left to the caller.
func (c *collector) sorted() (d dictionary, place []int32) {
	order := make([]int, len(c.keys))
	for i := range order {
		order[i] = i
	}
	sort.Slice(order, func(a, b int) bool { return c.keys[order[a]] < c.keys[order[b]] })
	place = make([]int32, len(order))
	for to, from := range order {
		place[from] = int32(to)
		d.Keys = append(d.Keys, c.keys[from])
		if c.texts != nil {
			d.Texts = append(d.Texts, c.texts[from])
		}
	}
	d.Count = make([]int64, len(order))
	return d, place
}

// codeKey is the key of an integer category.
func codeKey(code int32) string {
	var key [4]byte
	binary.BigEndian.PutUint32(key[:], uint32(code))
	return string(key[:])
}

// codeOf is the inverse of codeKey.
func codeOf(key string) int32 { return int32(binary.BigEndian.Uint32([]byte(key))) }

// signBit brings the bits of signed numbers in the order of unsigned ones when it is flipped.
const signBit = 1 << 63

// orderCode returns what stands for a value of fixed size: codes are in the order of the
// values.
func orderCode(column arrow.Array, i int) uint64 {
	switch arr := column.(type) {
	case *array.Int64:
		return uint64(arr.Value(i)) ^ signBit
	case *array.Int32:
		return uint64(int64(arr.Value(i))) ^ signBit
	case *array.Int16:
		return uint64(int64(arr.Value(i))) ^ signBit
	case *array.Int8:
		return uint64(int64(arr.Value(i))) ^ signBit
	case *array.Date32:
		return uint64(int64(arr.Value(i))) ^ signBit
	case *array.Timestamp:
		return uint64(int64(arr.Value(i))) ^ signBit
	case *array.Uint64:
		return arr.Value(i)
	}
	v := numberAt(column, i)
	switch column.(type) {
	case *array.Float64, *array.Float32:
		code := math.Float64bits(v)
		if v == 0 {
			code = 0
		}
		if code&signBit != 0 {
			return ^code
		}
		return code | signBit
	}
	return uint64(v) // small unsigned numbers and bools
}

// numberAt returns a value of a number column as float64, NaN for a null.
func numberAt(column arrow.Array, i int) float64 {
	if column.IsNull(i) {
		return math.NaN()
	}
	return rows.NumberAt(column, i)
}

// tooManyClasses is what is wrong with a label of too many values.
func tooManyClasses() error {
	return fmt.Errorf("there are more than %d classes: is this column a label?", rows.MaxClasses)
}
