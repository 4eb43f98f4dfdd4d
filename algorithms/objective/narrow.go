package objective

import (
	"math"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// If the sparse rows of a subtask's shards contain, on average, only few of the features, all
// these shards are narrow. A buffer for all parameters would then cost more time than the rows:
// it would be filled with zeros, scaled, and added to another buffer, once for every shard.
// Therefore a narrow shard has its own numbering of the columns that occur in it. Coefficients
// are gathered and sums are stored for these columns only. fold adds up the sums of each column
// over the shards that have it, in the order of the tree over shards. With buffers for all
// parameters, a shard without the column would add +0. This would not change any sum, because
// no sum is −0: sums begin at +0, and +0 is added to scaled sums.

// beginNarrow starts a pass over a narrow shard. In s.kept it reserves memory for the loss of
// the shard, the sums of the slopes by margin, and the gradient by the shard's columns, margin
// by margin.
func (e *evaluator) beginNarrow(s *shardRows) passSums {
	width := len(s.Columns)
	if s.kept == nil {
		s.kept = make([]float64, 1+e.k+e.Margins*width)
	}
	clear(s.kept)
	return passSums{gradient: s.kept[1+e.k:], stride: width}
}

// finishNarrow stores loss and gradient of a narrow shard in s.kept, with derivatives by the
// parameters. It also writes them to out unless out is nil.
func (e *evaluator) finishNarrow(s *shardRows, sum passSums, out []float64) {
	s.kept[0] = sum.loss
	copy(s.kept[1:], e.sums)
	for a := range e.Margins {
		own := sum.gradient[a*sum.stride : (a+1)*sum.stride]
		for u, j := range s.Columns {
			own[u] = float64(own[u]*e.inverse[j]) + 0
		}
	}
	if out == nil {
		return
	}
	for a := range e.Margins {
		to := out[1+a*e.stride():]
		for u, j := range s.Columns {
			to[j] = sum.gradient[a*sum.stride+u]
		}
	}
	out[0] += sum.loss
	e.putSums(e.sums, out)
}

// putSums writes the sums of slopes to out, as the derivatives by intercepts and constants.
func (e *evaluator) putSums(sums, out []float64) {
	if e.intercept {
		for a := range e.Margins {
			out[1+a*e.stride()+e.d] = sums[a]
		}
	}
	copy(out[1+e.Margins*e.stride():], sums[e.Margins:])
}

// addEntries does what kernel.AddScaledCSR does, for sums of all features. The column indices
// of b may be features, or columns of a narrow shard.
func (e *evaluator) addEntries(b *rows.Block, coef, out []float64) {
	if b.Columns == nil {
		kernel.AddScaledCSR(b.Sparse, coef, out)
		return
	}
	for i, c := range coef[:b.N] {
		col, val := b.Sparse.Row(i)
		for p, v := range val {
			out[b.Columns[col[p]]] += float64(c * v)
		}
	}
}

// mostFolded is the largest number of shards of a tree.
const mostFolded = math.MaxUint16

// foldNarrow does what fold does, if the shards are narrow.
func (e *evaluator) foldNarrow(shards sharding.Range, out []float64) {
	t := e.treeOf(shards)
	values := t.buffer[:len(t.shards)]
	for part := range 1 + e.k {
		for i, s := range t.shards {
			values[i] = s.kept[part]
		}
		t.scalars[part] = t.fold(values)
	}
	out[0] += t.scalars[0]
	e.putSums(t.scalars[1:], out)
	for a := range e.Margins {
		for i, s := range t.shards {
			t.sums[i], t.next[i] = s.kept[1+e.k+a*len(s.Columns):][:len(s.Columns)], 0
		}
		t.foldColumns(out[1+a*e.stride() : 1+a*e.stride()+e.d])
	}
}

// tree has the data for adding up the sums of the narrow shards below a node. For each column
// it lists the shards that contain the column.
type tree struct {
	within sharding.Range
	shards []*shardRows // the shards that have rows
	number []uint32     // number[i] is the number of shards[i]
	// The shards of column j, as indices into shards, are have[from[j]:from[j+1]].
	from []uint32
	have []uint16

	stack   scalarStack
	buffer  []float64
	scalars []float64
	sums    [][]float64 // sums[i] has the sums of the columns of shards[i]
	next    []uint32    // next[i] is the index in sums[i] of the next sum to add
}

// treeOf returns the tree of the shards within a node. It makes the tree on first use.
func (e *evaluator) treeOf(within sharding.Range) *tree {
	i := slices.IndexFunc(e.trees, func(t *tree) bool { return t.within == within })
	if i >= 0 {
		return e.trees[i]
	}
	t := &tree{within: within, from: make([]uint32, e.d+2), scalars: make([]float64, 1+e.k)}
	for shard := within.Lo; shard < within.Hi; shard++ {
		if s := e.at(shard); s != nil {
			t.shards, t.number = append(t.shards, s), append(t.number, uint32(shard))
		}
	}
	n := len(t.shards)
	t.buffer, t.sums, t.next = make([]float64, n), make([][]float64, n), make([]uint32, n)
	// from[j+2] counts the shards of column j. After the summation below, from[j+1] is the
	// position in have for the next shard of column j.
	for _, s := range t.shards {
		for _, j := range s.Columns {
			t.from[j+2]++
		}
	}
	for j := 2; j < len(t.from); j++ {
		t.from[j] += t.from[j-1]
	}
	t.have = make([]uint16, t.from[len(t.from)-1])
	for i, s := range t.shards {
		for _, j := range s.Columns {
			t.have[t.from[j+1]] = uint16(i)
			t.from[j+1]++
		}
	}
	e.trees = append(e.trees, t)
	return t
}

// scalarStack adds up one number of each shard in the order of the canonical tree. Shards are
// pushed in ascending order. The stack has the sums of the complete subtrees whose right
// sibling is not complete yet.
type scalarStack struct {
	depth int
	first [24]uint32 // first shard of each subtree
	value [24]float64
}

// push adds the number v of a shard. It first merges the top two subtrees of the stack, as long
// as their common node is below the common node of the top subtree and the shard. The highest
// bits in which the numbers of their first shards differ decide this.
func (s *scalarStack) push(shard uint32, v float64) {
	d := s.depth
	for d >= 2 && s.first[d-2]^s.first[d-1] < s.first[d-1]^shard {
		s.value[d-2] += s.value[d-1]
		d--
	}
	s.first[d], s.value[d] = shard, v
	s.depth = d + 1
}

// total returns the sum of all shards, and empties the stack.
func (s *scalarStack) total() float64 {
	for d := s.depth - 1; d > 0; d-- {
		s.value[d-1] += s.value[d]
	}
	s.depth = 0
	return s.value[0]
}

// fold returns the sum of values, which has one value for each shard.
func (t *tree) fold(values []float64) float64 {
	for i, v := range values {
		t.stack.push(t.number[i], v)
	}
	return t.stack.total()
}

// foldColumns writes to out the sum of each column that some shard has.
func (t *tree) foldColumns(out []float64) {
	at := t.from[0]
	for j := range out {
		end := t.from[j+1]
		have := t.have[at:end]
		at = end
		switch len(have) {
		case 0:
		case 1:
			out[j] = t.pop(have[0])
		case 2:
			out[j] = t.pop(have[0]) + t.pop(have[1])
		default:
			for _, i := range have {
				t.stack.push(t.number[i], t.pop(i))
			}
			out[j] = t.stack.total()
		}
	}
}

// pop returns the next sum of shard i.
func (t *tree) pop(i uint16) float64 {
	v := t.sums[i][t.next[i]]
	t.next[i]++
	return v
}
