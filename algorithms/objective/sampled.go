package objective

import (
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// sampleWork is the memory for a chunk of sampled rows.
type sampleWork struct {
	block   shardRows
	buffers rows.Block // memory for the slices of block
	prox    []float64
}

// rowCount implements Rows of optim.Minibatch.
func (e *evaluator) rowCount(shard int) int {
	if s := e.at(shard); s != nil {
		return s.N
	}
	return 0
}

// evaluateRows implements Evaluate of optim.Minibatch. It copies the rows into a block, one
// chunk at a time.
func (e *evaluator) evaluateRows(shard int, indices []int32, v, out []float64) error {
	s := e.at(shard)
	e.point(s, v)
	sum := e.begin(s, out)
	var weight float64
	for lo := 0; lo < len(indices); lo += s.chunk {
		if err := e.interrupted(); err != nil {
			return err
		}
		part := e.gather(s, indices[lo:min(lo+s.chunk, len(indices))])
		m := e.margin[:part.N*e.k]
		e.margins(part.Block, part.Offset, m)
		e.lossAt(part, part.Block, 0, m)
		sum.loss = e.addLoss(part, 0, part.N, sum.loss)
		e.addGradient(part.Block, &sum)
		if part.weight == nil {
			weight += float64(part.N)
		}
		for _, w := range part.weight {
			weight += w
		}
	}
	e.finish(s, sum, out)
	out[1+e.parameters()] += weight
	return nil
}

// gather returns a block with copies of the rows of s that have the given indices.
func (e *evaluator) gather(s *shardRows, indices []int32) *shardRows {
	part := e.gatherLabels(s, indices)
	b, room, n := part.Block, &e.sample.buffers, len(indices)
	if s.Dense != nil {
		room.Dense = kernel.Sized(room.Dense, s.chunk*s.D)
		b.Dense = room.Dense[:n*s.D]
		for i, row := range indices {
			copy(b.Dense[i*s.D:(i+1)*s.D], s.Dense[int(row)*s.D:])
		}
	} else {
		b.Sparse = e.gatherSparse(s, indices)
	}
	return part
}

// gatherLabels returns a block with copies of everything except features, for the rows of s
// that have the given indices.
func (e *evaluator) gatherLabels(s *shardRows, indices []int32) *shardRows {
	w := &e.sample
	room := &w.buffers
	if w.block.Block == nil {
		w.block.Block = new(rows.Block)
	}
	b := w.block.Block
	*b = rows.Block{N: len(indices), D: s.D, Columns: s.Columns}
	b.Label = pick(&room.Label, s.Label, s.chunk, indices)
	b.Censor = pick(&room.Censor, s.Censor, s.chunk, indices)
	b.Offset = pick(&room.Offset, s.Offset, s.chunk, indices)
	w.block.weight = pick(&room.Weight, s.weight, s.chunk, indices)
	w.block.mu = s.mu
	w.block.prox = pick(&w.prox, s.prox, s.chunk, indices)
	return &w.block
}

// gatherSparse returns copies of the sparse rows of s that have the given indices.
func (e *evaluator) gatherSparse(s *shardRows, indices []int32) kernel.CSR {
	x := &e.sample.buffers.Sparse
	x.RowPtr, x.Col, x.Val = append(x.RowPtr[:0], 0), x.Col[:0], x.Val[:0]
	for _, row := range indices {
		col, val := s.Sparse.Row(int(row))
		x.Col, x.Val = append(x.Col, col...), append(x.Val, val...)
		x.RowPtr = append(x.RowPtr, int64(len(x.Col)))
	}
	return *x
}

// pick copies the values of the slice from at the given indices to the buffer room, and returns
// them. It allocates the buffer for most values if necessary. If the slice from is nil, pick
// returns nil.
func pick(room *[]float64, from []float64, most int, indices []int32) []float64 {
	if from == nil {
		return nil
	}
	*room = kernel.Sized(*room, most)
	to := (*room)[:len(indices)]
	for i, row := range indices {
		to[i] = from[row]
	}
	return to
}
