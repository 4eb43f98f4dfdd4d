package forest

import (
	"math"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
	"github.com/superstep-ml/superstep/algorithms/internal/grow"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// These are the indices of the sums over rows from which an OutOfBag is computed. The mean
// label of all rows is subtracted from the labels of a regression, so that their squares do not
// lose digits.
const (
	oobWeight  = iota // weight of the rows that at least one tree did not draw
	oobRight          // weight of the rows whose class is predicted correctly
	oobError          // weighted −log of shares, or squared errors
	oobLabel          // weighted labels
	oobSquares        // weighted squares of labels
	oobRows
	oobParts
)

// bag has the data with which a subtask predicts its rows by the trees that did not draw them.
type bag struct {
	data    *bins.Data
	sampler *sampler
	outputs int
	sums    [][]float64 // sums over the trees so far, by span, row and output
	trees   []int32     // for each row, the number of trees that did not draw it
	times   []uint8
	walker  *grow.Walker
	out     []int32 // rows that the current tree did not draw, in any order
	leaf    []int32 // the leaf of each row; -1 if the tree drew the row
}

func newBag(d *bins.Data, loose [][]byte, s *sampler, outputs int, sums [][]float64) *bag {
	b := &bag{
		data: d, sampler: s, outputs: outputs, sums: sums, trees: make([]int32, d.Rows),
		times: make([]uint8, d.Rows), walker: grow.NewWalker(d.Layout), leaf: make([]int32, d.Rows),
	}
	b.walker.Columns = loose
	return b
}

// count adds to b.trees, for each row, how many of the trees with numbers below trees did not
// draw it. The sums of these trees must already be in b.sums.
func (b *bag) count(trees int) {
	for _, s := range b.data.Shards {
		times := b.times[:s.Rows]
		for number := range trees {
			b.sampler.draw(number, s.Shard, times)
			for i, k := range times {
				if k == 0 {
					b.trees[s.First+i]++
				}
			}
		}
	}
}

// add adds the predictions of the tree with the given number to the sums. Trees are added in
// the order of their numbers, so that the sums do not depend on which subtask has the rows.
func (b *bag) add(number int, t *tree.Tree) error {
	if err := b.walker.Open(t); err != nil {
		return err
	}
	b.out = b.out[:0]
	for _, s := range b.data.Shards {
		times := b.times[:s.Rows]
		b.sampler.draw(number, s.Shard, times)
		for i, k := range times {
			if b.leaf[s.First+i] = -1; k == 0 {
				b.out = append(b.out, int32(s.First+i))
			}
		}
	}
	b.leaf = b.walker.RouteRows(b.data, b.out, b.leaf)
	for at, s := range b.data.Shards {
		sums := b.sums[at]
		for i := range s.Rows {
			leaf := int(b.leaf[s.First+i])
			if leaf < 0 {
				continue
			}
			b.trees[s.First+i]++
			if b.outputs == 1 && t.Values == nil {
				sums[i] += t.Nodes[leaf].Value
				continue
			}
			kernel.AddTo(sums[i*b.outputs:(i+1)*b.outputs], t.Values[leaf*b.outputs:(leaf+1)*b.outputs])
		}
	}
	return nil
}

// measure adds the rows of a shard to out, the sums from which an OutOfBag is computed.
func (b *bag) measure(shard int, mean float64, task Task, out []float64) {
	at := slices.IndexFunc(b.data.Shards, func(s bins.Span) bool { return s.Shard == shard })
	if at < 0 {
		return
	}
	s, sums := b.data.Shards[at], b.sums[at]
	for i := range s.Rows {
		row := s.First + i
		if b.trees[row] == 0 {
			continue
		}
		w, y := 1.0, b.data.Label[row]
		if b.data.Weight != nil {
			w = b.data.Weight[row]
		}
		n := float64(b.trees[row])
		out[oobRows]++
		out[oobWeight] += w
		if task == Classification {
			shares := sums[i*b.outputs : (i+1)*b.outputs]
			if kernel.Argmax(shares) == int(y) {
				out[oobRight] += w
			}
			out[oobError] -= float64(w * kernel.Log(max(shares[int(y)]/n, 0x1p-52)))
			continue
		}
		e, t := sums[i]/n-y, y-mean
		out[oobError] += float64(w * float64(e*e))
		out[oobLabel] += float64(w * t)
		out[oobSquares] += float64(w * float64(t*t))
	}
}

// outOfBag computes the measures from the sums over all rows. A measure that is undefined for
// the rows, or that overflows float64, is 0.
func outOfBag(task Task, sums []float64) *OutOfBag {
	o := &OutOfBag{Rows: int64(sums[oobRows])}
	w := sums[oobWeight]
	if !(w > 0) || !kernel.Finite(sums[oobError]) || !kernel.Finite(sums[oobSquares]) {
		return o
	}
	if task == Classification {
		o.Score, o.Loss = sums[oobRight]/w, sums[oobError]/w
		return o
	}
	o.Loss = math.Sqrt(sums[oobError] / w)
	if spread := sums[oobSquares] - float64(sums[oobLabel]*sums[oobLabel])/w; spread > 0 {
		o.Score = 1 - sums[oobError]/spread
	}
	return o
}
