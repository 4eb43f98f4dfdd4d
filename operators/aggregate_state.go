package operators

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// aggregateState holds the values of one aggregation for many groups. Each value is in a slot,
// which is empty at first and after clear.
type aggregateState interface {
	// grow makes room for slots 0 to n-1.
	grow(n int)
	// add adds the values of rows to their slots, in order. It ignores rows of slot -1 and
	// nulls. col is nil for CountRows.
	add(col arrow.Array, slots []int32)
	// load fills empty slots with partial values, one for each row. It ignores rows of slot -1.
	load(cols []arrow.Array, slots []int32)
	// merge merges the value of slot right into the value of slot left, its left neighbour.
	merge(left, right int32)
	clear(slot int32)
	// partial appends the value of a slot to builders of the columns that load reads. result
	// appends the value of a slot as it appears in the result of the aggregation.
	partial(to []array.Builder, slot int32)
	result(to array.Builder, slot int32) error
	// width returns the number of bytes of an empty slot. grown returns how many bytes the
	// values of all slots have taken beyond width since the last call of grown.
	width() int64
	grown() int64
}

// fixedSize is embedded by states whose values do not grow.
type fixedSize struct{}

func (fixedSize) grown() int64 { return 0 }

// grownTo returns s with a length of at least n; new elements are zero.
func grownTo[T any](s []T, n int) []T {
	if n <= len(s) {
		return s
	}
	return slices.Grow(s, n-len(s))[:n]
}

// countState counts rows, or values that are not null.
type countState struct {
	fixedSize
	n []int64
}

func (s *countState) grow(n int)    { s.n = grownTo(s.n, n) }
func (*countState) width() int64    { return 8 }
func (s *countState) clear(i int32) { s.n[i] = 0 }

func (s *countState) add(col arrow.Array, slots []int32) {
	for i, slot := range slots {
		if slot >= 0 && (col == nil || col.IsValid(i)) {
			s.n[slot]++
		}
	}
}

func (s *countState) load(cols []arrow.Array, slots []int32) {
	n := cols[0].(*array.Int64).Int64Values()
	for i, slot := range slots {
		if slot >= 0 {
			s.n[slot] = n[i]
		}
	}
}

func (s *countState) merge(left, right int32) { s.n[left] += s.n[right] }

func (s *countState) partial(to []array.Builder, slot int32) {
	to[0].(*array.Int64Builder).Append(s.n[slot])
}

func (s *countState) result(to array.Builder, slot int32) error {
	to.(*array.Int64Builder).Append(s.n[slot])
	return nil
}

// integerSum adds integers exactly, in 128 bits, so that the result does not depend on their
// order, and partial sums may exceed 64 bits. If mean is set, the result is the mean.
type integerSum struct {
	fixedSize
	column string
	mean   bool

	low    []uint64
	high   []int64
	n      []int64
	values []int64 // scratch
}

func (s *integerSum) grow(n int) {
	s.low, s.high, s.n = grownTo(s.low, n), grownTo(s.high, n), grownTo(s.n, n)
}

func (*integerSum) width() int64    { return 24 }
func (s *integerSum) clear(i int32) { s.low[i], s.high[i], s.n[i] = 0, 0, 0 }

func (s *integerSum) add(col arrow.Array, slots []int32) {
	values := integersOf(col, &s.values)
	_, unsigned := col.(*array.Uint64)
	for i, slot := range slots {
		if slot < 0 || col.IsNull(i) {
			continue
		}
		v, carry := values[i], uint64(0)
		s.low[slot], carry = bits.Add64(s.low[slot], uint64(v), 0)
		s.high[slot] += int64(carry)
		if v < 0 && !unsigned {
			s.high[slot]-- // the upper half of v
		}
		s.n[slot]++
	}
}

func (s *integerSum) load(cols []arrow.Array, slots []int32) {
	low := cols[0].(*array.Uint64).Uint64Values()
	high := cols[1].(*array.Int64).Int64Values()
	n := cols[2].(*array.Int64).Int64Values()
	for i, slot := range slots {
		if slot >= 0 {
			s.low[slot], s.high[slot], s.n[slot] = low[i], high[i], n[i]
		}
	}
}

