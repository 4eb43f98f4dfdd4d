package objective

import (
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// passSums are the sums of a pass over a shard.
type passSums struct {
	loss     float64
	gradient []float64 // Margins×stride, for the unscaled features
	stride   int
	out      []float64 // the buffer of which gradient is a part
	unscaled bool      // whether gradient has only the sums by unscaled feature, see wideWork
}

// begin starts a pass over a shard. Loss and gradient will be added to out, which must have
// zeros. If out is nil, they are stored until fold is called.
func (e *evaluator) begin(s *shardRows, out []float64) passSums {
	clear(e.sums)
	clear(e.raw)
	e.width = e.columns(s)
	if s.Columns != nil {
		return e.beginNarrow(s)
	}
	if out == nil {
		buffer, unscaled := e.bufferOf(s)
		if unscaled {
			return passSums{gradient: buffer, stride: e.stride(), unscaled: true}
		}
		out = buffer
	}
	return passSums{gradient: out[1 : 1+e.parameters()], stride: e.stride(), out: out}
}

// addLoss returns sum plus the weighted losses of the batch, added row by row. The batch has
// the rows [lo, lo+n) of the shard. addLoss also sets e.pull, the factors of rows for the
// gradient, from the slopes. A row with weight 0 has no effect, even if its loss is infinite or
// NaN.
func (e *evaluator) addLoss(s *shardRows, lo, n int, sum float64) float64 {
	loss, slope := e.batch.Loss[:n], e.batch.Slope[:n*e.k]
	if s.weight == nil {
		e.pull = slope
		for _, l := range loss {
			sum += l
		}
		return sum
	}
	e.pull = e.coef[:n*e.k]
	weight := s.weight[lo : lo+n]
	for i, w := range weight {
		if w == 0 {
			clear(e.pull[i*e.k : (i+1)*e.k])
			continue
		}
		sum += float64(w * loss[i])
		for a := i * e.k; a < (i+1)*e.k; a++ {
			e.pull[a] = w * slope[a]
		}
	}
	return sum
}

// addGradient adds the rows of b, each multiplied by its pull, to the gradient.
func (e *evaluator) addGradient(b *rows.Block, to *passSums) {
	gradient := to.gradient
	if e.k == 1 {
		if b.Dense != nil {
			kernel.AddScaledRows(b.Dense, b.N, b.D, e.pull, gradient[:e.d])
		} else {
			kernel.AddScaledCSR(b.Sparse, e.pull, gradient[:e.width])
		}
		if !e.intercept {
			return // the sum of the slopes is not needed, and computing it takes time
		}
		sum := e.sums[0]
		for _, c := range e.pull {
			sum += c
		}
		e.sums[0] = sum
		return
	}
	for i := range b.N {
		for a, c := range e.pull[i*e.k : (i+1)*e.k] {
			e.sums[a] += c
		}
	}
	if e.outer() {
		kernel.AddOuterRows(b.Dense, b.N, e.d, e.pull, e.Margins, e.raw)
		return
	}
	single := e.single[:b.N]
	for a := range e.Margins {
		for i := range single {
			single[i] = e.pull[i*e.k+a]
		}
		own := gradient[a*to.stride : a*to.stride+e.width]
		if b.Dense != nil {
			kernel.AddScaledRows(b.Dense, b.N, e.d, single, own)
		} else {
			kernel.AddScaledCSR(b.Sparse, single, own)
		}
	}
}

// outer reports whether the sums by feature are computed in e.raw for all margins together.
// This is done for dense rows with several margins.
func (e *evaluator) outer() bool { return e.packed != nil && e.k == e.Margins }

// finish writes loss and gradient to out. From the sums G of slopes times rows and S of slopes,
// the derivatives by the parameters are (G − mean·S)/scale.
func (e *evaluator) finish(s *shardRows, sum passSums, out []float64) {
	if s.Columns != nil {
		e.finishNarrow(s, sum, out)
		return
	}
	if sum.unscaled {
		e.foldShard(s, sum.loss)
		return
	}
	sum.out[0] += sum.loss
	for a := range e.Margins {
		own := sum.gradient[a*e.stride() : (a+1)*e.stride()]
		if e.outer() {
			copy(own, e.raw[a*e.d:(a+1)*e.d])
		}
		total := e.sums[a]
		e.scaleGradient(own, total)
		if e.intercept {
			own[e.d] = total
		}
	}
	copy(sum.gradient[e.Margins*e.stride():], e.sums[e.Margins:])
}

// scaleGradient converts own, which has the sum of slopes times values of each feature, to
// derivatives by the parameters. total is the sum of the slopes. The results are never −0;
// narrow.go says why this matters.
func (e *evaluator) scaleGradient(own []float64, total float64) {
	own = own[:len(e.inverse)]
	if e.centred {
		kernel.Axpy(-total, e.mean, own)
	}
	kernel.ProdTo(own, e.inverse)
	positiveZeros(own)
}

// positiveZeros replaces −0 by +0.
func positiveZeros(x []float64) {
	for lo := 0; lo < len(x); lo += len(zeros) {
		kernel.AddTo(x[lo:min(lo+len(zeros), len(x))], zeros[:])
	}
}

var zeros [512]float64
