package kmeans

import "github.com/superstep-ml/superstep/algorithms/internal/rows"

// gatherer copies scattered rows of a block, at most chunkRows at a time, into one block that a
// searcher can read. It belongs to one goroutine.
type gatherer struct {
	to     block
	dense  []float64
	weight []float64
	near   []int32
	dist   []float64
}

func newGatherer(in input, d int) *gatherer {
	g := &gatherer{near: make([]int32, chunkRows), dist: make([]float64, chunkRows), to: block{d: d}}
	if in.layout == rows.SparseRows {
		g.to.sparse.RowPtr = make([]int64, 1, chunkRows+1)
	} else {
		g.dense = make([]float64, chunkRows*d)
	}
	if in.weighted {
		g.weight = make([]float64, chunkRows)
	}
	return g
}

// take copies the rows of b whose numbers are in which, and returns them as a block. The block
// is valid until the next call.
func (g *gatherer) take(b *block, which []int32) *block {
	d := b.d
	g.to.n = len(which)
	if g.weight != nil {
		for i, row := range which {
			g.weight[i] = b.w[row]
		}
		g.to.w = g.weight[:len(which)]
	}
	if g.dense != nil {
		for i, row := range which {
			copy(g.dense[i*d:(i+1)*d], b.dense[int(row)*d:])
		}
		g.to.dense = g.dense[:len(which)*d]
		return &g.to
	}
	s := &g.to.sparse
	s.RowPtr, s.Col, s.Val = s.RowPtr[:1], s.Col[:0], s.Val[:0]
	for _, row := range which {
		col, val := b.sparse.Row(int(row))
		s.Col, s.Val = append(s.Col, col...), append(s.Val, val...)
		s.RowPtr = append(s.RowPtr, int64(len(s.Col)))
	}
	return &g.to
}