func (s *integerSum) merge(left, right int32) {
	low, carry := bits.Add64(s.low[left], s.low[right], 0)
	s.low[left] = low
	s.high[left] += s.high[right] + int64(carry)
	s.n[left] += s.n[right]
}

func (s *integerSum) partial(to []array.Builder, slot int32) {
	to[0].(*array.Uint64Builder).Append(s.low[slot])
	to[1].(*array.Int64Builder).Append(s.high[slot])
	to[2].(*array.Int64Builder).Append(s.n[slot])
}

func (s *integerSum) result(to array.Builder, slot int32) error {
	switch low, high := int64(s.low[slot]), s.high[slot]; {
	case s.n[slot] == 0:
		to.AppendNull()
	case s.mean:
		to.(*array.Float64Builder).Append(meanOfIntegers(high, s.low[slot], s.n[slot]))
	case high != low>>63:
		sum := exactInteger(high, s.low[slot])
		return fmt.Errorf("the sum of column %q, %v, is beyond the range of int64; make the column float64 before", s.column, sum)
	default:
		to.(*array.Int64Builder).Append(low)
	}
	return nil
}

// exactInteger returns high·2^64 + low.
func exactInteger(high int64, low uint64) *big.Int {
	sum := new(big.Int).Lsh(big.NewInt(high), 64)
	return sum.Add(sum, new(big.Int).SetUint64(low))
}

// meanOfIntegers returns the float64 nearest to the exact mean of n integers whose sum is
// high·2^64 + low.
func meanOfIntegers(high int64, low uint64, n int64) float64 {
	const exact = 1 << 53
	if sum := int64(low); high == sum>>63 && -exact <= sum && sum <= exact && n <= exact {
		return float64(sum) / float64(n) // the only rounding
	}
	mean, _ := new(big.Rat).SetFrac(exactInteger(high, low), big.NewInt(n)).Float64()
	return mean
}

// floatSum adds floats in the order of rows. If mean is set, the result is the sum divided by
// the count.
type floatSum struct {
	fixedSize
	mean bool

	sum    []float64
	n      []int64
	values []float64 // scratch
}

func (s *floatSum) grow(n int)    { s.sum, s.n = grownTo(s.sum, n), grownTo(s.n, n) }
func (*floatSum) width() int64    { return 16 }
func (s *floatSum) clear(i int32) { s.sum[i], s.n[i] = 0, 0 }

// put adds v, which is the sum of n values, to a slot. It stores the first value of a slot
// instead of adding it to +0, as the sum of values that are all -0 must be -0.
func (s *floatSum) put(slot int32, v float64, n int64) {
	if s.n[slot] == 0 {
		s.sum[slot] = v
	} else {
		s.sum[slot] += v
	}
	s.n[slot] += n
}

func (s *floatSum) add(col arrow.Array, slots []int32) {
	values := floatsOf(col, &s.values)
	for i, slot := range slots {
		if slot >= 0 && col.IsValid(i) {
			s.put(slot, values[i], 1)
		}
	}
}

func (s *floatSum) load(cols []arrow.Array, slots []int32) {
	sum := cols[0].(*array.Float64).Float64Values()
	n := cols[1].(*array.Int64).Int64Values()
	for i, slot := range slots {
		if slot >= 0 {
			s.sum[slot], s.n[slot] = sum[i], n[i]
		}
	}
}

func (s *floatSum) merge(left, right int32) {
	if s.n[right] > 0 {
		s.put(left, s.sum[right], s.n[right])
	}
}

func (s *floatSum) partial(to []array.Builder, slot int32) {
	to[0].(*array.Float64Builder).Append(s.sum[slot])
	to[1].(*array.Int64Builder).Append(s.n[slot])
}

func (s *floatSum) result(to array.Builder, slot int32) error {
	switch b := to.(*array.Float64Builder); {
	case s.n[slot] == 0:
		b.AppendNull()
	case s.mean:
		b.Append(kernel.OneNaNOf(s.sum[slot] / float64(s.n[slot])))
	default:
		b.Append(kernel.OneNaNOf(s.sum[slot]))
	}
	return nil
}

