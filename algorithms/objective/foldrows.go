package objective

import (
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// fewRows is up to how many rows of a shard FoldRows takes.
const fewRows = 64

// foldRowsWork is the room that FoldRows needs.
type foldRowsWork struct {
	group shardRows // rows of some shards, copied together
	// The way up the tree over shards, as in spine: what subtrees come to that wait for
	// what lies to their right, and behind them room for the next shard.
	depth int
	first [24]uint32
	parts [][]float64
}

// FoldRows implements optim.FoldingSampledEvaluator. Where a step takes a row or a few of
// each shard, those of many shards go through the kernels together; only the sums are
// those of a shard. It takes dense rows of one margin.
func (e *Evaluator) FoldRows(shards []int, taken [][]int32, v, out []float64) (bool, error) {
	for i, r := range taken {
		s := e.at(shards[i])
		if e.k != 1 || len(r) > fewRows || s.Dense == nil || s.prox != nil || s.mu != 0 {
			return false, nil
		}
	}
	w := &e.byRow
	w.depth = 0
	for lo := 0; lo < len(shards); {
		n, hi := len(taken[lo]), lo+1
		for ; hi < len(shards) && n+len(taken[hi]) <= e.longest; hi++ {
			n += len(taken[hi])
		}
		e.evaluateGroup(shards[lo:hi], taken[lo:hi], n, v)
		lo = hi
	}
	if w.depth == 0 {
		return true, nil
	}
	for ; w.depth > 1; w.depth-- {
		kernel.AddTo(w.parts[w.depth-2], w.parts[w.depth-1])
	}
	copy(out, w.parts[0])
	return true, nil
}

// evaluateGroup adds what rows of some shards, n in all, give to the way up the tree.
func (e *Evaluator) evaluateGroup(shards []int, taken [][]int32, n int, v []float64) {
	part := e.gatherGroup(shards, taken, n)
	e.grow(n)
	e.point(part, v)
	m := e.margin[:n]
	e.margins(part.Block, part.Offset, m)
	e.lossAt(part, part.Block, 0, m)
	at := 0
	for i, shard := range shards {
		from := at
		at += len(taken[i])
		out := e.meet(uint32(shard))
		gradient := out[1 : 1+e.d]
		var loss, slopes, weight float64
		pull := e.batch.Slope[from:at]
		if part.weight == nil {
			for _, l := range e.batch.Loss[from:at] {
				loss += l
			}
			weight = float64(len(pull))
		} else {
			for p, u := range part.weight[from:at] {
				weight += u
				if u == 0 {
					pull[p] = 0
					continue
				}
				loss += float64(u * e.batch.Loss[from+p])
				pull[p] *= u
			}
		}
		for _, c := range pull {
			slopes += c
		}
		if rows := part.Dense[from*e.d : at*e.d]; len(pull) == 1 {
			e.scaleRow(rows, slopes, gradient)
		} else {
			clear(gradient)
			kernel.AddScaledRows(rows, len(pull), e.d, pull, gradient)
			e.scaleGradient(gradient, slopes)
		}
		out[0] = loss
		if e.intercept {
			out[1+e.d] = slopes
		}
		out[len(out)-1] = weight
	}
}

// scaleRow is scaleGradient for the sum of one row times its slope, in one pass.
func (e *Evaluator) scaleRow(x []float64, slope float64, own []float64) {
	inverse := e.inverse
	x, own = x[:len(inverse)], own[:len(inverse)]
	if !e.centred {
		for j, by := range inverse {
			own[j] = float64(float64(slope*x[j])*by) + 0
		}
		return
	}
	mean := e.mean[:len(inverse)]
	for j, by := range inverse {
		own[j] = float64((float64(slope*x[j])+float64(-slope*mean[j]))*by) + 0
	}
}

// meet merges the subtrees that nothing can come between any more, and returns a buffer
// for the part of a shard, to be filled: loss, gradient and weight.
func (e *Evaluator) meet(shard uint32) []float64 {
	w := &e.byRow
	for ; w.depth >= 2 && w.first[w.depth-2]^w.first[w.depth-1] < w.first[w.depth-1]^shard; w.depth-- {
		kernel.AddTo(w.parts[w.depth-2], w.parts[w.depth-1])
	}
	if len(w.parts) == w.depth {
		w.parts = append(w.parts, make([]float64, 2+e.parameters()))
	}
	out := w.parts[w.depth]
	w.first[w.depth] = shard
	w.depth++
	return out
}

// gatherGroup copies rows of some shards together, those of each one behind the other.
// They are rows of losses without multipliers of a Smooth, see FoldRows.
func (e *Evaluator) gatherGroup(shards []int, taken [][]int32, n int) *shardRows {
	w := &e.byRow
	g, first := &w.group, e.at(shards[0])
	if g.Block == nil {
		g.Block = new(rows.Block)
	}
	b := g.Block
	b.N, b.D = n, e.d
	b.Dense, b.Label = atLeast(b.Dense, n*e.d), atLeast(b.Label, n)
	if first.Offset != nil {
		b.Offset = atLeast(b.Offset, n)
	}
	if first.Censor != nil {
		b.Censor = atLeast(b.Censor, n)
	}
	if first.weight != nil {
		g.weight = atLeast(g.weight, n)
	}
	at := 0
	for i, shard := range shards {
		s := e.at(shard)
		for _, row := range taken[i] {
			copy(b.Dense[at*e.d:(at+1)*e.d], s.Dense[int(row)*e.d:])
			b.Label[at] = s.Label[row]
			if b.Offset != nil {
				b.Offset[at] = s.Offset[row]
			}
			if b.Censor != nil {
				b.Censor[at] = s.Censor[row]
			}
			if g.weight != nil {
				g.weight[at] = s.weight[row]
			}
			at++
		}
	}
	return g
}
