package kernel

import "math"

// Sized returns a slice of n elements with arbitrary contents. It uses the memory of s if that is
// enough.
func Sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// Finite reports whether v is neither a NaN nor an infinity. It does not compute v-v, because the
// compiler could fuse that with a product that is passed as v, and a finite product minus its
// unrounded self need not be 0.
func Finite(v float64) bool { return math.Abs(v) <= math.MaxFloat64 }

// NonFinite returns the index of the first NaN or infinity in x, or -1 if all elements are
// finite.
func NonFinite[T Float](x []T) int {
	for i, v := range x {
		if v-v != 0 { // a NaN, which differs from itself
			return i
		}
	}
	return -1
}

// Argmax returns the index of the largest element of x. If several are the largest, it returns
// the lowest of their indices. A NaN is neither larger nor smaller than any element.
func Argmax(x []float64) int {
	best := 0
	for i, v := range x {
		if v > x[best] {
			best = i
		}
	}
	return best
}
