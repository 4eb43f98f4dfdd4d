package grow

import (
	"errors"
	"math"
	"math/bits"

	"github.com/superstep-ml/superstep/internal/kernel"
)

const (
	// packedFrom is the number of rows of the job from which on histograms are summed from
	// packed pairs. Smaller jobs take the fine ones, so that what is exactly computable is.
	packedFrom = 1 << 16
	// packedBits are those of the absolute value of each half of a packed pair.
	packedBits = 17
	// packedSpread is how many times the mean absolute gradient (or hessian) the largest may
	// be for packed pairs to be used: a row of the mean still has 2^17/1024 = 128 units, so
	// that rounding adds to a sum over rows less than 1/400 of what chance adds to it.
	packedSpread = 1 << 10
	// sumBits are those of the largest sum of fine pairs, as a power of two. The largest
	// value of n rows becomes an integer of at most 2^(sumBits − ⌈log2 n⌉), and no sum has
	// more than n terms: roots sum the rows of a bag, of which there are at most n, and what
	// else is summed, of bins, leaves and subtasks, are some of the terms of a root. So every
	// sum, and every sum of the absolute values of its terms, is at most 2^62; so is a
	// difference of sums where the one has the terms of the other, and int64 holds them all.
	sumBits = 62
	// largeBits bounds those of fine pairs that come from float32, of which few have so many:
	// roundHalfEven takes values below 2^51.
	largeBits = 48
	// leastExponent bounds scales from below, so that their inverses are finite.
	leastExponent = -900
)

// A Target is what a tree is grown for: gradient and hessian of each row of the subtask. It
// belongs to the State, which uses its memory again batch by batch.
type Target struct {
	rows  int
	large bool // the job has packedFrom rows or more
	// Gradients and hessians as they were set: float32 in large jobs, where sums of many
	// rows hide what is rounded, float64 in others.
	g32, h32 []float32
	g64, h64 []float64
	// Largest absolute gradient and hessian; NaN if one is. Then those of all subtasks.
	max [2]float64

	packed []int64 // of each row
	wide   []int64 // two of each row, where not packed
	// What one unit of the integers is worth: fine, and those that histograms have.
	fine, coarse scale
	isWide       bool
	// g²/h of each row in units of the integers of histograms times bySquare, where categories
	// are learnt; see square.
	squares  []int64
	bySquare float64
	// Sums of absolute values of packed pairs over the rows, of all subtasks in the end.
	spread [2]int64
}

// scale has a power of two for gradients and one for hessians: what 1 is worth. The factors
// are their inverses.
type scale struct{ g, h, byG, byH float64 }

// exponentsOf returns the scale of integers of some bits for values up to the given ones.
func exponentsOf(max [2]float64, bits int) scale {
	unit := func(m float64) float64 {
		_, e := math.Frexp(m) // m < 2^e
		if m == 0 || e < leastExponent {
			e = leastExponent
		}
		if f, _ := math.Frexp(m); f == 0.5 {
			e-- // m = 2^(e-1)
		}
		return math.Ldexp(1, e-bits)
	}
	g, h := unit(max[0]), unit(max[1])
	return scale{g, h, 1 / g, 1 / h}
}

// quantise rounds x·by to an integer, half to even. |x·by| is at most 2^62.
func quantise(x, by float64) int64 { return int64(math.RoundToEven(x * by)) }

// reset makes room for n rows and forgets what was set.
func (t *Target) reset(n int, large bool) {
	t.rows, t.large, t.isWide = n, large, !large
	t.max, t.spread = [2]float64{}, [2]int64{}
	if large {
		t.g32, t.h32 = sized(t.g32, n), sized(t.h32, n)
	} else {
		t.g64, t.h64 = sized(t.g64, n), sized(t.h64, n)
	}
}

// sized returns a slice of n elements whose contents are of no use.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// Set stores gradients and hessians of rows first, first+1, … of the subtask. Every row is
// set once in a batch, by as many calls as is convenient. Hessians are expected to be 0 or
// more; a gradient or hessian that is not finite is an error of the batch.
func (t *Target) Set(first int, g, h []float64) {
	h = h[:len(g)]
	maxG, maxH := t.max[0], t.max[1]
	bad := false
	if t.large {
		g32, h32 := t.g32[first:][:len(g)], t.h32[first:][:len(g)]
		for i, v := range g {
			w := h[i]
			g32[i], h32[i] = float32(v), float32(w)
			v, w = math.Abs(v), math.Abs(w)
			if v > maxG {
				maxG = v
			}
			if w > maxH {
				maxH = w
			}
			bad = bad || !(v <= math.MaxFloat32/2) || !(w <= math.MaxFloat32/2)
		}
	} else {
		copy(t.g64[first:], g)
		copy(t.h64[first:], h)
		for i, v := range g {
			v, w := math.Abs(v), math.Abs(h[i])
			if v > maxG {
				maxG = v
			}
			if w > maxH {
				maxH = w
			}
			bad = bad || !(v <= math.MaxFloat64/2) || !(w <= math.MaxFloat64/2)
		}
	}
	t.max = [2]float64{maxG, maxH}
	if bad {
		t.max[0] = math.NaN()
	}
}