// extremeState keeps for each slot the value that precedes all its other values in the order of
// before: the smallest or the largest value. Of equal values it keeps the one that was added
// first.
type extremeState[T any] struct {
	fixedSize
	before func(x, y T) bool
	of     func(col arrow.Array, scratch *[]T) []T
	put    func(to array.Builder, v T)

	best   []T
	seen   []bool
	values []T // scratch
}

func (s *extremeState[T]) grow(n int)    { s.best, s.seen = grownTo(s.best, n), grownTo(s.seen, n) }
func (*extremeState[T]) width() int64    { return 9 }
func (s *extremeState[T]) clear(i int32) { s.seen[i] = false }

func (s *extremeState[T]) add(col arrow.Array, slots []int32) {
	values := s.of(col, &s.values)
	for i, slot := range slots {
		if slot < 0 || col.IsNull(i) {
			continue
		}
		if v := values[i]; !s.seen[slot] || s.before(v, s.best[slot]) {
			s.best[slot], s.seen[slot] = v, true
		}
	}
}

func (s *extremeState[T]) load(cols []arrow.Array, slots []int32) { s.add(cols[0], slots) }

func (s *extremeState[T]) merge(left, right int32) {
	if s.seen[right] && (!s.seen[left] || s.before(s.best[right], s.best[left])) {
		s.best[left], s.seen[left] = s.best[right], true
	}
}

func (s *extremeState[T]) partial(to []array.Builder, slot int32) { _ = s.result(to[0], slot) }

func (s *extremeState[T]) result(to array.Builder, slot int32) error {
	if s.seen[slot] {
		s.put(to, s.best[slot])
	} else {
		to.AppendNull()
	}
	return nil
}

// textExtreme does for text and bytes what extremeState does for other types.
type textExtreme struct {
	largest bool

	best  [][]byte
	seen  []bool
	taken int64 // number of bytes taken since the last call of grown
}

func (s *textExtreme) grow(n int)    { s.best, s.seen = grownTo(s.best, n), grownTo(s.seen, n) }
func (*textExtreme) width() int64    { return 25 }
func (s *textExtreme) clear(i int32) { s.best[i], s.seen[i] = nil, false }

func (s *textExtreme) grown() int64 {
	n := s.taken
	s.taken = 0
	return n
}

func (s *textExtreme) put(slot int32, text []byte) {
	if s.seen[slot] {
		order := bytes.Compare(text, s.best[slot])
		if order == 0 || (order > 0) != s.largest {
			return
		}
	}
	had := cap(s.best[slot])
	s.best[slot], s.seen[slot] = append(s.best[slot][:0], text...), true
	s.taken += int64(cap(s.best[slot]) - had)
}

func (s *textExtreme) add(col arrow.Array, slots []int32) {
	for i, slot := range slots {
		if slot >= 0 && col.IsValid(i) {
			s.put(slot, textAt(col, i))
		}
	}
}

// textAt returns the bytes of a value of a text or binary column.
func textAt(col arrow.Array, i int) []byte {
	if b, ok := col.(*array.Binary); ok {
		return b.Value(i)
	}
	s := col.(*array.String)
	return s.ValueBytes()[s.ValueOffset(i)-s.ValueOffset(0) : s.ValueOffset(i+1)-s.ValueOffset(0)]
}

func (s *textExtreme) load(cols []arrow.Array, slots []int32) { s.add(cols[0], slots) }

func (s *textExtreme) merge(left, right int32) {
	if s.seen[right] {
		s.put(left, s.best[right])
	}
}

func (s *textExtreme) partial(to []array.Builder, slot int32) { _ = s.result(to[0], slot) }

func (s *textExtreme) result(to array.Builder, slot int32) error {
	switch b := to.(type) {
	case *array.StringBuilder:
		if s.seen[slot] {
			b.BinaryBuilder.Append(s.best[slot])
			return nil
		}
	case *array.BinaryBuilder:
		if s.seen[slot] {
			b.Append(s.best[slot])
			return nil
		}
	}
	to.AppendNull()
	return nil
}

