package gbdt

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/model"
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
	o      PredictOptions
	schema *arrow.Schema // of the outputs
	cells  *model.Reader
	row    []model.Cell
	in     *reader

	x, margins, why []float64
	valid           []bool
	leaves          []int32
	values          []float64 // of a vector of the row at hand
}

// newBatches finds the columns that a model reads in those of the rows.
func newBatches(m *Model, o PredictOptions, rows, outputs *arrow.Schema) (*batches, error) {
	p := &batches{m: m, o: o, schema: outputs}
	names := make([]string, rows.NumFields())
	for i := range names {
		names[i] = rows.Field(i).Name
	}
	l := model.NewLayout(names...)
	var err error
	if p.in, err = m.reader(l, o.features()); err != nil {
		return nil, err
	}
	if p.cells, err = model.NewReader(arrowrows.Schema(rows), l); err != nil {
		return nil, err
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
	width := len(p.m.Ensemble.Features)
	block := max(1, maxBlock/max(1, width))
	for lo, n := 0, int(rows.NumRows()); lo < n; lo += block {
		size := min(block, n-lo)
		p.x, p.valid = grown(p.x, size*width), grown(p.valid, size)
		for i := range size {
			p.cells.Read(lo+i, p.row)
			if p.valid[i], err = p.in.read(p.row, p.x[i*width:(i+1)*width]); err != nil {
				return nil, model.RowError(first+lo+i, err)
			}
		}
		if err := p.predict(b, size); err != nil {
			return nil, err
		}
	}
	made, err := b.NewRecord()
	if err != nil {
		return nil, err
	}
	defer made.Release()
	columns := append([]arrow.Array(nil), made.Columns()...)
	for _, column := range columns {
		column.Retain()
	}
	return arrowrows.Values(columns), nil
}

// predict appends the columns of a block of n rows.
func (p *batches) predict(b *batch.RecordBuilder, n int) error {
	e := p.m.Ensemble
	k, trees := e.Outputs, len(e.Trees)
	p.margins = grown(p.margins, n*k)
	p.m.scorer.Dense(p.x, n, p.margins, 1)
	if p.o.LeafCol != "" {
		p.leaves = grown(p.leaves, n*trees)
		p.m.scorer.DenseLeaves(p.x, n, p.leaves, 1)
	}
	parts := p.m.Contributions()
	if p.o.ContributionCol != "" {
		x, err := p.m.explain()
		if err != nil {
			return fmt.Errorf("contributions: %w", err)
		}
		p.why = grown(p.why, n*parts)
		x.DenseValues(p.x, n, p.why, 1)
	}
	for i := range n {
		at := 0
		column := func() array.Builder { at++; return b.Field(at - 1) }
		margins := p.margins[i*k : (i+1)*k]
		if !p.valid[i] {
			for j := range p.schema.NumFields() {
				batch.AppendNull(b.Field(j))
			}
			continue
		}
		if len(p.m.Classes.Values) == 0 {
			column().(*array.Float64Builder).Append(p.m.decide(margins))
		} else {
			if err := p.m.Classes.Append(column(), int(p.m.decide(margins))); err != nil {
				return err
			}
			p.values = grown(p.values, len(p.m.Classes.Values))
			p.m.probabilities(margins, p.values)
			appendVector(column(), p.values)
		}
		if p.o.MarginCol != "" {
			appendVector(column(), margins)
		}
		if p.o.LeafCol != "" {
			p.values = grown(p.values, trees)
			for q, node := range p.leaves[i*trees : (i+1)*trees] {
				p.values[q] = float64(node)
			}
			appendVector(column(), p.values)
		}
		if p.o.ContributionCol != "" {
			appendVector(column(), p.why[i*parts:(i+1)*parts])
		}
	}
	return nil
}

// appendVector appends a vector to a column of them.
func appendVector(b array.Builder, values []float64) {
	list := b.(*array.ListBuilder)
	list.Append(true)
	list.ValueBuilder().(*array.Float64Builder).AppendValues(values, nil)
}

// MarginsRows is Margins for the n rows of a row-major matrix: dst gets the margins row after
// row. threads goroutines share the work, the caller's among them. It takes a fraction of the
// time that single rows do.
func (m *Model) MarginsRows(rows []float64, n int, dst []float64, threads int) bool {
	if n < 0 || len(rows) != n*m.Dim || len(dst) != n*m.Ensemble.Outputs {
		return false
	}
	m.prepare()
	if m.Columns == nil {
		m.scorer.Dense(rows, n, dst, threads)
		return true
	}
	for i := range n {
		m.Margins(rows[i*m.Dim:(i+1)*m.Dim], dst[i*m.Ensemble.Outputs:(i+1)*m.Ensemble.Outputs])
	}
	return true
}

// PredictRows is Predict for the n rows of a row-major matrix; see MarginsRows. A dst that
// has not a value for each row is left, and gives false.
func (m *Model) PredictRows(rows []float64, n int, dst []float64, threads int) bool {
	k := m.Ensemble.Outputs
	margins := dst
	if k > 1 {
		margins = make([]float64, max(0, n)*k)
	}
	if len(dst) != n || !m.MarginsRows(rows, n, margins, threads) {
		return false
	}
	for i := range dst {
		dst[i] = m.decide(margins[i*k : (i+1)*k])
	}
	return true
}
