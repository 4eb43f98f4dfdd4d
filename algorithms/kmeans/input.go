package kmeans

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// These are the columns of the checked points.
const (
	vectorColumn = "vector"
	weightColumn = "weight"
)

// input describes the checked points of a dataset. All fields are set while the job is built.
type input struct {
	column   string // name of the user's vector column, for messages
	kind     string // the type of this column, as schemas print it
	layout   rows.Layout
	dim      int // number of components; 0 if the type of the column does not have it
	weighted bool
	cosine   bool
	single   bool // whether rows are float32
}

// vectorOf returns the vector column with the given name in a schema.
func vectorOf(schema *arrow.Schema, name string) (rows.Column, error) {
	c := rows.Column{Name: name, Use: rows.Vector, Range: rows.Finite, Help: "operators.Vectorize makes a vector of number columns"}
	return c, c.Bind(schema)
}

// checkPoints adds the operator with which every training begins. It checks the vectors and
// weights of the points, and joins the points of a shard into one batch. The queues for first
// centres and for training share this batch without copying it.
func checkPoints(points *engine.Dataset, p Params) (*engine.Dataset, input, error) {
	schema := arrowrows.Arrow(points.Schema())
	vector, err := vectorOf(schema, p.VectorCol)
	if err != nil {
		return nil, input{}, err
	}
	dt := schema.Field(vector.At).Type
	in := input{
		column: p.VectorCol, kind: batch.TypeName(dt), layout: rows.LayoutOf(dt), dim: batch.VectorDim(dt),
		weighted: p.WeightCol != "", cosine: p.Distance == Cosine, single: p.Precision == Single,
	}
	if in.single && in.layout == rows.SparseRows {
		return nil, in, fmt.Errorf("column %q is sparse: single precision needs a dense vector", p.VectorCol)
	}
	if p.Init == Given && in.dim > 0 && in.dim != len(p.Centers[0]) {
		return nil, in, fmt.Errorf("column %q has %d components, the given centres have %d", p.VectorCol, in.dim, len(p.Centers[0]))
	}
	attrs := []engine.Attr{{Key: "vector", Value: p.VectorCol}, {Key: "non-finite", Value: p.NonFinite.String()}}
	if in.single {
		attrs = append(attrs, engine.Attr{Key: "precision", Value: p.Precision.String()})
	}
	vector.As = arrow.Field{Name: vectorColumn, Type: rows.VectorsOf(dt, p.Precision.arrowType())}
	checker := rows.Checker{Columns: []rows.Column{vector}, Skip: p.NonFinite == Skip, Advice: "set NonFinite to Skip to train without such rows"}
	if in.weighted {
		weight := rows.Weights(p.WeightCol)
		if err := weight.Bind(schema); err != nil {
			return nil, in, err
		}
		weight.Required, weight.As.Name = true, weightColumn
		attrs = append(attrs, engine.Attr{Key: "weight", Value: p.WeightCol})
		checker.Columns = append(checker.Columns, weight)
	}
	if in.cosine {
		checker.Also = in.refuseZeros
	}
	return points.Builder().Add(engine.Spec{
		Op:     "KMeansPoints",
		Attrs:  attrs,
		Schema: arrowrows.Schema(checker.Schema()),
		Inputs: []engine.Port{{From: points}},
		Operator: func() engine.Operator {
			own := checker
			return rows.Joined(own.Rows)
		},
	}), in, nil
}

// refuseZeros reports an error for vectors of zeros, except in rows that are left out.
func (in input) refuseZeros(c *rows.Checker, columns []arrow.Array) {
	vectors, out := batch.VectorsOf(columns[0]), c.LeftOut()
	for i := 0; i < columns[0].Len() && !c.Done(i); i++ {
		if out != nil && out[i] || vectors.Null(i) {
			continue
		}
		values := vectors.Dense(i)
		if in.layout == rows.SparseRows {
			_, values = vectors.Sparse(i)
		}
		if zeros(values) {
			c.Refuse(i, "column %q is a vector of zeros, which has no direction: leave such rows out, or use Euclidean distance", in.column)
		}
	}
}

// zeros reports whether all values are 0.
func zeros(values []float64) bool {
	for _, v := range values {
		if v != 0 {
			return false
		}
	}
	return true
}