// newExtreme returns a state for the smallest values of type dt, or for the largest ones if
// largest is set. dt must have an order.
func newExtreme(dt arrow.DataType, largest bool) aggregateState {
	switch dt.ID() {
	case arrow.STRING, arrow.BINARY:
		return &textExtreme{largest: largest}
	case arrow.FLOAT32, arrow.FLOAT64:
		return &extremeState[float64]{before: beforeFloats(largest), of: floatsOf, put: putFloat}
	case arrow.UINT64:
		of := func(col arrow.Array, _ *[]uint64) []uint64 { return col.(*array.Uint64).Uint64Values() }
		put := func(to array.Builder, v uint64) { to.(*array.Uint64Builder).Append(v) }
		return &extremeState[uint64]{before: beforeOrdered[uint64](largest), of: of, put: put}
	}
	return &extremeState[int64]{before: beforeOrdered[int64](largest), of: integersOf, put: putInteger}
}

func beforeOrdered[T cmp.Ordered](largest bool) func(x, y T) bool {
	if largest {
		return func(x, y T) bool { return x > y }
	}
	return func(x, y T) bool { return x < y }
}

// beforeFloats returns the ascending order of floats, or the descending order if largest is
// set. NaN is greater than all numbers, as in Sort.
func beforeFloats(largest bool) func(x, y float64) bool {
	less := func(x, y float64) bool { return x < y || math.IsNaN(y) && !math.IsNaN(x) }
	if largest {
		return func(x, y float64) bool { return less(y, x) }
	}
	return less
}

// floatsOf returns the values of a float column as float64. The values of nulls are undefined.
func floatsOf(col arrow.Array, scratch *[]float64) []float64 {
	narrow, ok := col.(*array.Float32)
	if !ok {
		return col.(*array.Float64).Float64Values()
	}
	*scratch = (*scratch)[:0]
	for _, v := range narrow.Float32Values() {
		*scratch = append(*scratch, float64(v))
	}
	return *scratch
}

// integersOf returns the values of a column of integers, booleans, dates or timestamps as
// int64. The values of nulls are undefined, and uint64 values wrap.
func integersOf(col arrow.Array, scratch *[]int64) []int64 {
	switch col := col.(type) {
	case *array.Int64:
		return col.Int64Values()
	case *array.Int8:
		return widened(col.Int8Values(), scratch)
	case *array.Int16:
		return widened(col.Int16Values(), scratch)
	case *array.Int32:
		return widened(col.Int32Values(), scratch)
	case *array.Uint8:
		return widened(col.Uint8Values(), scratch)
	case *array.Uint16:
		return widened(col.Uint16Values(), scratch)
	case *array.Uint32:
		return widened(col.Uint32Values(), scratch)
	case *array.Uint64:
		return widened(col.Uint64Values(), scratch)
	case *array.Date32:
		return widened(col.Date32Values(), scratch)
	case *array.Timestamp:
		return widened(col.TimestampValues(), scratch)
	}
	flags := col.(*array.Boolean)
	*scratch = (*scratch)[:0]
	for i := range flags.Len() {
		v := int64(0)
		if flags.Value(i) {
			v = 1
		}
		*scratch = append(*scratch, v)
	}
	return *scratch
}

func widened[T ~int8 | ~int16 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64](values []T, scratch *[]int64) []int64 {
	*scratch = (*scratch)[:0]
	for _, v := range values {
		*scratch = append(*scratch, int64(v))
	}
	return *scratch
}

func putFloat(to array.Builder, v float64) {
	switch to := to.(type) {
	case *array.Float64Builder:
		to.Append(kernel.OneNaNOf(v))
	case *array.Float32Builder:
		to.Append(kernel.OneNaNOf(float32(v)))
	}
}

func putInteger(to array.Builder, v int64) {
	switch to := to.(type) {
	case *array.Int64Builder:
		to.Append(v)
	case *array.Int8Builder:
		to.Append(int8(v))
	case *array.Int16Builder:
		to.Append(int16(v))
	case *array.Int32Builder:
		to.Append(int32(v))
	case *array.Uint8Builder:
		to.Append(uint8(v))
	case *array.Uint16Builder:
		to.Append(uint16(v))
	case *array.Uint32Builder:
		to.Append(uint32(v))
	case *array.Date32Builder:
		to.Append(arrow.Date32(v))
	case *array.TimestampBuilder:
		to.Append(arrow.Timestamp(v))
	case *array.BooleanBuilder:
		to.Append(v != 0)
	}
}
