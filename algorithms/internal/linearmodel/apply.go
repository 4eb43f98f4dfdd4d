package linearmodel

import (
	"cmp"
	"fmt"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Prediction is the default name of the column of predictions.
const Prediction = "prediction"

// score appends the values of a row with the given margins to the builders of the output
// columns in b.
type score func(b *batch.RecordBuilder, margins []float64) error

// estimated is implemented by pointers to structs that embed a Model.
type estimated interface{ base() *Model }

func (m *Model) base() *Model { return m }

// Same returns margin. It is used by models that predict the margin itself.
func Same[M any](_ M, margin float64) float64 { return margin }

// PredictNumber adds a column to the dataset d. The value of the column for a row is of(m,
// margin), where m is the decoded model and margin is the only margin of the row. made is a
// dataset of one row with the model. Messages begin with caller, such as "linear.Predict". op
// is the name of the operator in plans.
func PredictNumber[M estimated](caller, op string, d, made *engine.Dataset, o model.LinearPredictOptions, decode func(file []byte) (M, error), of func(m M, margin float64) float64) *engine.Dataset {
	return apply(caller, op, d, made, o, signature.Outputs(nil, cmp.Or(o.PredictionCol, Prediction), ""), func(file []byte) (*Model, score, error) {
		m, err := decode(file)
		if err != nil {
			return nil, nil, err
		}
		return m.base(), func(b *batch.RecordBuilder, margins []float64) error {
			b.Field(0).(*array.Float64Builder).Append(of(m, margins[0]))
			return nil
		}, nil
	})
}

// PredictClass adds two columns to the dataset d: the predicted classes, and a column of
// vectors whose name is the parameter vector. The function of returns the classes of the model
// m, and a function that computes the class and the vector of a row from its margins.
func PredictClass[M estimated](caller, op string, d, made *engine.Dataset, o model.LinearPredictOptions, vector string, decode func(file []byte) (M, error),
	of func(m M) (Classes, func(margins []float64) (class int, vector []float64)),
) *engine.Dataset {
	label, err := signature.ClassType(made)
	if err != nil {
		return model.Refuse(model.BuilderOf(caller, d), caller, err)
	}
	return apply(caller, op, d, made, o, signature.Outputs(label, cmp.Or(o.PredictionCol, Prediction), vector), func(file []byte) (*Model, score, error) {
		m, err := decode(file)
		if err != nil {
			return nil, nil, err
		}
		classes, scores := of(m)
		return m.base(), func(b *batch.RecordBuilder, margins []float64) error {
			class, vector := scores(margins)
			list := b.Field(1).(*array.ListBuilder)
			list.Append(true)
			list.ValueBuilder().(*array.Float64Builder).AppendValues(vector, nil)
			return classes.Append(b.Field(0), class)
		}, classes.Match(label)
	})
}

// apply adds the operator that receives a model by broadcast and adds the columns outputs to d.
// open decodes the model's file, once for each subtask. Margins have the same bits as the
// margins that MarginsTo and SparseMarginsTo compute. An offset is added to the first margin.
func apply(caller, op string, d, made *engine.Dataset, o model.LinearPredictOptions, outputs []arrow.Field, open func(file []byte) (*Model, score, error)) *engine.Dataset {
	if err := signature.CheckFeatures(o.VectorCol, o.FeatureCols); err != nil {
		return model.Refuse(model.BuilderOf(caller, d), caller, err)
	}
	return model.Apply(caller, d, made, model.Application{
		Op: op, Outputs: arrowrows.Columns(outputs), Replace: o.Replace,
		Open: func(file []byte, schema engine.Schema) (model.Compute, error) {
			m, score, err := open(file)
			if err != nil {
				return nil, err
			}
			p := &applied{o: o, m: m, score: score, schema: arrow.NewSchema(outputs, nil)}
			return p.compute, p.find(arrowrows.Arrow(schema))
		},
	})
}

// applied computes the added columns for batches. Only one goroutine at a time may use it.
type applied struct {
	o      model.LinearPredictOptions
	m      *Model
	score  score
	schema *arrow.Schema

	vector  int   // index of the vector column, if columns is nil
	columns []int // indices of the columns to join
	names   []string
	offset  int // index of the offset column; −1 if there is no offset

	x       []float64 // rows as dense vectors, which join or widen has written
	margins []float64
	valid   []bool
}

// find sets the indices of the columns that the model reads.
func (p *applied) find(schema *arrow.Schema) error {
	p.offset = -1
	names := p.o.FeatureCols
	if v := signature.Inputs(p.m.Reads).Vector(); p.o.VectorCol != "" || len(names) == 0 && v != "" {
		if p.o.VectorCol != "" {
			v = p.o.VectorCol
		}
		c := rows.Column{Name: v, Use: rows.Vector, Option: "features", Help: fmt.Sprintf("the model reads a vector of %d", p.m.Dim)}
		if err := c.Bind(schema); err != nil {
			return err
		}
		if dt := schema.Field(c.At).Type; batch.VectorDim(dt) != 0 && batch.VectorDim(dt) != p.m.Dim {
			return fmt.Errorf("features: column %q is %s, the model was trained on %d features", v, batch.TypeName(dt), p.m.Dim)
		}
		p.vector, p.names = c.At, []string{v}
	} else {
		if len(names) == 0 {
			for _, in := range p.m.Reads {
				names = append(names, in.Column)
			}
		}
		width := 0
		for _, name := range names {
			c := rows.Column{Name: name, Use: rows.Component, Option: "features"}
			if err := c.Bind(schema); err != nil {
				return err
			}
			width += max(1, batch.VectorDim(schema.Field(c.At).Type))
			p.columns = append(p.columns, c.At)
		}
		if width != p.m.Dim {
			return fmt.Errorf("the feature columns have %d components, the model was trained on %d features", width, p.m.Dim)
		}
		p.names = names
	}
	if name := cmp.Or(p.o.OffsetCol, p.m.OffsetCol); name != "" {
		c := rows.Column{Name: name, Role: "offset"}
		if err := c.Bind(schema); err != nil {
			return err
		}
		p.offset = c.At
	}
	return nil
}

// compute implements model.Compute.
func (p *applied) compute(c *engine.Context, first int, in engine.Batch) ([]columnar.Values, error) {
	rec := arrowrows.Record(in)
	n, k := int(rec.NumRows()), p.m.Margins()
	p.margins = kernel.Sized(p.margins, n*k)
	p.valid = kernel.Sized(p.valid, n)
	for i := range p.valid {
		p.valid[i] = true
	}
	if err := p.fill(first, rec, n); err != nil {
		return nil, err
	}
	if p.offset >= 0 {
		if err := p.shift(first, rec.Column(p.offset), rec.ColumnName(p.offset)); err != nil {
			return nil, err
		}
	}
	b, err := batch.NewRecordBuilder(c.Allocator, p.schema)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	for i, ok := range p.valid {
		if !ok {
			for f := range p.schema.NumFields() {
				batch.AppendNull(b.Field(f))
			}
			continue
		}
		if err := p.score(b, p.margins[i*k:(i+1)*k]); err != nil {
			return nil, model.RowError(first+i, err)
		}
	}
	columns, err := b.NewColumns()
	return arrowrows.Values(columns), err
}

// shift adds the offsets to the first margins.
func (p *applied) shift(first int, column arrow.Array, name string) error {
	k := p.m.Margins()
	for i := range p.valid {
		if !p.valid[i] || column.IsNull(i) {
			p.valid[i] = false
			continue
		}
		o := rows.NumberAt(column, i)
		if !kernel.Finite(o) {
			if !p.o.Skip {
				return refuse(first+i, fmt.Sprintf("column %q", name), o)
			}
			p.valid[i] = false
			continue
		}
		p.margins[i*k] += o
	}
	return nil
}

// refuse returns the error for the value v of a row, which is NaN or infinite. where says where
// in the row the value is.
func refuse(row int, where string, v float64) error {
	what := "NaN"
	if math.IsInf(v, 0) {
		what = "infinite"
	}
	return &engine.RowError{
		Row: int64(row), Err: fmt.Errorf("%s is %s", where, what), Cure: engine.LeaveOut, Advice: "set Skip to give such rows null",
	}
}
