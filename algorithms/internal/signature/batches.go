package signature

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// maxBlock is the largest number of feature values in a block of rows.
const maxBlock = 1 << 18

// Batches reads batches of rows and builds the columns of a model's predictions for them, one
// block of rows at a time.
type Batches struct {
	in      *Reader
	outputs *arrow.Schema
	cells   *model.Reader
	row     []model.Cell
	first   int // number of the first row of the batch
}

// NewBatches returns a Batches. It reads rows with the schema rows, and builds the columns
// outputs. bind must return a Reader of the columns that the model reads, for the given layout.
func NewBatches(rows engine.Schema, outputs []arrow.Field, bind func(l *model.Layout) (*Reader, error)) (*Batches, error) {
	b := &Batches{outputs: arrow.NewSchema(outputs, nil)}
	var names []string
	for _, f := range rows.Columns() {
		names = append(names, f.Name)
	}
	l := model.NewLayout(names...)
	var err error
	if b.in, err = bind(l); err != nil {
		return nil, err
	}
	if b.cells, err = model.NewReader(rows, l); err != nil {
		return nil, err
	}
	b.row = l.NewRow()
	return b, nil
}

// Read does what Reader.Read does, for row i of the current batch. Its error names the row.
func (b *Batches) Read(i int) (p Point, ok bool, err error) {
	b.cells.Read(i, b.row)
	if p, ok, err = b.in.Read(b.row); err != nil {
		err = model.RowError(b.first+i, err)
	}
	return p, ok, err
}

// Compute returns the columns of predictions for a batch, as a model.Compute does. It calls
// predict for one block of rows after the other. predict must append to out the predictions for
// the rows [lo, lo+n) of the batch. width is the number of features of a row.
func (b *Batches) Compute(c *engine.Context, first int, in engine.Batch, width int, predict func(out *batch.RecordBuilder, lo, n int) error) ([]columnar.Values, error) {
	rows := arrowrows.Record(in)
	out, err := batch.NewRecordBuilder(c.Allocator, b.outputs)
	if err != nil {
		return nil, err
	}
	defer out.Release()
	b.first = first
	b.cells.Reset(arrowrows.Batch(rows))
	size := max(1, maxBlock/max(1, width))
	for lo, n := 0, int(rows.NumRows()); lo < n; lo += size {
		if err := predict(out, lo, min(size, n-lo)); err != nil {
			return nil, err
		}
	}
	made, err := out.NewRecord()
	if err != nil {
		return nil, err
	}
	defer made.Release()
	for _, column := range made.Columns() {
		column.Retain()
	}
	return arrowrows.Values(made.Columns()), nil
}

// AppendNulls appends a row of nulls.
func (b *Batches) AppendNulls(out *batch.RecordBuilder) {
	for j := range b.outputs.NumFields() {
		batch.AppendNull(out.Field(j))
	}
}

// AppendVector appends a vector to a column of vectors.
func AppendVector(b array.Builder, values []float64) {
	list := b.(*array.ListBuilder)
	list.Append(true)
	list.ValueBuilder().(*array.Float64Builder).AppendValues(values, nil)
}
