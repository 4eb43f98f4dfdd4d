package rows

import (
	"math/bits"
	"sort"
)

// Occurring is the set of those declared features that occur in the data. The zero value is the
// set of all features.
type Occurring struct {
	// Feature j occurs if bit j&63 of word j>>6 is set. Its number is then before[j>>6] plus
	// the number of set bits below bit j&63 in that word. For n declared features, the two
	// slices take about n/5 bytes; a table of numbers would take 4·n bytes.
	word   []uint64
	before []int32
}

// NewOccurring returns the set of the given features. declared is the number of declared
// features.
func NewOccurring(features []int32, declared int) Occurring {
	o := Occurring{word: make([]uint64, declared/64+1), before: make([]int32, declared/64+1)}
	o.set(features)
	return o
}

// set adds features to the set and returns the new size of the set. A feature may be given
// several times.
func (o *Occurring) set(features []int32) (n int32) {
	for _, j := range features {
		o.word[j>>6] |= 1 << (j & 63)
	}
	for i, w := range o.word {
		o.before[i] = n
		n += int32(bits.OnesCount64(w))
	}
	return n
}

// Find returns the number of feature j among the features that occur, or -1 if j does not
// occur.
func (o *Occurring) Find(j int32) int {
	if o.word != nil && o.word[j>>6]&(1<<(j&63)) == 0 {
		return -1
	}
	return int(o.number(j))
}

// number returns the number of a feature that occurs.
func (o *Occurring) number(j int32) int32 {
	if o.word == nil {
		return j
	}
	return o.before[j>>6] + int32(bits.OnesCount64(o.word[j>>6]&(1<<(j&63)-1)))
}

// columnSpace maps declared features to the columns that training uses. If only the field
// declared is set, it maps each feature to itself.
type columnSpace struct {
	declared int
	columns  []int32
	Occurring
}

func newColumnSpace(columns []int32, declared int) columnSpace {
	return columnSpace{declared, columns, NewOccurring(columns, declared)}
}

// identity reports whether every feature is mapped to itself.
func (s *columnSpace) identity() bool { return s.word == nil }

// declaredRange returns a range [lo, hi) of declared features. The features of this range that
// occur are exactly the columns [first, last). first may equal last.
func (s *columnSpace) declaredRange(first, last int) (lo, hi int32) {
	if s.word == nil {
		return int32(first), int32(last)
	}
	if first >= last {
		return 0, 0
	}
	return s.columns[first], s.columns[last-1] + 1
}

// columnsOf returns the indices of the set bits of a bitmap, in ascending order.
func columnsOf(words []int64) []int32 {
	n := 0
	for _, w := range words {
		n += bits.OnesCount64(uint64(w))
	}
	columns := make([]int32, 0, n)
	for i, w := range words {
		for rest := uint64(w); rest != 0; rest &= rest - 1 {
			columns = append(columns, int32(i*64+bits.TrailingZeros64(rest)))
		}
	}
	return columns
}

// within returns the entries of a sparse row whose columns are in [lo, hi).
func within(col []int32, val []float64, lo, hi int32) ([]int32, []float64) {
	if len(col) == 0 || col[0] >= lo && col[len(col)-1] < hi {
		return col, val
	}
	from := sort.Search(len(col), func(p int) bool { return col[p] >= lo })
	to := from + sort.Search(len(col)-from, func(p int) bool { return col[from+p] >= hi })
	return col[from:to], val[from:to]
}
