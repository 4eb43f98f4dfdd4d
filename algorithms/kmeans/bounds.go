package kmeans

import (
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// This file has lower bounds on distances. Centres that bounds rule out are skipped. The
// following explains why this does not change any bit of the results.
//
// A bound belongs to a row and a group of centres. The distance from the row to each centre of
// the group, except the row's own centre, is at least the bound. When a centre moves, its
// distance to a row shrinks by no more than the length of the move (triangle inequality). So a
// bound that was computed in one superstep is valid in later supersteps if the longest move of
// a centre in the group is subtracted in each later superstep. With one group this is Hamerly's
// algorithm (Making k-means even faster, SDM 2010). With a group for each centre it is Elkan's
// algorithm (Using the triangle inequality to accelerate k-means, ICML 2003). With several
// groups it is the algorithm of Ding, Zhao, Shen, Musuvathi and Mytkowicz (Yinyang k-means,
// ICML 2015).
//
// The drift of a group is the sum, over the supersteps so far, of the longest move of its
// centres. The stored number is the bound plus the drift of the group at the time when the
// bound was computed. So moves do not require updates of the stored numbers: the current bound
// is the stored number minus the current drift.
//
// # Rounding
//
// The nearest centre is the centre with the smallest computed squared distance. Of several
// centres with the same computed distance, the centre with the lowest number is the nearest.
// Let D be the computed squared distance of the row's own centre. Another centre may be skipped
// if its computed squared distance D' would be greater than D. Let u be the rounding unit of
// the type of distances, e = (d+2)·u the bound of the relative error of a squared distance if
// nothing underflows, and s = 4(d+8)·u. Everything below is computed in float64, whose unit is
// u or less.
//
//   - Computing a bound (keeps): let m be a group's smallest computed squared distance. Then
//     √m·(1−s) is a lower bound of the true distances, because √(m/(1+e)) ≥ √m·(1−e/2), and the
//     roundings of the root, the difference and the product are far below the remaining part of
//     s. If m is so small that squares underflow, the bound is 0. If m is infinite, the
//     distance is at least the root of the largest number, which is used instead of m.
//   - Storing it (keeps): bound + drift is multiplied by 1 − 2⁻²² before it is rounded to
//     float32. This outweighs the errors of the sum and of both roundings. A number below the
//     normal numbers of float32 is stored as 0, and a number above them as the largest float32.
//   - Moving (moves and drifts): let m be the computed squared distance between the old and the
//     new position of a centre. Then √max(m, tiny)·(1+s) is at least the true length of the
//     move. Each sum that adds it to the drift is multiplied by 1 + 2⁻⁵¹, so differences of
//     drifts are at least the true lengths of moves.
//   - Testing (asks): the centres of a group are skipped if stored − drift ≥ r with r = √max(D,
//     4·tiny)·(1+s). The difference has the relative error of one rounding, so the true
//     distance δ to each centre is at least r·(1−u), and D' ≥ δ²·(1−e) ≥ max(D,
//     4·tiny)·(1−3u)²·(1+s)²·(1−e) > max(D, 4·tiny), as 2s > e+6u; nothing underflows at
//     4·tiny. If D is infinite, no group is skipped, and all centres are searched.
//
// A stored number of 0 means that nothing is known about a group: the test never skips it,
// because r is always greater.

// limits has s, tiny and huge for squared distances in d dimensions that are computed in
// float32 or float64.
type limits struct {
	slack float64 // s
	tiny  float64 // squared distances of tiny or more do not suffer from underflow
	huge  float64 // the largest number
}

func limitsOf[T kernel.Float](d int) limits {
	if T(1)+T(0x1p-40) == 1 { // float32
		return limits{slack: 4 * float64(d+8) * 0x1p-24, tiny: 0x1p-90, huge: math.MaxFloat32}
	}
	return limits{slack: 4 * float64(d+8) * 0x1p-53, tiny: 0x1p-900, huge: math.MaxFloat64}
}

// asks returns r for d2, the squared distance of a row to its own centre.
func (l limits) asks(d2 float64) float64 { return math.Sqrt(max(d2, 4*l.tiny)) * (1 + l.slack) }

// keeps returns the number to store for a group whose smallest computed squared distance is m,
// when the drift of the group is drift.
func (l limits) keeps(m, drift float64) float32 {
	if m < l.tiny {
		return 0
	}
	v := (float64(math.Sqrt(min(m, l.huge))*(1-l.slack)) + drift) * (1 - 0x1p-22)
	if v < 0x1p-126 {
		return 0
	}
	return float32(min(v, math.MaxFloat32))
}

// moves returns an upper bound of the length of a move whose computed squared length is m.
func (l limits) moves(m float64) float64 { return math.Sqrt(max(m, l.tiny)) * (1 + l.slack) }

// drifts returns an upper bound of drift + move, which is the drift of a group after a move.
func drifts(drift, move float64) float64 { return (drift + move) * (1 + 0x1p-51) }

// boundsShare is the largest memory for the bounds of a shard, as a fraction of the memory of
// its rows.
const boundsShare = 0.25

// groupWidth is the number of centres of a group. Groups are larger if the memory for bounds is
// too small for groups of this width. It is eight because the distances of eight centres are
// computed together.
const groupWidth = 8

// groupsFor returns the number of bounds for each row, which is the number of groups of the k
// centres. A row has d values of size bytes each. groupsFor returns 0 if there is no memory for
// bounds.
func groupsFor(k, d, size int) int {
	return min((k+groupWidth-1)/groupWidth, int(boundsShare*float64(d*size))/4)
}
