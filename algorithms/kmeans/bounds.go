package kmeans

import (
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// Lower bounds on distances, and why skipping what they rule out changes no bit.
//
// A bound belongs to a row and a group of centres. No centre of the group is nearer to the row
// than the bound, the row's own centre left out. When a centre moves, a distance shrinks by no
// more than the centre moved (triangle inequality). So a bound taken in one superstep holds in
// later ones, less the farthest move of the group in each of them. With one bound per row this
// is Hamerly's algorithm (Making k-means even faster, SDM 2010), with one per centre Elkan's
// (Using the triangle inequality to accelerate k-means, ICML 2003), and with one per group that
// of Ding, Zhao, Shen, Musuvathi and Mytkowicz (Yinyang k-means, ICML 2015).
//
// The drift of a group is the sum of its farthest moves so far. The number kept is the bound
// plus the drift of the group when the bound was taken. So moves need no pass over the bounds:
// today's bound is the number kept less today's drift.
//
// # Rounding
//
// The nearest centre is defined by the bits of computed squared distances; of equal ones the
// lowest centre counts. A centre may be skipped if its computed squared distance D' would be
// greater than that of the row's own centre, D. Let u be the unit of rounding of the distances'
// type, e = (d+2)·u the bound of the relative error of a squared distance where nothing
// underflows, and s = 4(d+8)·u. Everything below is computed in float64, whose unit is u or
// less.
//
//   - Taking: let m be a group's least computed squared distance. Then √m·(1−s) is a bound on
//     true distances, since √(m/(1+e)) ≥ √m·(1−e/2), and the roundings of root, difference and
//     product are far below the rest of s. An m that is too small for this, where squares
//     underflow, gives the bound 0. An infinite m means a distance of at least the root of the
//     largest number, which is taken instead.
//   - Keeping: bound + drift is scaled down by 1 − 2⁻²² before it is rounded to float32. This
//     is more than the errors of the sum and of both roundings. A number below float32's normal
//     numbers is kept as 0, one above them as the largest.
//   - Moving: let m be the computed squared distance between a centre's old and new place. Then
//     √max(m, tiny)·(1+s) is no less than the true move. Each sum that adds it to the drift is
//     scaled up by 1 + 2⁻⁵¹, so differences of drifts are no less than the true moves.
//   - Asking: the centres of a group are skipped if kept − drift ≥ r with r = √max(D,
//     4·tiny)·(1+s). The difference has the relative error of one rounding, so the true
//     distance δ to each centre is at least r·(1−u), and D' ≥ δ²·(1−e) ≥ max(D,
//     4·tiny)·(1−3u)²·(1+s)²·(1−e) > max(D, 4·tiny), as 2s > e+6u; nothing underflows at
//     4·tiny. An infinite D rules nothing out: such rows are searched.
//
// A kept number of 0 means that nothing is known: no r is that small.

// limits are the constants of a type of distance in d dimensions.
type limits struct {
	slack float64 // s
	tiny  float64 // squared distances of at least this do not suffer from underflow
	huge  float64 // the largest number
}

func limitsOf[T kernel.Float](d int) limits {
	if T(1)+T(0x1p-40) == 1 { // float32
		return limits{slack: 4 * float64(d+8) * 0x1p-24, tiny: 0x1p-90, huge: math.MaxFloat32}
	}
	return limits{slack: 4 * float64(d+8) * 0x1p-53, tiny: 0x1p-900, huge: math.MaxFloat64}
}

// asks returns r for the squared distance of a row to its own centre.
func (l limits) asks(d2 float64) float64 { return math.Sqrt(max(d2, 4*l.tiny)) * (1 + l.slack) }

// keeps returns the number to keep for a group whose least computed squared distance
// is m, at a drift.
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

// moves returns a number that is no less than the move whose computed squared length
// is m.
func (l limits) moves(m float64) float64 { return math.Sqrt(max(m, l.tiny)) * (1 + l.slack) }

// drifts adds a move to a drift.
func drifts(drift, move float64) float64 { return (drift + move) * (1 + 0x1p-51) }

// boundsShare is the largest size of bounds, as a share of the size of their rows.
const boundsShare = 0.25

// groupWidth is how many centres a group has, unless there is too little room for so many
// bounds: the distances of eight centres are computed together.
const groupWidth = 8

// groupsFor returns how many bounds a row of d values, of size bytes each, gets for k centres.
// It is 0 where there is no room for any.
func groupsFor(k, d, size int) int {
	return min((k+groupWidth-1)/groupWidth, int(boundsShare*float64(d*size))/4)
}
