package evaluate

import (
	"math"
	"math/big"
)

// quantiles finds the q-quantile of values in a sweep over the values in ascending order. It
// also computes the pinball loss of this quantile as a constant prediction, which is the best
// constant.
type quantiles struct {
	HasLower, HasUpper bool
	// Lower is the least value such that the weight of all values up to it reaches q times
	// the total. Upper is the least value such that this weight exceeds q times the total.
	Lower, Upper float64
	// BelowWeight and Below are the sums of weight, and of weight times value, over the values
	// below Lower. AboveWeight and Above are the same sums over the other values.
	BelowWeight, Below, AboveWeight, Above sum
}

// visit adds a distinct value to the state. t.a is its weight.
func (s *quantiles) visit(q float64, t *step) {
	at := float64(q * t.total.a)
	if t.afterA < at {
		s.BelowWeight.add(t.a)
		s.Below.addProduct(t.a, t.value)
		return
	}
	s.AboveWeight.add(t.a)
	s.Above.addProduct(t.a, t.value)
	if !s.HasLower {
		s.HasLower, s.Lower = true, t.value
	}
	if t.afterA > at && !s.HasUpper {
		s.HasUpper, s.Upper = true, t.value
	}
}

// merge adds the state of a sweep over other values. These are all larger, or all smaller, than
// the values of s.
func (s *quantiles) merge(o *quantiles) {
	if o.HasLower && (!s.HasLower || o.Lower < s.Lower) {
		s.HasLower, s.Lower = true, o.Lower
	}
	if o.HasUpper && (!s.HasUpper || o.Upper < s.Upper) {
		s.HasUpper, s.Upper = true, o.Upper
	}
	s.BelowWeight.merge(&o.BelowWeight)
	s.Below.merge(&o.Below)
	s.AboveWeight.merge(&o.AboveWeight)
	s.Above.merge(&o.Above)
}

// value returns the quantile: the mean of Lower and Upper, or Lower if there is no Upper.
func (s *quantiles) value() float64 {
	if !s.HasUpper || s.Lower == s.Upper {
		return s.Lower
	}
	return s.Lower + float64((s.Upper-s.Lower)/2)
}

// loss returns the sum of weight times pinball loss for q if the prediction is Lower. The sum
// is rounded once.
func (s *quantiles) loss(q float64) float64 {
	for _, part := range []*sum{&s.BelowWeight, &s.Below, &s.AboveWeight, &s.Above} {
		if !part.finite() {
			return math.NaN()
		}
	}
	at, share := newExact().SetFloat64(s.Lower), newExact().SetFloat64(q)
	above, below := s.Above.exact(), s.Below.exact()
	above.Sub(above, newExact().Mul(at, s.AboveWeight.exact()))
	below.Sub(newExact().Mul(at, s.BelowWeight.exact()), below)
	above.Mul(above, share)
	below.Mul(below, share.Sub(big.NewFloat(1), share))
	v, _ := above.Add(above, below).Float64()
	return max(v, 0)
}
