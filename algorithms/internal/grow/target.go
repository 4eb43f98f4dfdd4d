package grow

import (
	"errors"
	"math"
	"math/bits"

	"github.com/superstep-ml/superstep/internal/kernel"
)

const (
	// packedFrom is the least number of rows of the job for packed pairs in histograms. Smaller
	// jobs use fine pairs, so that results that can be represented exactly are exact.
	packedFrom = 1 << 16
	// packedBits is the number of bits of the absolute value of each value of a packed pair.
	packedBits = 17
	// Packed pairs are used only if the ratio of the largest to the mean absolute gradient, and
	// of the largest to the mean hessian, is at most packedSpread. The mean is then at least
	// 2^17/1024 = 128 units, so the rounding error of a sum over rows is less than 1/400 of its
	// sampling error.
	packedSpread = 1 << 10
	// Sums of fine pairs are at most 2^sumBits. The largest value of n rows is rounded to an
	// integer of at most 2^(sumBits − ⌈log2 n⌉), and no sum has more than n terms: a root sums
	// the rows of a bag, which has at most n rows, and the terms of the sums of bins, leaves
	// and subtasks are a subset of the terms of a root. So every sum of absolute values of
	// terms is at most 2^62. The same holds for a sum minus the sum of a subset of its terms.
	// All these sums fit in int64.
	sumBits = 62
	// largeBits is the largest number of bits of fine pairs in large jobs, as roundHalfEven can
	// round only values below 2^51. The values are float32, which has fewer significant bits.
	largeBits = 48
	// leastExponent is the least exponent for scales, so that their inverses are finite.
	leastExponent = -900
)

// A Target holds the gradient and the hessian of each row of the subtask for one tree. It
// belongs to the State, which reuses its memory in the next batch. A pair is the gradient and
// the hessian of a row as integers. Fine pairs have as many bits as sums allow. Packed pairs
// have packedBits bits per value, and both values are in one word.
type Target struct {
	rows  int
	large bool // the job has at least packedFrom rows
	// Gradients and hessians as they were set. In large jobs they are float32, whose rounding
	// is negligible in sums of many rows; otherwise they are float64.
	g32, h32 []float32
	g64, h64 []float64
	// max has the largest absolute gradient and the largest hessian. Set computes them over the
	// subtask's rows, and quantise replaces them by the maxima over all subtasks. max[0] is NaN
	// if a value is not finite or too large.
	max [2]float64

	packed []int64 // packed pairs, one word per row
	wide   []int64 // fine pairs, two words per row; set if isWide
	// fine has the units of fine pairs, and coarse has the units of the pairs in histograms.
	// isWide reports whether histograms use fine pairs.
	fine, coarse scale
	isWide       bool
	// squares has g²/h of each row, computed from the integers of histograms and multiplied by
	// bySquare. It is set only with LearnCategories; see square.
	squares  []int64
	bySquare float64
	// Sums over the subtask's rows of the absolute values of packed pairs.
	spread [2]int64
}

// scale has the units of the integers: g is the power of two that one unit of an integer
// gradient stands for, h the same for hessians, and byG and byH are 1/g and 1/h.
type scale struct{ g, h, byG, byH float64 }

// exponentsOf returns the scale with which values of at most max are rounded to integers of at
// most 2^bits.
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

// quantise rounds x·by to an integer, half to even. |x·by| must be at most 2^62.
func quantise(x, by float64) int64 { return int64(math.RoundToEven(x * by)) }

// reset discards the values that were set, and prepares the target for n rows.
func (t *Target) reset(n int, large bool) {
	t.rows, t.large, t.isWide = n, large, !large
	t.max, t.spread = [2]float64{}, [2]int64{}
	if large {
		t.g32, t.h32 = kernel.Sized(t.g32, n), kernel.Sized(t.h32, n)
	} else {
		t.g64, t.h64 = kernel.Sized(t.g64, n), kernel.Sized(t.h64, n)
	}
}

// Set stores the gradients g and hessians h of the subtask's rows first, first+1, …. Every row
// must be set once in a batch, in any number of calls. Hessians must be 0 or more. A gradient
// or hessian that is not finite makes the batch fail.
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

// Finite reports whether all gradients and hessians that were set on this subtask are finite
// and not too large. If not, the batch fails.
func (t *Target) Finite() bool { return t.max[0] == t.max[0] }

// quantise rounds the values that were set to integers. max has the maxima over all subtasks,
// and rows is the number of rows of the job. If a maximum is not finite, quantise returns an
// error on every subtask.
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

// roundHalfEven is 1.5·2^52. Adding it to a float64 of magnitude below 2^51 rounds the float64
// to an integer, half to even. The integer is the difference between the bits of the sum and
// roundBits.
const (
	roundHalfEven = 3 << 51
	roundBits     = int64(0x4338000000000000) // the bits of roundHalfEven
)

// pack computes the packed pairs, and sets spread to the sums of their absolute values.
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

// widen computes the fine pairs, for use in histograms.
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

// histogramPair returns the pair of a row that histograms use, fine or packed.
func (t *Target) histogramPair(row int32) (g, h int64) {
	if t.isWide {
		return t.wide[2*int(row)], t.wide[2*int(row)+1]
	}
	return kernel.Unpack(t.packed[row])
}

// sumPairs returns the sums of the fine pairs of rows. It works in large jobs only.
func (t *Target) sumPairs(rows []int32) (g, h int64) {
	byG, byH, h32 := t.fine.byG, t.fine.byH, t.h32[:len(t.g32)]
	for _, r := range rows {
		g += int64(math.Float64bits(float64(float64(t.g32[r])*byG)+roundHalfEven)) - roundBits
		h += int64(math.Float64bits(float64(float64(h32[r])*byH)+roundHalfEven)) - roundBits
	}
	return g, h
}

// uneven reports whether packed pairs are too coarse because the largest gradient or hessian is
// too far above the mean. spread has the sums over all subtasks, and rows is the number of rows
// of the job.
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
