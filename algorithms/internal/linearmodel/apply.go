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
)

// Application is how the model of an estimator is applied in a job.
type Application struct {
	Op string // such as "LogisticPredict", for plans
	// VectorCol, FeatureCols and OffsetCol are read in place of the columns that the model was
	// trained on.
	VectorCol   string
	FeatureCols []string
	OffsetCol   string
	// Skip gives rows with a NaN or an infinity among their features null in place of failing
	// the run. Rows with nulls get null in either case.
	Skip bool
	// Outputs are the columns that are added, which must be nullable; Replace puts them in the
	// place of columns of their names.
	Outputs []engine.Column
	Replace bool
	// Open decodes the model's file, once for each subtask, and returns what turns margins
	// into columns.
	Open func(file []byte) (*Model, Score, error)
}

// Score appends a row to the builders of the outputs, given its margins; nil margins ask
// for nulls, and are handled before Score is called where the row has none.
type Score func(b *batch.RecordBuilder, margins []float64) error

// LabelOutput returns the output for classes of the type that the dataset of a model tells.
func LabelOutput(caller, name string, made *engine.Dataset) (arrow.Field, error) {
	dt, err := signature.ClassType(made)
	return arrow.Field{Name: name, Type: dt, Nullable: true}, err
}

// NumberOutput returns the output for numbers.
func NumberOutput(name string) arrow.Field {
	return arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Float64, Nullable: true}
}

// Same is for models that predict the margin.
func Same(margin float64) float64 { return margin }

// ScoreNumber is the Score of a model that predicts a number of its one margin.
func ScoreNumber(of func(margin float64) float64) Score {
	return func(b *batch.RecordBuilder, margins []float64) error {
		b.Field(0).(*array.Float64Builder).Append(of(margins[0]))
		return nil
	}
}

// ScoreClass is the Score of a classifier: it appends the class and, behind it, the vector
// that of returns for a row's margins.
func ScoreClass(c Classes, of func(margins []float64) (class int, vector []float64)) Score {
	return func(b *batch.RecordBuilder, margins []float64) error {
		class, vector := of(margins)
		if err := c.Append(b.Field(0), class); err != nil {
			return err
		}
		list := b.Field(1).(*array.ListBuilder)
		list.Append(true)
		list.ValueBuilder().(*array.Float64Builder).AppendValues(vector, nil)
		return nil
	}
}

// Apply adds the operator that receives a model by broadcast and adds its columns to rows.
// Margins have the bits that MarginsTo and SparseMarginsTo give, and where there is an
// offset, that is added to the first. Mistakes are reported with the caller's line.
func Apply(caller string, d, made *engine.Dataset, a Application) *engine.Dataset {
	b := model.BuilderOf(caller, d)
	if err := (signature.Override{VectorCol: a.VectorCol, FeatureCols: a.FeatureCols}).Check(); err != nil {
		b.Errorf("%s: %w", caller, err)
		return b.Poisoned(caller)
	}
	return model.Apply(caller, d, made, model.Application{
		Op: a.Op, Outputs: a.Outputs, Replace: a.Replace,
		Open: func(file []byte, schema engine.Schema) (model.Compute, error) {
			m, score, err := a.Open(file)
			if err != nil {
				return nil, err
			}
			made, err := columnar.NewSchema(a.Outputs...)
			if err != nil {
				return nil, err
			}
			p := &applied{a: a, m: m, score: score, schema: arrowrows.Arrow(made)}
			if err := p.find(arrowrows.Arrow(schema)); err != nil {
				return nil, err
			}
			return p.compute, nil
		},
	})
}

// applied computes the columns for batches. One goroutine at a time.
type applied struct {
	a      Application
	m      *Model
	score  Score
	schema *arrow.Schema

	vector  int   // the vector column, or
	columns []int // those that are joined
	names   []string
	offset  int // -1: none

	x       []float64 // rows, joined or widened
	margins []float64
	valid   []bool
}

// find finds the columns that the model reads.
func (p *applied) find(schema *arrow.Schema) error {
	p.offset = -1
	names := p.a.FeatureCols
	if v := p.m.vector(); p.a.VectorCol != "" || len(names) == 0 && v != "" {
		if p.a.VectorCol != "" {
			v = p.a.VectorCol
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
	if name := cmp.Or(p.a.OffsetCol, p.m.OffsetCol); name != "" {
		c := rows.Column{Name: name, Role: "offset"}
		if err := c.Bind(schema); err != nil {
			return err
		}
		p.offset = c.At
	}
	return nil
}

// compute is the model.Compute.
func (p *applied) compute(c *engine.Context, first int, in engine.Batch) ([]columnar.Values, error) {
	rec := arrowrows.Record(in)
	n, k := int(rec.NumRows()), p.m.Margins()
	p.margins = grow(p.margins, n*k)
	if cap(p.valid) < n {
		p.valid = make([]bool, n)
	}
	p.valid = p.valid[:n]
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

// shift adds the offsets to the first margins.
func (p *applied) shift(first int, column arrow.Array, name string) error {
	k := p.m.Margins()
	for i := range p.valid {
		if !p.valid[i] || column.IsNull(i) {
			p.valid[i] = false
			continue
		}
		o := rows.NumberAt(column, i)
		if !finite(o) {
			if !p.a.Skip {
				return refuse(first+i, fmt.Sprintf("column %q", name), o)
			}
			p.valid[i] = false
			continue
		}
		p.margins[i*k] += o
	}
	return nil
}

// refuse says that a value of a row is no number that a margin can be made of.
func refuse(row int, where string, v float64) error {
	what := "NaN"
	if math.IsInf(v, 0) {
		what = "infinite"
	}
	return &engine.RowError{
		Row: int64(row), Err: fmt.Errorf("%s is %s", where, what), Cure: engine.LeaveOut, Advice: "set Skip to give such rows null",
	}
}

func grow(buf []float64, n int) []float64 {
	if cap(buf) < n {
		return make([]float64, n)
	}
	return buf[:n]
}
