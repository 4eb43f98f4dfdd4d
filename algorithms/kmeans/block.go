package kmeans

import (
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// block has the rows of one shard, as views of the queue's data.
type block struct {
	n      int
	d      int
	dense  []float64  // row-major n×d, if the rows are dense
	single []float32  // the same as dense, in single precision
	sparse kernel.CSR // the rows, if they are sparse
	w      []float64  // weights; nil if every row has the weight 1
}

// weight returns the weight of row i.
func (b *block) weight(i int) float64 {
	if b.w == nil {
		return 1
	}
	return b.w[i]
}

// rows returns a block with the rows [lo, hi) of b.
func (b *block) rows(lo, hi int) block {
	part := block{n: hi - lo, d: b.d}
	switch {
	case b.dense != nil:
		part.dense = b.dense[lo*b.d : hi*b.d]
	case b.single != nil:
		part.single = b.single[lo*b.d : hi*b.d]
	default:
		part.sparse = kernel.CSR{RowPtr: b.sparse.RowPtr[lo : hi+1], Col: b.sparse.Col, Val: b.sparse.Val, OnDisk: b.sparse.OnDisk}
	}
	if b.w != nil {
		part.w = b.w[lo:hi]
	}
	return part
}

// expand writes row i to dst as d values; if cosine is true, it writes the unit vector of the
// row.
func (b *block) expand(i int, cosine bool, dst []float64) {
	row := dst[:b.d]
	switch {
	case b.dense != nil:
		row = b.dense[i*b.d : (i+1)*b.d]
	case b.single != nil:
		for j, v := range b.single[i*b.d : (i+1)*b.d] {
			row[j] = float64(v)
		}
	default:
		clear(row)
		col, val := b.sparse.Row(i)
		for p, j := range col {
			row[j] = val[p]
		}
	}
	if cosine {
		sum := make([]float64, b.d+1)
		kernel.AccumulateCosine(row, 1, b.d, nil, []int32{0}, sum)
		row = sum[:b.d]
	}
	copy(dst[:b.d], row)
}

// dimension returns the number of components of the rows of a frame. For sparse rows whose type
// has no size, it is the largest index plus 1. It returns 0 if there are no rows.
func (in input) dimension(f *comqueue.Frame) int {
	switch {
	case f.Rows() == 0:
		return 0
	case in.dim > 0:
		return in.dim
	case in.layout == rows.RaggedRows:
		from, to := arrowrows.Record(f.Batch()).Column(0).(*array.List).ValueOffsets(0)
		return int(to - from)
	}
	var dim int32
	for _, j := range f.Sparse(vectorColumn).Indices {
		dim = max(dim, j+1)
	}
	return int(dim)
}

// open returns a block with views of a frame, whose rows must have d components.
func (in input) open(f *comqueue.Frame, d int) (block, error) {
	b := block{n: f.Rows(), d: d}
	if b.n == 0 {
		return b, nil
	}
	if in.weighted {
		b.w = f.Floats(weightColumn)
	}
	if in.single {
		return in.openSingle(f, b)
	}
	switch in.layout {
	case rows.DenseRows:
		m := f.Matrix(vectorColumn)
		if m.Cols != d {
			return b, in.wrongLength(0, m.Cols, d)
		}
		b.dense = m.Data
	case rows.RaggedRows:
		indptr, values, _ := batch.RaggedView(arrowrows.Record(f.Batch()).Column(0))
		for i := range b.n {
			if got := int(indptr[i+1] - indptr[i]); got != d {
				return b, in.wrongLength(i, got, d)
			}
		}
		b.dense = values[indptr[0]:indptr[b.n]]
	case rows.SparseRows:
		m := f.Sparse(vectorColumn)
		b.sparse = kernel.CSR{RowPtr: make([]int64, b.n+1), Col: m.Indices, Val: m.Values, OnDisk: f.OnDisk()}
		for i, at := range m.Offsets {
			b.sparse.RowPtr[i] = int64(at)
		}
		for i := range b.n {
			if col, _ := b.sparse.Row(i); len(col) > 0 && int(col[len(col)-1]) >= d {
				return b, in.wrongLength(i, int(col[len(col)-1])+1, d)
			}
		}
	}
	return b, nil
}

// openSingle does what open does, for vectors of float32, of fixed or variable length.
func (in input) openSingle(f *comqueue.Frame, b block) (block, error) {
	lo, hi := 0, 0
	var values *array.Float32
	switch arr := arrowrows.Record(f.Batch()).Column(0).(type) {
	case *array.FixedSizeList:
		size := int(arr.DataType().(*arrow.FixedSizeListType).Len())
		if size != b.d {
			return b, in.wrongLength(0, size, b.d)
		}
		values, lo = arr.ListValues().(*array.Float32), arr.Offset()*b.d
		hi = lo + b.n*b.d
	case *array.List:
		for i := range b.n {
			if from, to := arr.ValueOffsets(i); int(to-from) != b.d {
				return b, in.wrongLength(i, int(to-from), b.d)
			}
		}
		from, _ := arr.ValueOffsets(0)
		values, lo = arr.ListValues().(*array.Float32), int(from)
		hi = lo + b.n*b.d
	}
	b.single = values.Float32Values()[lo:hi]
	return b, nil
}

func (in input) wrongLength(row, got, want int) error {
	return &engine.RowError{Row: int64(row), Err: fmt.Errorf("column %q has %d components, the centres have %d", in.column, got, want)}
}

// points is the key under which every queue of this package reads the checked points.
var points = comqueue.PartitionedRows("points")

// state returns a function that estimates the bytes that queues keep on the heap for the rows
// of a shard: the nearest centre and the cost of each row, the start of each sparse row, and
// the bounds for training with k centres.
func (in input) state(k int) func(ctx *comqueue.ComContext, f *comqueue.Frame) int64 {
	return func(_ *comqueue.ComContext, f *comqueue.Frame) int64 {
		each := 4 + 8
		if in.layout == rows.SparseRows {
			each += 8
		} else if d := in.dimension(f); k > 1 && d > 0 && !in.cosine {
			each += 4 * groupsFor(k, d, in.valueSize())
		}
		return int64(each) * int64(f.Rows())
	}
}

// openBlocks opens the shards of a subtask.
func (in input) openBlocks(ctx *comqueue.ComContext, d int) (blocks, error) {
	own := ctx.Shards()
	all := blocks{lo: own.Lo, block: make([]block, own.Len())}
	err := ctx.ForShards(func(shard int) (err error) {
		*all.at(shard), err = in.open(points.Get(ctx, shard), d)
		return err
	})
	return all, err
}

// blocks has the shards of a subtask.
type blocks struct {
	lo    int
	block []block
}

func (b blocks) at(shard int) *block { return &b.block[shard-b.lo] }

// chunkRows is the number of rows that are searched at a time if their distances are needed
// afterwards. The distances of a chunk are still in the first-level cache when they are used.
const chunkRows = 256

// sameDirection is the cosine distance below which two vectors are treated as having the same
// direction. Cosine distances are computed with an error of about 1e-16 per component. So the
// computed distance between a vector and a multiple of it is often not exactly 0.
const sameDirection = 1e-12

// searcher finds the nearest of k centres for blocks of rows. It belongs to one
// goroutine.
type searcher struct {
	in     input
	dense  *kernel.Assigner[float64]
	single *kernel.Assigner[float32]
	cosine *kernel.Centers
	sparse *kernel.SparseCenters
	lists  []kernel.CSR // set by setRows: row i has the non-zero components of centre i
	dist   []float64
	near   []int32
}

func newSearcher(in input, k, d int) *searcher {
	s := &searcher{in: in, dist: make([]float64, chunkRows), near: make([]int32, chunkRows)}
	switch {
	case in.single:
		s.single = kernel.NewAssigner[float32](k, d)
	case in.layout == rows.SparseRows:
		s.sparse = kernel.NewSparseCenters(k, d)
	case in.cosine:
		s.cosine = kernel.NewCenters(k, d)
	default:
		s.dense = kernel.NewAssigner[float64](k, d)
	}
	return s
}

// set copies the k centres, which have d values each. For cosine distance they must have norm
// 1.
func (s *searcher) set(centers []float64) {
	switch {
	case s.single != nil:
		s.single.Set(centers)
	case s.sparse != nil:
		s.sparse.Set(centers)
	case s.cosine != nil:
		s.cosine.Set(centers)
	default:
		s.dense.Set(centers)
	}
}

// assign writes, for each row of b, the number of the nearest centre to near, and the distance
// to this centre to dist.
func (s *searcher) assign(b *block, near []int32, dist []float64) {
	switch {
	case s.single != nil:
		s.single.Assign(b.single, b.n, near, dist)
	case s.sparse != nil && s.in.cosine:
		kernel.AssignSparseCosine(b.sparse, s.sparse, near, dist)
	case s.sparse != nil:
		kernel.AssignSparse(b.sparse, s.sparse, near, dist)
	case s.cosine != nil:
		kernel.AssignCosine(b.dense, b.n, s.cosine, near, dist)
	default:
		s.dense.Assign(b.dense, b.n, near, dist)
	}
}

// accumulate assigns each row of b to its nearest centre and adds it to sums. sums has d+1
// numbers for each centre: d sums of components and a sum of weights. On entry, near has a
// guess of each row's nearest centre, such as its centre in the previous superstep. On return,
// near has the number of each row's nearest centre. accumulate returns the inertia of the rows.
func (s *searcher) accumulate(b *block, near []int32, sums []float64) float64 {
	switch {
	case s.in.cosine:
		return s.accumulateCosine(b, near, sums)
	case s.sparse != nil:
		return kernel.AssignAccumulateSparse(b.sparse, s.sparse, b.w, near, nil, sums, 0)
	case s.single != nil:
		return s.single.Accumulate(b.single, b.n, b.w, near, sums, 0)
	}
	return s.dense.Accumulate(b.dense, b.n, b.w, near, sums, 0)
}

// accumulateCosine does what accumulate does, for cosine distance. The inertia is then a sum of
// distances, while the kernels add up squared distances.
func (s *searcher) accumulateCosine(b *block, near []int32, sums []float64) float64 {
	var inertia float64
	for lo := 0; lo < b.n; lo += chunkRows {
		part := b.rows(lo, min(lo+chunkRows, b.n))
		dist := s.dist[:part.n]
		if s.sparse != nil {
			kernel.AssignAccumulateSparseCosine(part.sparse, s.sparse, part.w, near[lo:lo+part.n], dist, sums, 0)
		} else {
			kernel.AssignAccumulateCosine(part.dense, part.n, s.cosine, part.w, near[lo:lo+part.n], dist, sums, 0)
		}
		for i, v := range dist {
			inertia += float64(part.weight(i) * v)
		}
	}
	return inertia
}

// setRows does what set does, for centres that are rows of the data, or the directions of rows,
// as in the search for first centres. After setRows, costs computes exact distances of sparse
// rows.
func (s *searcher) setRows(centers []float64, k int) {
	s.set(centers)
	if s.sparse == nil || s.in.cosine {
		return
	}
	d := s.sparse.D()
	s.lists = s.lists[:0]
	for a := range k {
		var list kernel.CSR
		for j, v := range centers[a*d : (a+1)*d] {
			if v != 0 {
				list.Col, list.Val = append(list.Col, int32(j)), append(list.Val, v)
			}
		}
		s.lists = append(s.lists, list)
	}
}

// costs finds the nearest centre of each row of b, and writes its number to near. To cost it
// writes what the row adds to the inertia per unit of weight: the squared distance, or the
// cosine distance. b must have at most chunkRows rows. After setRows, the cost of a row is 0 if
// and only if the row equals its nearest centre (for cosine, if both have the same direction).
// The kernels for sparse rows cannot compute short distances exactly, so costs then computes
// the distance to the nearest centre again.
func (s *searcher) costs(b *block, near []int32, cost []float64) {
	s.assign(b, near, cost)
	for i, v := range cost[:b.n] {
		switch {
		case near[i] < 0: // the distances overflow float64
			cost[i] = math.Inf(1)
		case s.in.cosine && v <= sameDirection:
			cost[i] = 0
		case s.in.cosine:
		case len(s.lists) > 0:
			col, val := b.sparse.Row(i)
			list := s.lists[near[i]]
			v = math.Sqrt(squaredDistance(col, val, list.Col, list.Val))
			cost[i] = v * v
		default:
			cost[i] = v * v
		}
	}
}

// squaredDistance returns the squared Euclidean distance of two sparse vectors. The result has
// the same bits as kernel.SquaredDistance for the same vectors in dense form: there, components
// that are absent from both vectors only add zeros.
func squaredDistance(xCol []int32, x []float64, yCol []int32, y []float64) float64 {
	var sum float64
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		var t float64
		switch {
		case j == len(y) || i < len(x) && xCol[i] < yCol[j]:
			t = x[i]
			i++
		case i == len(x) || yCol[j] < xCol[i]:
			t = y[j]
			j++
		default:
			t = x[i] - y[j]
			i, j = i+1, j+1
		}
		sum += float64(t * t)
	}
	return sum
}

// draws returns the random numbers for a purpose in the superstep with the number step, on a
// shard. The shard -1 is used for draws that belong to no shard.
func draws(seed uint64, purpose string, shard, step int) sharding.Random {
	return sharding.NewRandom(seed, purpose, shard, step)
}