// Finite tells whether the gradients and hessians that were set on this subtask are numbers
// that the batch can be grown on; if not it fails.
func (t *Target) Finite() bool { return t.max[0] == t.max[0] }

// quantise makes integers of what was set, given the maxima of all subtasks and the number
// of all rows. It fails, on every subtask alike, if one is not finite.
func (t *Target) quantise(max [2]float64, rows int64) error {
	if !(max[0] <= math.MaxFloat64) || !(max[1] <= math.MaxFloat64) {
		return errors.New("a gradient or hessian is not finite or too large")
	}
	t.max = max
	fine := sumBits - bits.Len64(uint64(rows-1)) // ⌈log2 rows⌉
	if t.large {
		fine = min(fine, largeBits)
	}
	t.fine = exponentsOf(max, fine)
	if t.large {
		t.coarse = exponentsOf(max, packedBits)
		t.pack()
	} else {
		t.widen()
	}
	return nil
}

// roundHalfEven is 1.5·2^52: a float64 of magnitude below 2^51 that is added to it loses its
// fraction, rounded half to even, and the low bits of the sum are the integer.
const (
	roundHalfEven = 3 << 51
	roundBits     = int64(0x4338000000000000) // those of the float64
)

// pack makes packed pairs and sums their absolute values.
func (t *Target) pack() {
	t.packed = sized(t.packed, t.rows)
	byG, byH := t.coarse.byG, t.coarse.byH
	h32 := t.h32[:len(t.g32)]
	out := t.packed[:len(t.g32)]
	var sumG, sumH int64
	for i, v := range t.g32 {
		g := int64(math.Float64bits(float64(float64(v)*byG)+roundHalfEven)) - roundBits
		h := int64(math.Float64bits(float64(float64(h32[i])*byH)+roundHalfEven)) - roundBits
		out[i] = kernel.Pack(g, h)
		sumG += max(g, -g)
		sumH += max(h, -h)
	}
	t.spread = [2]int64{sumG, sumH}
}

// widen makes fine pairs.
func (t *Target) widen() {
	t.isWide, t.coarse = true, t.fine
	t.wide = sized(t.wide, 2*t.rows)
	for i := range t.rows {
		t.wide[2*i], t.wide[2*i+1] = t.pair(int32(i))
	}
}

// pair returns the fine pair of a row.
func (t *Target) pair(row int32) (g, h int64) {
	if t.large {
		return quantise(float64(t.g32[row]), t.fine.byG), quantise(float64(t.h32[row]), t.fine.byH)
	}
	return quantise(t.g64[row], t.fine.byG), quantise(t.h64[row], t.fine.byH)
}

// histogramPair returns the pair of a row that histograms have.
func (t *Target) histogramPair(row int32) (g, h int64) {
	if t.isWide {
		return t.wide[2*int(row)], t.wide[2*int(row)+1]
	}
	return kernel.Unpack(t.packed[row])
}

// sumPairs sums the fine pairs of rows, of large jobs.
func (t *Target) sumPairs(rows []int32) (g, h int64) {
	byG, byH, h32 := t.fine.byG, t.fine.byH, t.h32[:len(t.g32)]
	for _, r := range rows {
		g += int64(math.Float64bits(float64(float64(t.g32[r])*byG)+roundHalfEven)) - roundBits
		h += int64(math.Float64bits(float64(float64(h32[r])*byH)+roundHalfEven)) - roundBits
	}
	return g, h
}

// uneven tells whether the largest gradient or hessian is so far above the mean of so many
// rows that packed pairs are too coarse. spread is that of all subtasks.
func (t *Target) uneven(spread [2]int64, rows int64) bool {
	if !t.large {
		return false
	}
	for _, s := range spread {
		if s > 0 && float64(s)*packedSpread < float64(rows)*(1<<packedBits) {
			return true
		}
	}
	return false
}
