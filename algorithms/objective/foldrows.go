package objective

import (
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// foldRows is used if a step takes at most fewRows rows of each shard.
const fewRows = 64

// foldRowsWork is the memory of foldRows.
type foldRowsWork struct {
	group shardRows   // rows of some shards: copies of labels, weights and offsets, and of features unless each shard has one row
	where [][]float64 // features of single rows, not copied
	none  []float64   // zeros, which replace the row of a shard without rows
	foldStack
}

// foldRows implements Fold of optim.Minibatch. If a step takes one or a few rows of each shard,
// the kernels process rows of many shards in one call. Only the sums over rows are computed for
// each shard separately. foldRows supports dense rows with one margin.
func (e *evaluator) foldRows(shards []int, taken [][]int32, v, out []float64) (bool, error) {
	single := true
	for _, r := range taken {
		if e.k != 1 || len(r) > fewRows {
			return false, nil
		}
		single = single && len(r) == 1
	}
	w := &e.byRow
	w.depth = 0
	for lo := 0; lo < len(shards); {
		hi, n := e.groupRows(shards, taken, lo, single)
		part := e.gatherGroup(shards[lo:hi], taken[lo:hi], n, single)
		if part == nil {
			return false, nil
		}
		if lo == 0 {
			e.point(part, v)
		}
		e.grow(n)
		if single {
			e.evaluateSingles(part, shards[lo:hi])
		} else {
			e.evaluateGroup(part, shards[lo:hi], taken[lo:hi])
		}
		lo = hi
	}
	// Adding +0 turns −0 into +0, so that the sums have the same bits as without foldRows.
	for i, p := range w.total() {
		out[i] = p + 0
	}
	return true, nil
}

// groupRows returns hi so that the rows of shards[lo:hi] fit in the cache, and the number n of
// these rows. If single is set, each shard has one row. These rows are not copied, so n may be
// twice as large. The shards must then be all shards of some nodes that have kernel.LeafCount
// leaves each.
func (e *evaluator) groupRows(shards []int, taken [][]int32, lo int, single bool) (hi, n int) {
	if !single {
		n, hi = len(taken[lo]), lo+1
		for ; hi < len(shards) && n+len(taken[hi]) <= e.longest; hi++ {
			n += len(taken[hi])
		}
		return hi, n
	}
	most := max(2*e.longest, kernel.LeafCount)
	for hi = lo; hi < len(shards); {
		end := hi + node(shards[hi:])
		if end-lo > most {
			break
		}
		hi = end
	}
	return hi, hi - lo
}

// node returns how many of the shards are below the node of shards[0]. A node has
// kernel.LeafCount leaves. The numbers of the shards ascend.
func node(shards []int) int {
	n := 1
	for n < len(shards) && shards[n]/kernel.LeafCount == shards[0]/kernel.LeafCount {
		n++
	}
	return n
}

// evaluateSingles adds to the stack the results of one row of each shard.
func (e *evaluator) evaluateSingles(part *shardRows, shards []int) {
	w := &e.byRow
	m := e.margin[:part.N]
	var rows [kernel.LeafCount][]float64
	var eight [kernel.LeafCount]float64
	for lo := 0; lo < part.N; lo += kernel.LeafCount {
		for i := range rows {
			rows[i] = w.where[min(lo+i, part.N-1)]
		}
		kernel.DotLeaves(&rows, e.beta[:e.d], &eight)
		copy(m[lo:], eight[:])
	}
	e.addTo(m, part.Offset)
	e.lossAt(part, part.Block, 0, m)
	losses, slopes := e.batch.Loss[:part.N], e.batch.Slope[:part.N]
	var coef, loss, weight [kernel.LeafCount]float64
	for lo, hi := 0, 0; lo < part.N; lo = hi {
		hi = lo + node(shards[lo:])
		if hi-lo < kernel.LeafCount {
			// A row of zeros with weight 0 has no effect, as no term of a sum is −0.
			coef, loss, weight = [kernel.LeafCount]float64{}, [kernel.LeafCount]float64{}, [kernel.LeafCount]float64{}
			for i := range rows {
				rows[i] = w.none
			}
		}
		for p, shard := range shards[lo:hi] {
			p, i := lo+p, uint(shard)%kernel.LeafCount
			rows[i], loss[i], coef[i], weight[i] = w.where[p], losses[p]+0, slopes[p]+0, 1
			if part.weight == nil {
				continue
			}
			u := part.weight[p]
			if weight[i] = u; u == 0 {
				loss[i], coef[i] = 0, 0
				continue
			}
			loss[i], coef[i] = float64(u*losses[p])+0, float64(u*slopes[p])+0
		}
		out := w.push(uint32(shards[lo]), 2+e.parameters())
		kernel.FoldLeaves(&rows, &coef, e.mean, e.inverse, out[1:1+e.d])
		out[0] = kernel.FoldEight(&loss)
		if e.intercept {
			out[1+e.d] = kernel.FoldEight(&coef)
		}
		out[len(out)-1] = kernel.FoldEight(&weight)
	}
}

// evaluateGroup adds to the stack the results of the rows of some shards.
func (e *evaluator) evaluateGroup(part *shardRows, shards []int, taken [][]int32) {
	m := e.margin[:part.N]
	e.margins(part.Block, part.Offset, m)
	e.lossAt(part, part.Block, 0, m)
	at := 0
	for i, shard := range shards {
		from := at
		at += len(taken[i])
		out := e.byRow.push(uint32(shard), 2+e.parameters())
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
		clear(gradient)
		kernel.AddScaledRows(part.Dense[from*e.d:at*e.d], len(pull), e.d, pull, gradient)
		e.scaleGradient(gradient, slopes)
		out[0] = loss
		if e.intercept {
			out[1+e.d] = slopes
		}
		out[len(out)-1] = weight
	}
}

// gatherGroup copies the rows of some shards into one block, shard after shard. If each shard
// has a single row, it copies everything except the features, and stores references to the
// features. It returns nil if the features are sparse, or if the multipliers of a Smooth loss
// are no longer 0.
func (e *evaluator) gatherGroup(shards []int, taken [][]int32, n int, single bool) *shardRows {
	w := &e.byRow
	g := e.buffersFor(e.at(shards[0]), n, single)
	b, d, at := g.Block, e.d, 0
	for i, shard := range shards {
		s := e.at(shard)
		block := s.Block
		if block.Dense == nil || s.prox != nil || s.mu != 0 {
			return nil
		}
		for _, row := range taken[i] {
			row := int(row)
			x := block.Dense[row*d : (row+1)*d]
			if single {
				w.where[at] = x
			} else {
				copy(b.Dense[at*d:], x)
			}
			b.Label[at] = block.Label[row]
			if b.Offset != nil {
				b.Offset[at] = block.Offset[row]
			}
			if b.Censor != nil {
				b.Censor[at] = block.Censor[row]
			}
			if g.weight != nil {
				g.weight[at] = s.weight[row]
			}
			at++
		}
	}
	return g
}

// buffersFor returns buffers for n rows. It has a buffer for each field that is set in first.
func (e *evaluator) buffersFor(first *shardRows, n int, single bool) *shardRows {
	w := &e.byRow
	g := &w.group
	if g.Block == nil {
		g.Block = new(rows.Block)
		w.none = make([]float64, e.d)
	}
	b := g.Block
	b.N, b.D = n, e.d
	b.Label = kernel.Sized(b.Label, n)
	if single {
		w.where = kernel.Sized(w.where, n)
	} else {
		b.Dense = kernel.Sized(b.Dense, n*e.d)
	}
	if first.Offset != nil {
		b.Offset = kernel.Sized(b.Offset, n)
	}
	if first.Censor != nil {
		b.Censor = kernel.Sized(b.Censor, n)
	}
	if first.weight != nil {
		g.weight = kernel.Sized(g.weight, n)
	}
	return g
}
