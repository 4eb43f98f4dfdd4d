package evaluate

import (
	"math"
	"math/big"
)

// sum adds float64 values exactly: value returns the true sum, rounded once. Hence the result
// depends on the values alone. It depends neither on their order nor on how they were split
// into partial sums.
//
// Hi + Lo is the sum so far, without an error, because the rounding error of an addition is
// itself a float64 (Knuth, The Art of Computer Programming 2, 4.2.2). If Hi and Lo cannot
// represent the sum, values are added to Big. Big is an integer in units of 2^-1074 that covers
// the whole range of float64. It has digits of 32 bits in words of 64 bits, which leaves bits
// for carries (Neal, "Fast exact summation using small and large superaccumulators", 2015). For
// weights of 1, integers and most data, Big is never needed.
//
// The zero value is an empty sum. The fields are exported only so that they can be encoded.
type sum struct {
	Hi      float64 `msgpack:"h,omitempty"`
	Lo      float64 `msgpack:"l,omitempty"`
	Big     []int64 `msgpack:"b,omitempty"` // nil until needed
	Adds    int     `msgpack:"n,omitempty"` // upper bound of the number of additions to Big since carries were last propagated
	Special float64 `msgpack:"s,omitempty"` // infinity or NaN, once such a value was added
}

const (
	digitBits = 32
	// 2046+52 bits are for the values, and 64 bits for the number of values.
	bigDigits = (2046 + 52 + 64 + digitBits - 1) / digitBits
	// maxAdds additions of numbers below 2^32 to a digit do not overflow it.
	maxAdds = 1 << 30
)

// add adds one value.
func (s *sum) add(x float64) {
	h := s.Hi + x
	t := h - s.Hi
	e := (s.Hi - (h - t)) + (x - t)
	if e == 0 { // false for a NaN
		s.Hi = h
		return
	}
	s.addSlowly(x, h, e)
}

// addSlowly completes add. h is the rounded sum of x and Hi, and e is its rounding error, which
// is not 0.
func (s *sum) addSlowly(x, h, e float64) {
	if h-h != 0 || e-e != 0 { // infinite, NaN or too large
		if x-x != 0 {
			s.Special += x
			return
		}
		s.spill(s.Hi)
		s.spill(x)
		s.Hi = 0
		return
	}
	s.Hi = h
	l := s.Lo + e
	t := l - s.Lo
	rest := (s.Lo - (l - t)) + (e - t)
	s.Lo = l
	if rest != 0 {
		s.spill(rest)
	}
}

// addProduct adds x·y. It adds the rounded product and, if both factors are below 1e150 in
// absolute value, its rounding error. Then only parts below the smallest float64 are lost
// (Dekker, Numerische Mathematik 18, 1971).
func (s *sum) addProduct(x, y float64) {
	p := float64(x * y)
	s.add(p)
	if e := productError(x, y, p); e != 0 {
		s.add(e)
	}
}

// productError returns x·y - p for the rounded product p.
func productError(x, y, p float64) float64 {
	if !(math.Abs(x) < 1e150 && math.Abs(y) < 1e150) {
		return 0
	}
	const splitter = 1<<27 + 1
	c := float64(splitter * x)
	xh := c - (c - x)
	xl := x - xh
	c = float64(splitter * y)
	yh := c - (c - y)
	yl := y - yh
	return float64(xl*yl) - (((p - float64(xh*yh)) - float64(xl*yh)) - float64(xh*yl))
}

// spill adds a finite value to Big.
func (s *sum) spill(x float64) {
	if x == 0 {
		return
	}
	if s.Big == nil {
		s.Big = make([]int64, bigDigits)
	}
	if s.Adds >= maxAdds {
		s.carry()
	}
	s.Adds++
	b := math.Float64bits(x)
	exponent, mantissa := int(b>>52&0x7ff), b&(1<<52-1)
	if exponent == 0 {
		exponent = 1
	} else {
		mantissa |= 1 << 52
	}
	at, shift := (exponent-1)/digitBits, uint((exponent-1)%digitBits)
	hi, lo := mantissa>>(64-shift), mantissa<<shift // 85 bits, which is three digits
	d0, d1, d2 := int64(lo&(1<<digitBits-1)), int64(lo>>digitBits), int64(hi)
	if b>>63 != 0 {
		d0, d1, d2 = -d0, -d1, -d2
	}
	s.Big[at] += d0
	s.Big[at+1] += d1
	s.Big[at+2] += d2
}

// carry propagates carries, so that all digits of Big except the last are in 0..2^32-1.
func (s *sum) carry() {
	var c int64
	for i := range s.Big {
		v := s.Big[i] + c
		if i == len(s.Big)-1 {
			s.Big[i] = v
			break
		}
		c = v >> digitBits
		s.Big[i] = v - c<<digitBits
	}
	s.Adds = 1
}

// merge adds the sum o. It may change the fields of o, but not the value of o.
func (s *sum) merge(o *sum) {
	s.add(o.Hi)
	s.add(o.Lo)
	s.Special += o.Special
	if o.Big == nil {
		return
	}
	if s.Big == nil {
		s.Big = make([]int64, bigDigits)
	}
	s.carry()
	o.carry()
	for i, v := range o.Big {
		s.Big[i] += v
	}
	s.Adds = 2
}

// value returns the sum, rounded to the nearest float64.
func (s *sum) value() float64 {
	switch {
	case s.Special != 0:
		return s.Special
	case s.Big == nil:
		return s.Hi + s.Lo + 0 // never -0
	}
	v, _ := s.exact().Float64()
	return v + 0
}

// exactBits is a precision that represents any sum of float64 values.
const exactBits = bigDigits*digitBits + 64

// exact returns the sum without rounding. The sum must be finite.
func (s *sum) exact() *big.Float {
	f := newExact()
	if s.Big != nil {
		s.carry()
		total := new(big.Int)
		for i := len(s.Big) - 1; i >= 0; i-- {
			total.Lsh(total, digitBits)
			total.Add(total, big.NewInt(s.Big[i]))
		}
		f.SetInt(total)
		f.SetMantExp(f, -1074)
	}
	f.Add(f, newExact().SetFloat64(s.Hi))
	return f.Add(f, newExact().SetFloat64(s.Lo))
}

func newExact() *big.Float { return new(big.Float).SetPrec(exactBits) }

// finite reports whether the sum is a finite number.
func (s *sum) finite() bool { return s.Special == 0 }

// spread returns the weighted sum of squared distances to the mean, which is squares -
// total²/weight. The arguments are the exact sums of w, w·x and w·x². The result is rounded
// once, so no precision is lost by cancellation. It is NaN if one of the sums is not finite,
// and 0 if weight is 0.
func spread(weight, total, squares *sum) float64 {
	if !weight.finite() || !total.finite() || !squares.finite() {
		return math.NaN()
	}
	w := weight.exact()
	if w.Sign() == 0 {
		return 0
	}
	t := total.exact()
	t.Mul(t, t)
	t.Quo(t, w)
	v, _ := t.Sub(squares.exact(), t).Float64()
	return max(v, 0)
}
