package model

import (
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// Application describes the operator by which a model computes columns in a job.
type Application struct {
	// Op is the name of the operator in plans and messages, such as "KMeansPredict".
	Op string
	// Attrs are the attributes of the operator in the plan.
	Attrs []engine.Attr
	// Outputs are the columns that are added after the columns of the rows.
	Outputs []engine.Column
	// If Replace is set, an output replaces an existing column of the same name. Otherwise such
	// a column is an error.
	Replace bool
	// Open decodes the model's file for one subtask, before the subtask's first batch. schema
	// is the schema of the rows.
	Open func(file []byte, schema engine.Schema) (Compute, error)
	// OpenPlaced is set instead of Open if the values for a row also depend on its shard and on
	// its number within the shard. Values that are drawn at random are an example.
	OpenPlaced func(file []byte, schema engine.Schema) (PlacedCompute, error)
}

// Compute returns the columns of Outputs for a batch of rows. The batch is borrowed; the caller
// of Compute owns the returned columns. first is the number of the batch's first row within its
// shard; it is used in messages. The values for a row must depend on that row alone. Compute is
// called by one goroutine at a time.
type Compute func(c *engine.Context, first int, rows engine.Batch) ([]columnar.Values, error)

// PlacedCompute does what Compute does, for columns that also depend on the place of a row,
// which is its shard and its number within the shard.
type PlacedCompute func(c *engine.Context, shard, first int, rows engine.Batch) ([]columnar.Values, error)

// Apply adds the operator that receives a model by broadcast and adds columns to rows batch by
// batch. model is a dataset of one row, from training or from Dataset. Rows keep their shards
// and their order. Errors are reported with the source line of the caller. Messages begin with
// caller, such as "kmeans.Predict".
func Apply(caller string, rows, model *engine.Dataset, a Application) *engine.Dataset {
	return addOperator(caller, rows, model, a.Op, a.Attrs, a.Outputs, a.Replace, true, func(c columnAdder) engine.Operator {
		return &applied{columnAdder: c, a: a}
	})
}

// addOperator makes the checks that are common to Apply and ApplyRows, and adds an operator.
// The function make creates the operator from the schema of its output and the indices of the
// added columns.
func addOperator(caller string, rows, model *engine.Dataset, op string, attrs []engine.Attr, outputs []engine.Column, replace, rowByRow bool,
	make func(c columnAdder) engine.Operator,
) *engine.Dataset {
	b := BuilderOf(caller, rows)
	switch {
	case rows.Poisoned():
		return rows
	case model == nil:
		return Refuse(b, caller, errors.New("the model is nil: give it the dataset that training returned"))
	case model.Poisoned():
		return model
	case model.Schema().Index(Column) < 0:
		return Refuse(b, caller, fmt.Errorf("the model has no column %q: give it the dataset that training returned", Column))
	}
	made, at, err := withColumns(arrowrows.Arrow(rows.Schema()), outputs, replace)
	if err != nil {
		return Refuse(b, caller, err)
	}
	return b.Add(engine.Spec{
		Op: op, Attrs: attrs, Schema: arrowrows.Schema(made),
		Inputs:   []engine.Port{{From: rows}, {From: model, Partitioner: engine.Broadcast, Side: true}},
		RowByRow: rowByRow,
		Operator: func() engine.Operator { return make(columnAdder{schema: made, at: at, input: rows.Schema()}) },
	})
}

// columnAdder is embedded in the operators that add columns.
type columnAdder struct {
	engine.BaseOperator
	schema *arrow.Schema // schema of the operator's output; at has the indices of the added columns in it
	at     []int
	input  engine.Schema
	rows   int // rows of the current shard seen so far
}

// EndShard resets the number of rows of the shard to 0.
func (p *columnAdder) EndShard(*engine.Context, int, engine.Output) error {
	p.rows = 0
	return nil
}

// applied is the operator that Apply adds.
type applied struct {
	columnAdder
	a       Application
	compute PlacedCompute
}

// Open decodes the model.
func (p *applied) Open(c *engine.Context) error {
	file, err := Side(c, 1)
	if err != nil {
		return err
	}
	if p.a.OpenPlaced != nil {
		p.compute, err = p.a.OpenPlaced(file, p.input)
		return err
	}
	compute, err := p.a.Open(file, p.input)
	p.compute = func(c *engine.Context, _, first int, rows engine.Batch) ([]columnar.Values, error) {
		return compute(c, first, rows)
	}
	return err
}

// Process adds the columns to a batch.
func (p *applied) Process(c *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	columns, err := p.compute(c, shard, p.rows, in)
	if err != nil {
		return err
	}
	made, err := join(p.schema, p.at, arrowrows.Record(in), arrowrows.Arrays(columns))
	if err != nil {
		return fmt.Errorf("%s: %w", p.a.Op, err)
	}
	defer made.Release()
	p.rows += in.Len()
	return out.Emit(shard, arrowrows.Batch(made))
}

// join returns a record of the given schema: the columns of rows, with columns[i] as column
// at[i]. It releases columns.
func join(schema *arrow.Schema, at []int, rows arrow.Record, columns []arrow.Array) (arrow.Record, error) {
	defer func() {
		for _, c := range columns {
			if c != nil {
				c.Release()
			}
		}
	}()
	if len(columns) != len(at) {
		return nil, fmt.Errorf("%d columns were computed, %d declared", len(columns), len(at))
	}
	all := make([]arrow.Array, schema.NumFields())
	copy(all, rows.Columns())
	for i, c := range columns {
		field := schema.Field(at[i])
		switch {
		case c == nil:
			return nil, fmt.Errorf("column %q has no values", field.Name)
		case int64(c.Len()) != rows.NumRows():
			return nil, fmt.Errorf("column %q has %d values for %d rows", field.Name, c.Len(), rows.NumRows())
		case !arrow.TypeEqual(c.DataType(), field.Type):
			return nil, fmt.Errorf("column %q is %v, declared %v", field.Name, c.DataType(), field.Type)
		case c.NullN() > 0 && !field.Nullable:
			return nil, fmt.Errorf("column %q has nulls and is declared without", field.Name)
		}
		all[at[i]] = c
	}
	return array.NewRecord(schema, all, rows.NumRows()), nil
}
