package sharding

import "fmt"

// Range is the half-open interval [Lo, Hi) of integers. They are numbers of shards or rows, or
// positions in a buffer. A Range with Hi <= Lo is empty.
type Range struct {
	Lo int `json:"lo"`
	Hi int `json:"hi"`
}

// Len returns the number of integers in r.
func (r Range) Len() int { return max(r.Hi-r.Lo, 0) }

// Empty reports whether r holds no integer.
func (r Range) Empty() bool { return r.Hi <= r.Lo }

// Contains reports whether x lies in r.
func (r Range) Contains(x int) bool { return r.Lo <= x && x < r.Hi }

// Intersect returns the integers in both r and o. If there are none, the result is empty, with
// Hi equal to Lo.
func (r Range) Intersect(o Range) Range {
	lo := max(r.Lo, o.Lo)
	return Range{lo, max(lo, min(r.Hi, o.Hi))}
}

// String writes r as "[lo,hi)".
func (r Range) String() string { return fmt.Sprintf("[%d,%d)", r.Lo, r.Hi) }

// Split returns part i of the p contiguous parts of 0..n-1. The first n mod p parts have one
// number more than the other parts. The result is empty if there is no part i: if n <= 0, p <=
// 0, or i lies outside 0..p-1.
func Split(n, p, i int) Range {
	if n <= 0 || p <= 0 || i < 0 || i >= p {
		return Range{}
	}
	short, longer := n/p, n%p
	lo := i*short + min(i, longer)
	hi := lo + short
	if i < longer {
		hi++
	}
	return Range{lo, hi}
}

// Owner returns the part i for which Split(n, p, i) contains x, or -1 if x lies outside 0..n-1
// or p <= 0.
func Owner(n, p, x int) int {
	if p <= 0 || x < 0 || x >= n {
		return -1
	}
	short, longer := n/p, n%p
	// If short is 0, every x lies below bound. So the division by short is reached only if
	// short is positive.
	bound := longer * (short + 1)
	if x < bound {
		return x / (short + 1)
	}
	return longer + (x-bound)/short
}
