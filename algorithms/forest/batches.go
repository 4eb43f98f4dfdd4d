package forest

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// maxBlock bounds the features of a block of rows that go through the trees together.
const maxBlock = 1 << 18

// batches predicts for batches of rows, with the bits that single rows have: blocks of rows
// go through the trees together, which takes a fraction of the time.
type batches struct {
	m      *Model
	schema *arrow.Schema // of the outputs
	cells  *model.Reader
	row    []model.Cell
	in     *reader
	sparse bool // whether the vectors are

	valid []bool
	x     []float64 // of dense rows, row after row
	csr   tree.CSR  // of sparse ones
	out   []float64
}

// newBatches finds the columns that a model reads in those of the rows.
func newBatches(m *Model, o PredictOptions, rows, outputs *arrow.Schema) (*batches, error) {
	p := &batches{m: m, schema: outputs}
	names := make([]string, rows.NumFields())
	for i := range names {
		names[i] = rows.Field(i).Name
	}
	l := model.NewLayout(names...)
	var err error
	if p.in, err = m.reader(l, o); err != nil {
		return nil, err
	}
	if p.cells, err = model.NewReader(arrowrows.Schema(rows), l); err != nil {
		return nil, err
	}
	if p.in.joined < 0 {
		i, err := batch.FindColumn(rows, p.in.names[0])
		if err != nil {
			return nil, err
		}
		p.sparse = rows.Field(i).Type.ID() == arrow.STRUCT
	}
	p.row = l.NewRow()
	m.prepare()
	return p, nil
}

// compute is model.Compute.
func (p *batches) compute(c *engine.Context, first int, in engine.Batch) ([]columnar.Values, error) {
	rows := arrowrows.Record(in)
	b, err := batch.NewRecordBuilder(c.Allocator, p.schema)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	p.cells.Reset(arrowrows.Batch(rows))
	block := max(1, maxBlock/max(1, p.m.Dim))
	for lo, n := 0, int(rows.NumRows()); lo < n; lo += block {
		size := min(block, n-lo)
		p.valid, p.x = p.valid[:0], p.x[:0]
		p.csr.RowPtr, p.csr.Col, p.csr.Val = append(p.csr.RowPtr[:0], 0), p.csr.Col[:0], p.csr.Val[:0]
		for i := range size {
			p.cells.Read(lo+i, p.row)
			x, ok, err := p.in.read(p.row)
			if err != nil {
				return nil, model.RowError(first+lo+i, err)
			}
			p.take(x, ok)
		}
		if err := p.predict(b, size); err != nil {
			return nil, err
		}
	}
	return columnsOf(b)
}

// columnsOf returns what was built, owned.
func columnsOf(b *batch.RecordBuilder) ([]columnar.Values, error) {
	made, err := b.NewRecord()
	if err != nil {
		return nil, err
	}
	defer made.Release()
	for _, column := range made.Columns() {
		column.Retain()
	}
	return arrowrows.Values(made.Columns()), nil
}

// take adds a row to the block; a null is an empty one.
func (p *batches) take(x signature.Point, ok bool) {
	p.valid = append(p.valid, ok)
	switch {
	case p.sparse:
		p.csr.Col, p.csr.Val = append(p.csr.Col, x.Indices...), append(p.csr.Val, x.Values...)
		p.csr.RowPtr = append(p.csr.RowPtr, int64(len(p.csr.Col)))
	case ok:
		p.x = append(p.x, x.Values...)
	default:
		for range p.m.Dim {
			p.x = append(p.x, nan)
		}
	}
}

// predict appends the columns of a block of n rows.
func (p *batches) predict(b *batch.RecordBuilder, n int) error {
	k := p.m.Trees.Outputs
	p.out = append(p.out[:0], make([]float64, n*k)...)
	switch {
	case !p.sparse:
		p.m.scorer.Dense(p.x, n, p.out, 1)
	case p.m.AbsentIsZero:
		p.m.scorer.Sparse(p.csr, tree.AbsentIsZero, p.out, 1)
	default:
		p.m.scorer.Sparse(p.csr, tree.AbsentIsMissing, p.out, 1)
	}
	for i, ok := range p.valid {
		shares := p.out[i*k : (i+1)*k]
		switch {
		case !ok:
			for j := range p.schema.NumFields() {
				batch.AppendNull(b.Field(j))
			}
		case p.m.Task == Regression:
			b.Field(0).(*array.Float64Builder).Append(shares[0])
		default:
			if err := p.m.Classes.Append(b.Field(0), argmax(shares)); err != nil {
				return err
			}
			list := b.Field(1).(*array.ListBuilder)
			list.Append(true)
			list.ValueBuilder().(*array.Float64Builder).AppendValues(shares, nil)
		}
	}
	return nil
}
