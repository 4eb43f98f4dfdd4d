package rows

import (
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// codeRows is the number of rows whose codes are computed at a time.
const codeRows = 256

// signBit is flipped in signed integers. The results, compared as unsigned integers, have the
// order of the signed integers.
const signBit = 1 << 63

// ClassCodes sets to[i] to a code of the label in row lo+i of column, for all i < len(to).
// Equal labels have equal codes, and a larger label has a larger code. The column may have
// numbers, bools, dates or times, but not text.
func ClassCodes(column arrow.Array, lo int, to []uint64) {
	switch arr := column.(type) {
	case *array.Float64:
		for i, v := range arr.Float64Values()[lo:][:len(to)] {
			to[i] = kernel.OrderKey(v)
		}
	case *array.Float32:
		for i, v := range arr.Float32Values()[lo:][:len(to)] {
			to[i] = kernel.OrderKey(float64(v))
		}
	case *array.Int8:
		signedCodes(arr.Int8Values()[lo:], to)
	case *array.Int16:
		signedCodes(arr.Int16Values()[lo:], to)
	case *array.Int32:
		signedCodes(arr.Int32Values()[lo:], to)
	case *array.Int64:
		signedCodes(arr.Int64Values()[lo:], to)
	case *array.Date32:
		signedCodes(arr.Date32Values()[lo:], to)
	case *array.Timestamp:
		signedCodes(arr.TimestampValues()[lo:], to)
	case *array.Uint8:
		unsignedCodes(arr.Uint8Values()[lo:], to)
	case *array.Uint16:
		unsignedCodes(arr.Uint16Values()[lo:], to)
	case *array.Uint32:
		unsignedCodes(arr.Uint32Values()[lo:], to)
	case *array.Uint64:
		unsignedCodes(arr.Uint64Values()[lo:], to)
	case *array.Boolean:
		for i := range to {
			to[i] = 0
			if arr.Value(lo + i) {
				to[i] = 1
			}
		}
	default:
		clear(to)
	}
}

func signedCodes[T ~int8 | ~int16 | ~int32 | ~int64](values []T, to []uint64) {
	for i, v := range values[:len(to)] {
		to[i] = uint64(int64(v)) ^ signBit
	}
}

func unsignedCodes[T ~uint8 | ~uint16 | ~uint32 | ~uint64](values []T, to []uint64) {
	for i, v := range values[:len(to)] {
		to[i] = uint64(v)
	}
}

// codes assigns numbers 0, 1, … to the codes of classes, in the order in which the codes are
// added.
type codes struct {
	all  []uint64
	at   map[uint64]int // number of each code; nil while there are at most fewCodes
	last int            // the last number found in the map
}

// Up to fewCodes codes are searched one by one, without a map.
const fewCodes = 8

// add assigns the next number to a code and returns the number.
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

// find returns the number of a code, or -1 if the code has no number. The search among few
// codes has no branch that depends on the code: labels of neighbouring rows often differ, and a
// mispredicted branch costs more than a few comparisons.
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
		same := int((apart|-apart)>>63) - 1 // all bits are set if the codes are equal; otherwise no bit is set
		at = at&^same | i&same
	}
	return at
}

// count counts codes in the slice some: counts[n] is the number of elements that equal the code
// with number n. ok is false if c has more than fewCodes codes, or if an element of the slice
// has no number.
func (c *codes) count(some []uint64) (counts [fewCodes]int, ok bool) {
	if c.at != nil {
		return counts, false
	}
	found := 0
	for k, known := range c.all {
		n := 0
		for _, code := range some {
			if code == known { // the compiler makes this a conditional move, not a branch
				n++
			}
		}
		counts[k] = n
		found += n
	}
	return counts, found == len(some)
}

// numbers sets to[i] to the number of the code some[i]. It returns the index of the first
// element of some without a number, or -1 if all elements have a number.
func (c *codes) numbers(some []uint64, to []float64) int {
	if c.at == nil && len(c.all) == 2 {
		return c.numbersOfTwo(some, to)
	}
	for i, code := range some {
		at := c.find(code)
		if at < 0 {
			return i
		}
		to[i] = float64(at)
	}
	return -1
}

// numbersOfTwo does what numbers does, if exactly two codes have numbers.
func (c *codes) numbersOfTwo(some []uint64, to []float64) int {
	first, second := c.all[0], c.all[1]
	to = to[:len(some)]
	none := uint64(0)
	for i, code := range some {
		n := 0
		if code == second {
			n = 1
		}
		to[i] = float64(n)
		other := first
		if n == 1 {
			other = second
		}
		none |= code ^ other
	}
	if none == 0 {
		return -1
	}
	return slices.IndexFunc(some, func(code uint64) bool { return code != first && code != second })
}

// unknown returns the index of the first element of values whose code has no number, or -1 if
// all codes have a number.
func (c *codes) unknown(values []float64) int {
	var room [codeRows]uint64
	for lo := 0; lo < len(values); lo += codeRows {
		part := room[:min(codeRows, len(values)-lo)]
		for i, v := range values[lo : lo+len(part)] {
			part[i] = kernel.OrderKey(v)
		}
		if _, ok := c.count(part); ok {
			continue
		}
		for i, code := range part {
			if c.find(code) < 0 {
				return lo + i
			}
		}
	}
	return -1
}
