package gbdt

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// batches predicts for batches of rows. Its predictions have the same bits as those for single
// rows. It passes blocks of rows through the trees together, which takes a fraction of the
// time.
type batches struct {
	*signature.Batches
	m *Model
	o PredictOptions

	x, margins, why []float64
	valid           []bool
	leaves          []int32
	values          []float64 // one output vector of the current row
}

// compute returns the prediction columns of a batch. It has the signature of model.Compute.
func (p *batches) compute(c *engine.Context, _, first int, in engine.Batch) ([]columnar.Values, error) {
	width := len(p.m.Ensemble.Features)
	return p.Compute(c, first, in, width, func(out *batch.RecordBuilder, lo, n int) error {
		p.x, p.valid = kernel.Sized(p.x, n*width), kernel.Sized(p.valid, n)
		for i := range n {
			point, ok, err := p.Read(lo + i)
			if err != nil {
				return err
			}
			if p.valid[i] = ok; ok {
				p.m.fill(point, p.x[i*width:(i+1)*width])
			}
		}
		return p.predict(out, n)
	})
}

// predict appends the predictions of a block of n rows to the columns of b.
func (p *batches) predict(b *batch.RecordBuilder, n int) error {
	e := p.m.Ensemble
	k, trees := e.Outputs, len(e.Trees)
	p.margins = kernel.Sized(p.margins, n*k)
	p.m.scorer.Dense(p.x, n, p.margins, 1)
	if p.o.LeafCol != "" {
		p.leaves = kernel.Sized(p.leaves, n*trees)
		p.m.scorer.DenseLeaves(p.x, n, p.leaves, 1)
	}
	parts := p.m.Contributions()
	if p.o.ContributionCol != "" {
		x, err := p.m.explain()
		if err != nil {
			return fmt.Errorf("contributions: %w", err)
		}
		p.why = kernel.Sized(p.why, n*parts)
		x.DenseValues(p.x, n, p.why, 1)
	}
	for i := range n {
		at := 0
		column := func() array.Builder { at++; return b.Field(at - 1) }
		margins := p.margins[i*k : (i+1)*k]
		if !p.valid[i] {
			p.AppendNulls(b)
			continue
		}
		if len(p.m.Classes.Values) == 0 {
			column().(*array.Float64Builder).Append(p.m.decide(margins))
		} else {
			if err := p.m.Classes.Append(column(), int(p.m.decide(margins))); err != nil {
				return err
			}
			p.values = kernel.Sized(p.values, len(p.m.Classes.Values))
			p.m.probabilities(margins, p.values)
			signature.AppendVector(column(), p.values)
		}
		if p.o.MarginCol != "" {
			signature.AppendVector(column(), margins)
		}
		if p.o.LeafCol != "" {
			p.values = kernel.Sized(p.values, trees)
			for q, node := range p.leaves[i*trees : (i+1)*trees] {
				p.values[q] = float64(node)
			}
			signature.AppendVector(column(), p.values)
		}
		if p.o.ContributionCol != "" {
			signature.AppendVector(column(), p.why[i*parts:(i+1)*parts])
		}
	}
	return nil
}

// MarginsRows does what Margins does for each of the n rows of the row-major matrix rows. It
// writes the margins to dst, row by row. The work is shared by threads goroutines, of which the
// caller's is one. MarginsRows takes a fraction of the time of n calls of Margins.
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

// PredictRows does what Predict does for each of the n rows of the row-major matrix rows, with
// threads goroutines as in MarginsRows. It returns false, and leaves dst unchanged, if dst does
// not have n values.
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
