package grow

import (
	"errors"
	"math"
	"math/bits"

	"github.com/superstep-ml/superstep/internal/kernel"
)

const (
	// packedFrom is the least number of rows of the job for histograms of packed pairs. Smaller
	// jobs use fine pairs, so that results that can be exact are.
	packedFrom = 1 << 16
	// packedBits is the number of bits of the absolute value of each half of a packed pair.
	packedBits = 17
	// packedSpread bounds the ratio of the largest absolute gradient (or hessian) to the mean
	// one; above it, packed pairs are not used. A row of mean size then has at least 2^17/1024
	// = 128 units, so that the rounding error of a sum over rows is less than 1/400 of its
	// sampling error.
	packedSpread = 1 << 10
	// sumBits is the exponent of the bound of sums of fine pairs, 2^sumBits. The largest value
	// of n rows becomes an integer of at most 2^(sumBits − ⌈log2 n⌉), and no sum has more than
	// n terms: a root sums the rows of a bag, at most n, and the sums of bins, leaves and
	// subtasks have some of the terms of a root. So every sum, and every sum of the absolute
	// values of its terms, is at most 2^62. The same holds for a sum minus one of a part of its
	// terms. int64 holds them all.
	sumBits = 62
	// largeBits bounds the bits of fine pairs that come from float32, as roundHalfEven takes
	// values below 2^51. float32 has fewer significant bits anyway.
	largeBits = 48
	// leastExponent bounds scales from below, so that their inverses are finite.
	leastExponent = -900
)

// A Target has the gradient and the hessian of each row of the subtask for one tree. It belongs
// to the State, which reuses its memory in the next batch.
type Target struct {
	rows  int
	large bool // the job has packedFrom rows or more
	// Gradients and hessians as they were set: float32 in large jobs, where the rounding is
	// negligible in sums of many rows, else float64.
	g32, h32 []float32
	g64, h64 []float64
	// Largest absolute gradient and hessian, first of this subtask, later of all; NaN if a
	// value is NaN.
	max [2]float64

	packed []int64 // one for each row
	wide   []int64 // two for each row, where pairs are not packed
	// The units of the integers: of fine pairs, and of the pairs in histograms.
	fine, coarse scale
	isWide       bool
	// g²/h of each row, in units of the integers of histograms, times bySquare; used with
	// LearnCategories, see square.
	squares  []int64
	bySquare float64
	// Sums of absolute values of packed pairs over the rows, first of this subtask, later of
	// all.
	spread [2]int64
}

// scale has the units of the integers, a power of two for gradients (g) and one for hessians
// (h), and their inverses (byG, byH).
type scale struct{ g, h, byG, byH float64 }

// exponentsOf returns the scale for values of at most max as integers of a number of bits.
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

// reset makes room for n rows, and discards the values that were set.
func (t *Target) reset(n int, large bool) {
	t.rows, t.large, t.isWide = n, large, !large
	t.max, t.spread = [2]float64{}, [2]int64{}
	if large {
		t.g32, t.h32 = kernel.Sized(t.g32, n), kernel.Sized(t.h32, n)
	} else {
		t.g64, t.h64 = kernel.Sized(t.g64, n), kernel.Sized(t.h64, n)
	}
}

// Set stores the gradients and hessians of rows first, first+1, … of the subtask. Every row
// must be set once in a batch, in any number of calls. Hessians must be 0 or more. A gradient
// or hessian that is not finite is an error of the batch.
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

// Finite tells whether the gradients and hessians that were set on this subtask are usable. If
// they are not, the batch fails.
func (t *Target) Finite() bool { return t.max[0] == t.max[0] }

// quantise rounds the values that were set to integers, given the maxima over all subtasks and
// the number of rows of the job. It fails, on every subtask alike, if a maximum is not finite.
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

// roundHalfEven is 1.5·2^52. Adding a float64 of magnitude below 2^51 to it rounds that half to
// even, and the low bits of the sum are the integer.
const (
	roundHalfEven = 3 << 51
	roundBits     = int64(0x4338000000000000) // the bits of roundHalfEven
)

// pack makes packed pairs, and sums their absolute values into spread.
func (t *Target) pack() {
	t.packed = kernel.Sized(t.packed, t.rows)
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
	t.wide = kernel.Sized(t.wide, 2*t.rows)
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

// histogramPair returns the pair of a row as histograms use it.
func (t *Target) histogramPair(row int32) (g, h int64) {
	if t.isWide {
		return t.wide[2*int(row)], t.wide[2*int(row)+1]
	}
	return kernel.Unpack(t.packed[row])
}

// sumPairs sums the fine pairs of rows; it is for large jobs.
func (t *Target) sumPairs(rows []int32) (g, h int64) {
	byG, byH, h32 := t.fine.byG, t.fine.byH, t.h32[:len(t.g32)]
	for _, r := range rows {
		g += int64(math.Float64bits(float64(float64(t.g32[r])*byG)+roundHalfEven)) - roundBits
		h += int64(math.Float64bits(float64(float64(h32[r])*byH)+roundHalfEven)) - roundBits
	}
	return g, h
}

// uneven tells whether packed pairs are too coarse, as the largest gradient or hessian is too
// far above the mean. spread and rows are those of all subtasks.
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
