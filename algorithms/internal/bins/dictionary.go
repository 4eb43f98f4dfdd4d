package bins

import (
	"encoding/binary"
	"math"
	"sort"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
)

// dictionary has the distinct values of a column. For text, Texts is nil, since the keys are
// the texts.
type dictionary = rows.Dictionary

// collector assigns numbers 0, 1, … to the distinct values of a column of a shard, in the order
// of their first rows.
type collector struct {
	byText map[string]int32
	byCode map[uint64]int32
	keys   []string
	texts  []string
}

func newCollector() *collector {
	return &collector{byText: map[string]int32{}, byCode: map[uint64]int32{}}
}

// number returns the number of the value in row i, which must not be null.
func (c *collector) number(column arrow.Array, i int) int32 {
	if text, ok := column.(*array.String); ok {
		key := text.Value(i)
		at, ok := c.byText[key]
		if !ok {
			key = string([]byte(key)) // a copy, as key is a view of the column's memory
			at = int32(len(c.keys))
			c.byText[key] = at
			c.keys = append(c.keys, key)
		}
		return at
	}
	var code [1]uint64
	rows.ClassCodes(column, i, code[:])
	at, ok := c.byCode[code[0]]
	if !ok {
		at = int32(len(c.keys))
		c.byCode[code[0]] = at
		c.keys = append(c.keys, rows.KeyOf(code[0]))
		c.texts = append(c.texts, rows.ClassText(column, i))
	}
	return at
}

// sorted returns the dictionary of the values, without weights and with counts of 0. place[n]
// is the index in the dictionary of the value with number n.
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

// codeKey returns the dictionary key of an integer category.
func codeKey(code int32) string {
	var key [4]byte
	binary.BigEndian.PutUint32(key[:], uint32(code))
	return string(key[:])
}

// codeOf returns the code whose key codeKey returned.
func codeOf(key string) int32 { return int32(binary.BigEndian.Uint32([]byte(key))) }

// numberAt returns value i of a number column as float64, or NaN for a null.
func numberAt(column arrow.Array, i int) float64 {
	if column.IsNull(i) {
		return math.NaN()
	}
	return rows.NumberAt(column, i)
}
