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
	"github.com/superstep-ml/superstep/internal/kernel"
)

// batches predicts for batches of rows. Its predictions have the same bits as those for single
// rows. It passes blocks of rows through the trees together, which takes a fraction of the
// time.
type batches struct {
	*signature.Batches
	m      *Model
	sparse bool // whether the feature vectors are sparse

	valid []bool
	x     []float64 // dense rows, row-major
	csr   tree.CSR  // sparse rows
	out   []float64
}

// newBatches returns a batches for rows with the given schema, in which it finds the model's
// columns.
func newBatches(m *Model, o PredictOptions, rows engine.Schema, outputs []arrow.Field) (*batches, error) {
	p := &batches{m: m}
	var in *signature.Reader
	var err error
	p.Batches, err = signature.NewBatches(rows, outputs, func(l *model.Layout) (*signature.Reader, error) {
		in, err = m.reader(l, o)
		return in, err
	})
	if err != nil {
		return nil, err
	}
	if column, is := in.Vector(); is {
		i, err := batch.FindColumn(arrowrows.Arrow(rows), column)
		if err != nil {
			return nil, err
		}
		p.sparse = arrowrows.Arrow(rows).Field(i).Type.ID() == arrow.STRUCT
	}
	return p, nil
}

// compute returns the prediction columns of a batch. It has the signature of model.Compute.
func (p *batches) compute(c *engine.Context, _, first int, in engine.Batch) ([]columnar.Values, error) {
	return p.Compute(c, first, in, p.m.Dim, func(out *batch.RecordBuilder, lo, n int) error {
		p.valid, p.x = p.valid[:0], p.x[:0]
		p.csr.RowPtr, p.csr.Col, p.csr.Val = append(p.csr.RowPtr[:0], 0), p.csr.Col[:0], p.csr.Val[:0]
		for i := lo; i < lo+n; i++ {
			x, ok, err := p.Read(i)
			if err != nil {
				return err
			}
			p.take(x, ok)
		}
		return p.predict(out, n)
	})
}

// take adds a row to the block. If ok is false, the row is null, and take adds an empty row.
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

// predict appends the predictions of a block of n rows to the columns of b.
func (p *batches) predict(b *batch.RecordBuilder, n int) error {
	k := p.m.Trees.Outputs
	p.out = append(p.out[:0], make([]float64, n*k)...)
	if p.sparse {
		p.m.scorer.Sparse(p.csr, p.m.absent(), p.out, 1)
	} else {
		p.m.scorer.Dense(p.x, n, p.out, 1)
	}
	for i, ok := range p.valid {
		if !ok {
			p.AppendNulls(b)
			continue
		}
		scores := p.out[i*k : (i+1)*k]
		if err := p.m.append(b, scores, kernel.Argmax(scores)); err != nil {
			return err
		}
	}
	return nil
}

// append appends the prediction of a row to b. scores are the scores of the row, and best is
// the index of the largest score.
func (m *Model) append(b *batch.RecordBuilder, scores []float64, best int) error {
	if m.Task == Regression {
		b.Field(0).(*array.Float64Builder).Append(scores[0])
		return nil
	}
	signature.AppendVector(b.Field(1), scores)
	return m.Classes.Append(b.Field(0), best)
}
