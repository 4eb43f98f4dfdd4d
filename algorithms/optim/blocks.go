package optim

import (
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// blocks divides the parameters into pieces. The pieces depend only on the number of parameters
// and the number of shards. A sum over all parameters is computed as one sum per block; the
// sums of the blocks are then folded up the aligned tree. The result therefore has the same
// bits whether one subtask adds all blocks, or each subtask adds the blocks that have the same
// numbers as its shards.
type blocks struct {
	n      int // number of parameters
	length int // parameters in a block; the last block may have fewer
	count  int
	sums   []float64 // buffer of dot and sum: one partial sum per block
}

// shortest is the least length of a block. With shorter blocks, folding would cost more than
// summing.
const shortest = 64

func newBlocks(n, shards int) blocks {
	b := blocks{n: n, length: max(shortest, (n+shards-1)/shards)}
	b.count = (n + b.length - 1) / b.length
	b.sums = make([]float64, max(b.count, 1))
	return b
}

// at returns the range of parameters in block i.
func (b *blocks) at(i int) sharding.Range {
	return sharding.Range{Lo: min(i*b.length, b.n), Hi: min((i+1)*b.length, b.n)}
}

// own returns the range of the blocks that have the same numbers as the given shards.
func (b *blocks) own(shards sharding.Range) sharding.Range {
	return sharding.Range{Lo: min(shards.Lo, b.count), Hi: min(shards.Hi, b.count)}
}

// dot returns the inner product of x and y, which have a component for every parameter.
func (b *blocks) dot(x, y []float64) float64 {
	for i := range b.count {
		r := b.at(i)
		b.sums[i] = kernel.Dot(x[r.Lo:r.Hi], y[r.Lo:r.Hi])
	}
	return b.fold()
}

// sum returns the sum of f over the blocks. f gets the range of a block's parameters.
func (b *blocks) sum(f func(r sharding.Range) float64) float64 {
	for i := range b.count {
		b.sums[i] = f(b.at(i))
	}
	return b.fold()
}

// fold returns the sum of b.sums over all blocks.
func (b *blocks) fold() float64 {
	if b.count == 0 {
		return 0
	}
	foldRows(b.sums[:b.count], b.count, 1)
	return b.sums[0]
}

// foldRows adds n rows of the given width up the aligned tree. The sum replaces row 0.
func foldRows(rows []float64, n, width int) {
	for stride := 1; stride < n; stride *= 2 {
		for i := 0; i+stride < n; i += 2 * stride {
			kernel.AddTo(rows[i*width:(i+1)*width], rows[(i+stride)*width:(i+stride+1)*width])
		}
	}
}
