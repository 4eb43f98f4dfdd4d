package grow

import (
	"errors"
	"math"
	"math/bits"

	"github.com/superstep-ml/superstep/internal/kernel"
)

const (
	// packedFrom is the smallest number of rows of the job for which histograms may use packed
	// pairs. Smaller jobs use fine pairs, so that sums that float64 can represent are exact.
	packedFrom = 1 << 16
	// packedBits is the number of bits of the absolute value of each value of a packed pair.
	packedBits = 17
	// Packed pairs are used only if the largest absolute gradient is at most packedSpread times
	// the mean absolute gradient, and the largest hessian at most packedSpread times the mean
	// hessian. The means are then at least 2^17/1024 = 128 units, so the rounding error of a
	// sum over rows is less than 1/400 of its sampling error.
	packedSpread = 1 << 10
	// Sums of fine pairs are at most 2^sumBits. Let n be the number of rows of the job. The
	// largest value is rounded to an integer of at most 2^(sumBits − ⌈log2 n⌉). No sum has more
	// than n terms: the sum of a root has a term for each row of a bag, which has at most n
	// rows, and the sums of bins, leaves and subtasks have a subset of these terms. So every
	// sum of absolute values of terms is at most 2^62. The same holds for a sum minus the sum
	// of a subset of its terms. All these sums fit in int64.
	sumBits = 62
	// largeBits is the largest number of bits of fine pairs in large jobs, because adding
	// roundHalfEven rounds only values below 2^51 correctly. No accuracy is lost: the values
	// are float32, which has only 24 significant bits.
	largeBits = 48
	// leastExponent is the smallest exponent of the power of two from which a scale is
	// computed. It ensures that the inverses of scales are finite.
	leastExponent = -900
)

// A Target holds the gradient and the hessian of each row of the subtask for one tree. The
// State owns the Target and reuses it in the next batch. A pair is the gradient and the hessian
// of a row as integers. Fine pairs have as many bits as possible without overflow of sums.
// Packed pairs have packedBits bits per value, and both values are in one word.
type Target struct {
	rows  int
	large bool // whether the job has at least packedFrom rows
	// These are the gradients and hessians that Set was given. In large jobs they are stored as
	// float32, whose rounding errors are negligible in sums of many rows; otherwise they are
	// stored as float64.
	g32, h32 []float32
	g64, h64 []float64
	// max has the largest absolute gradient and the largest hessian. Set computes the maxima
	// over the subtask's rows, and quantise replaces them by the maxima over all subtasks.
	// max[0] is NaN if a value is not finite or too large.
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
	// spread has the sums, over the subtask's rows, of the absolute values of the gradients and
	// of the hessians in packed pairs.
	spread [2]int64
}

// scale has the units of the integers: an integer gradient of 1 means the gradient g, and an
// integer hessian of 1 means the hessian h. g and h are powers of two. byG and byH are 1/g and
// 1/h.
type scale struct{ g, h, byG, byH float64 }

// exponentsOf returns the scale in which gradients of at most max[0] and hessians of at most
// max[1] are rounded to integers of at most 2^bits.
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

// reset discards the gradients and hessians, and prepares the target for n rows.
func (t *Target) reset(n int, large bool) {
	t.rows, t.large, t.isWide = n, large, !large
	t.max, t.spread = [2]float64{}, [2]int64{}
	if large {
		t.g32, t.h32 = kernel.Sized(t.g32, n), kernel.Sized(t.h32, n)
	} else {
		t.g64, t.h64 = kernel.Sized(t.g64, n), kernel.Sized(t.h64, n)
	}
}

// Set stores the gradients g and hessians h of the subtask's rows first, first+1, …. In each
// batch, the caller must set every row exactly once, with any number of calls. Hessians must be
// 0 or more. A gradient or hessian that is not finite makes the batch fail.
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
// and not too large. If it returns false, the batch fails.
func (t *Target) Finite() bool { return t.max[0] == t.max[0] }

// quantise rounds gradients and hessians to integers. max has the maxima over all subtasks, and
// rows is the number of rows of the job. If a maximum is not finite, quantise returns an error
// on every subtask.
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

// roundHalfEven is 1.5·2^52. Adding it to a float64 of magnitude below 2^51 rounds this float64
// to an integer, half to even. The integer is the bits of the sum minus roundBits.
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

// pair computes and returns the fine pair of a row.
func (t *Target) pair(row int32) (g, h int64) {
	if t.large {
		return quantise(float64(t.g32[row]), t.fine.byG), quantise(float64(t.h32[row]), t.fine.byH)
	}
	return quantise(t.g64[row], t.fine.byG), quantise(t.h64[row], t.fine.byH)
}

// histogramPair returns the pair of a row that histograms use, which is fine or packed.
func (t *Target) histogramPair(row int32) (g, h int64) {
	if t.isWide {
		return t.wide[2*int(row)], t.wide[2*int(row)+1]
	}
	return kernel.Unpack(t.packed[row])
}

// sumPairs returns the sums of the fine pairs of rows. It may be called only in large jobs.
func (t *Target) sumPairs(rows []int32) (g, h int64) {
	byG, byH, h32 := t.fine.byG, t.fine.byH, t.h32[:len(t.g32)]
	for _, r := range rows {
		g += int64(math.Float64bits(float64(float64(t.g32[r])*byG)+roundHalfEven)) - roundBits
		h += int64(math.Float64bits(float64(float64(h32[r])*byH)+roundHalfEven)) - roundBits
	}
	return g, h
}

// uneven reports whether packed pairs are too coarse because the largest gradient or hessian is
// more than packedSpread times the mean. spread has the sums of Target.spread over all
// subtasks, and rows is the number of rows of the job.
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
