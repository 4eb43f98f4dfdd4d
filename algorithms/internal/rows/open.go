package rows

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// These are the keys of the objects of training queues.
var (
	factsRows    = comqueue.BroadcastRows("facts")
	decodedFacts = shared.Scratch[*Facts]("decoded facts")
)

// Init adds the checked rows and the facts about them to the input of queue q, and returns q.
func (t Table) Init(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue {
	return q.InitWithPartitionedData(checkedRows.WithState(t.state), t.Rows).InitWithBroadcastData(factsRows, t.Facts)
}

// state returns the number of bytes that Open and training keep on the heap for the rows of a
// shard.
func (t Table) state(ctx *comqueue.ComContext, rows *comqueue.Frame) int64 {
	each := int64(0)
	if t.Sparse {
		each += 8 // the row's offset in Block.Sparse.RowPtr
	}
	if t.Label == ClassLabel && !rows.OnDisk() {
		each += 8 // the row's class number in Block.Label
	}
	if t.State != nil {
		if f, err := t.FactsOf(ctx); err == nil { // if there is an error, Open returns it
			each += t.State(f)
		}
	}
	return each * int64(rows.Rows())
}

// FactsOf returns the facts in a queue that was passed to Init. The queue owns the facts, and
// they must not be modified. The caller must copy what it needs after the end of the queue.
func (t Table) FactsOf(ctx *comqueue.ComContext) (*Facts, error) {
	if f, ok := decodedFacts.Lookup(ctx); ok {
		return f, nil
	}
	f, err := decodeFacts(factsRows.Get(ctx))
	if err != nil {
		return nil, err
	}
	decodedFacts.Put(ctx, f)
	return f, nil
}

// Data holds the rows of the shards of a subtask. It is valid until the queue ends.
type Data struct {
	Facts  *Facts
	blocks shardBlocks
}

// Block returns the rows of a shard that the subtask owns. The block of an empty shard has no
// rows.
func (d *Data) Block(shard int) *Block {
	if b := d.blocks.at(shard); *b != nil {
		return *b
	}
	return &Block{D: d.Facts.Dim()}
}

// Open returns the rows of the subtask as views of the queue's data. Three things are copied
// instead: the row offsets of sparse rows; the column indices of sparse rows if Facts.Columns
// is not nil, since they are replaced by indices into Facts.Columns; and labels of classes,
// which are replaced by class numbers, unless the labels are already these numbers as float64.
func (t Table) Open(ctx *comqueue.ComContext) (*Data, error) { return t.open(ctx, false) }

// OpenNarrow does what Open does, for training that stores values for each column of a block.
// If the sparse rows of the shards have, on average, few of the columns that training uses,
// each block numbers only the columns that occur in its own rows, and lists them in
// Block.Columns. Training then stores values only for these columns. The caller takes rows out
// of a block with Cut, which checks the column indices.
func (t Table) OpenNarrow(ctx *comqueue.ComContext) (*Data, error) { return t.open(ctx, true) }

func (t Table) open(ctx *comqueue.ComContext, narrow bool) (*Data, error) {
	facts, err := t.FactsOf(ctx)
	if err != nil {
		return nil, err
	}
	space := columnSpace{declared: facts.Declared}
	if facts.Columns != nil {
		space = newColumnSpace(facts.Columns, facts.Declared)
	}
	d := &Data{Facts: facts, blocks: newShardBlocks(ctx)}
	err = ctx.ForShards(func(shard int) error {
		frame := checkedRows.Get(ctx, shard)
		b, err := t.view(frame)
		if err != nil {
			return err
		}
		b.D = facts.Dim()
		if t.Label == ClassLabel {
			if err := t.classNumbers(ctx, frame, facts, b); err != nil {
				return err
			}
		}
		*d.blocks.at(shard) = b
		return nil
	})
	if err != nil || !t.Sparse {
		return d, err
	}
	var own *Occurring
	if narrow && d.blocks.narrow(facts.Dim()) {
		none := NewOccurring(nil, facts.Dim())
		own = &none
	}
	for _, b := range d.blocks.block {
		switch {
		case b == nil:
			continue
		case own != nil || !space.identity():
			if err := b.renumber(ctx, &space, own); err != nil {
				return nil, err
			}
		case narrow:
			continue // Cut checks the columns
		}
		b.Sparse = b.Sparse.Checked(b.columns())
	}
	return d, nil
}

const (
	// Blocks number only the columns of their own rows if there are at least narrowFrom
	// columns, and more columns than narrowBy times the average number of entries of a shard.
	narrowFrom = 1 << 12
	narrowBy   = 2
)

// narrow reports whether the shards have, on average, few of the d columns.
func (b shardBlocks) narrow(d int) bool {
	var entries, shards int64
	for _, b := range b.block {
		if b != nil && b.N > 0 {
			entries += b.Sparse.RowPtr[b.N] - b.Sparse.RowPtr[0]
			shards++
		}
	}
	return d >= narrowFrom && narrowBy*entries < shards*int64(d)
}

// renumber returns the distinct columns in col, and replaces each column in col by its index in
// the result. The set o must be empty, and is empty afterwards.
func (o *Occurring) renumber(col []int32) []int32 {
	columns := make([]int32, o.set(col))
	for p, j := range col {
		at := o.number(j)
		columns[at], col[p] = j, at
	}
	clear(o.word)
	return columns
}

// classNumbers sets the labels of a block to the class numbers of its rows. If the rows are on
// disk, the labels are stored on disk too.
func (t Table) classNumbers(ctx *comqueue.ComContext, frame *comqueue.Frame, facts *Facts, b *Block) error {
	i, err := batch.FindColumn(arrowrows.Record(frame.Batch()).Schema(), labelColumn)
	if err != nil {
		return err
	}
	classes := Dictionary{Keys: facts.keys}
	if b.Label, err = classes.numbers(arrowrows.Record(frame.Batch()).Column(i)); err != nil {
		return fmt.Errorf("column %q: %w", t.columns.Label, err)
	}
	if !frame.OnDisk() {
		return nil
	}
	held, _, err := ctx.HoldBlock("numbers of classes", []int{8 * b.N}, func(_ int, block []byte) error {
		copy(arrow.Float64Traits.CastFromBytes(block), b.Label)
		return nil
	})
	b.Label = arrow.Float64Traits.CastFromBytes(held)
	return err
}

// renumber replaces the columns of the sparse rows by their numbers in space. If own is not
// nil, it then replaces these numbers by numbers among the columns of the block. The result is
// in new memory.
func (b *Block) renumber(ctx *comqueue.ComContext, space *columnSpace, own *Occurring) error {
	x := b.Sparse
	n := x.Rows()
	from, to := x.RowPtr[0], x.RowPtr[n]
	y := kernel.CSR{RowPtr: x.RowPtr, Val: x.Val[from:to], OnDisk: x.OnDisk}
	fill := func(col []int32) {
		for p, j := range x.Col[from:to] {
			col[p] = space.number(j)
		}
		if own != nil {
			b.Columns = own.renumber(col)
		}
	}
	if x.OnDisk {
		block, _, err := ctx.HoldBlock("columns of sparse rows", []int{4 * int(to-from)}, func(_ int, block []byte) error {
			fill(arrow.Int32Traits.CastFromBytes(block))
			return nil
		})
		if err != nil {
			return err
		}
		y.Col = arrow.Int32Traits.CastFromBytes(block)
	} else {
		y.Col = make([]int32, to-from)
		fill(y.Col)
	}
	for i := range y.RowPtr {
		y.RowPtr[i] -= from
	}
	b.Sparse = y
	return nil
}

// view returns the rows of a frame. Column indices are as in the frame, and labels of classes
// are left out.
func (t Table) view(f *comqueue.Frame) (*Block, error) {
	b := &Block{N: f.Rows()}
	if t.Label == NumberLabel {
		b.Label = f.Floats(labelColumn)
	}
	if t.Weighted {
		b.Weight = f.Floats(weightColumn)
	}
	if t.Shifted {
		b.Offset = f.Floats(offsetColumn)
	}
	if t.Censored {
		b.Censor = f.Floats(censorColumn)
	}
	switch t.layout {
	case DenseRows:
		m := f.Matrix(vectorColumn)
		b.D, b.Dense = m.Cols, m.Data
	case RaggedRows:
		indptr, values, ok := batch.RaggedView(arrowrows.Record(f.Batch()).Column(0))
		if !ok {
			return nil, fmt.Errorf("column %q has nulls", t.vector)
		}
		if b.N == 0 {
			return b, nil
		}
		b.D = int(indptr[1] - indptr[0])
		b.Dense = values[indptr[0]:indptr[b.N]]
	case SparseRows:
		m := f.Sparse(vectorColumn)
		b.D = t.dim
		b.Sparse = kernel.CSR{RowPtr: make([]int64, b.N+1), Col: m.Indices, Val: m.Values, OnDisk: f.OnDisk()}
		for i, at := range m.Offsets[:b.N+1] {
			b.Sparse.RowPtr[i] = int64(at)
		}
	}
	return b, nil
}

// sameLength returns an error about the first row of a frame that does not have d components.
func (t Table) sameLength(f *comqueue.Frame, d int) error {
	if t.layout != RaggedRows {
		return nil
	}
	indptr, _, _ := batch.RaggedView(arrowrows.Record(f.Batch()).Column(0))
	for i := range f.Rows() {
		if got := int(indptr[i+1] - indptr[i]); got != d {
			return &engine.RowError{Row: int64(i), Err: fmt.Errorf("column %q has %d components, where other rows have %d: vectors are of one size", t.vector, got, d)}
		}
	}
	return nil
}

// shardBlocks has the block of each shard of a subtask, nil for an empty shard.
type shardBlocks struct {
	lo    int
	block []*Block
}

func newShardBlocks(ctx *comqueue.ComContext) shardBlocks {
	own := ctx.Shards()
	return shardBlocks{lo: own.Lo, block: make([]*Block, own.Len())}
}

func (b shardBlocks) at(shard int) **Block { return &b.block[shard-b.lo] }

// Rows returns the rows [lo, hi) of a block as another block, which shares its memory.
func (b *Block) Rows(lo, hi int) Block {
	var part Block
	b.Cut(&part, lo, hi)
	return part
}

// Cut sets part to the rows [lo, hi) of a block. When sparse rows are cut out for the first
// time, Cut checks their column indices. Checking them here costs little, because it loads them
// into the cache for the caller.
func (b *Block) Cut(part *Block, lo, hi int) {
	part.N, part.D, part.Columns = hi-lo, b.D, b.Columns
	switch {
	case b.Dense != nil:
		part.Dense, part.Sparse = b.Dense[lo*b.D:hi*b.D], kernel.CSR{}
	case b.Sparse.RowPtr != nil:
		part.Dense = nil
		b.Sparse.CheckedRange(&part.Sparse, lo, hi, b.columns())
	default:
		part.Dense, part.Sparse = nil, kernel.CSR{}
	}
	part.Label, part.Weight = cut(b.Label, lo, hi), cut(b.Weight, lo, hi)
	part.Offset, part.Censor = cut(b.Offset, lo, hi), cut(b.Censor, lo, hi)
}

// columns returns the number of columns to which the indices in Sparse.Col refer.
func (b *Block) columns() int {
	if b.Columns != nil {
		return len(b.Columns)
	}
	return b.D
}

// cut returns the elements [lo, hi) of a column, or nil if the column is nil.
func cut(column []float64, lo, hi int) []float64 {
	if column == nil {
		return nil
	}
	return column[lo:hi]
}
