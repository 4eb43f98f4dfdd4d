package mlp

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
)

// Classes are the classes of a classifier, in the order of their values, as text, and the
// type of the column that they are from. Those of a regression are empty.
type Classes struct {
	Type   string   `json:"label_type"`
	Values []string `json:"classes"`
}

// cells returns the value of each class.
func (c Classes) cells() ([]model.Cell, error) {
	dt, err := batch.ParseType(c.Type)
	if err != nil {
		return nil, fmt.Errorf("the type of labels: %w", err)
	}
	field := arrow.Field{Name: "label", Type: dt}
	if err := model.CheckCell(field); err != nil || batch.IsVector(dt) {
		return nil, fmt.Errorf("labels are %s: want numbers, bools, text or dates", c.Type)
	}
	b := array.NewBuilder(memory.NewGoAllocator(), dt)
	defer b.Release()
	seen := map[string]bool{}
	for _, text := range c.Values {
		if seen[text] {
			return nil, fmt.Errorf("the class %q is there twice", text)
		}
		seen[text] = true
		if err := batch.ParseInto(b, []byte(text)); err != nil {
			return nil, fmt.Errorf("class %q: %w", text, err)
		}
	}
	column := b.NewArray() // in the garbage collector's memory, which texts stay in
	schema := arrow.NewSchema([]arrow.Field{field}, nil)
	layout := model.NewLayout("label")
	if _, err := layout.Find("label"); err != nil {
		return nil, err
	}
	r, err := model.NewReader(schema, layout)
	if err != nil {
		return nil, err
	}
	r.Reset(array.NewRecord(schema, []arrow.Array{column}, int64(column.Len())))
	cells := make([]model.Cell, len(c.Values))
	for i := range cells {
		r.Read(i, cells[i:i+1])
	}
	return cells, nil
}

// setCell gives a cell the value of another that is no vector.
func setCell(to, from *model.Cell) {
	switch from.Kind {
	case model.TextCell:
		to.SetText(from.Text)
	case model.BoolCell:
		to.SetBool(from.Int != 0)
	case model.FloatCell:
		to.SetFloat(from.Float)
	default:
		to.SetInt(from.Int)
	}
}

// labelColumn is the column of a model's dataset that tells the type of labels. It is null.
const labelColumn = "label"

// modelSchema is that of the one-row datasets of models; label is nil for regressions.
func modelSchema(label arrow.DataType) *arrow.Schema {
	fields := []arrow.Field{{Name: model.Column, Type: arrow.BinaryTypes.String}}
	if label != nil {
		fields = append(fields, arrow.Field{Name: labelColumn, Type: label, Nullable: true})
	}
	return arrow.NewSchema(fields, nil)
}

// modelRow returns the row of such a dataset, owned.
func modelRow(schema *arrow.Schema, file []byte) (arrow.Record, error) {
	b, err := batch.NewRecordBuilder(memory.NewGoAllocator(), schema)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	b.Field(0).(*array.StringBuilder).Append(string(file))
	for i := 1; i < schema.NumFields(); i++ {
		batch.AppendNull(b.Field(i))
	}
	return b.NewRecord()
}

// closer gives the row of the model that finish makes.
func closer(label arrow.DataType, finish func(ctx *comqueue.ComContext) (model.Model, error)) comqueue.Closer {
	schema := modelSchema(label)
	return comqueue.OutputBatches(schema, func(ctx *comqueue.ComContext, emit func(arrow.Record) error) error {
		m, err := finish(ctx)
		if err != nil {
			return err
		}
		file, err := m.Encode()
		if err != nil {
			return err
		}
		row, err := modelRow(schema, file)
		if err != nil {
			return err
		}
		defer row.Release()
		return emit(row)
	})
}

// dataset makes a model a dataset of the job, as training returns one.
func (c Classes) dataset(b *engine.Builder, m model.Model) *engine.Dataset {
	const op = "mlp.Model"
	text, err := m.Encode()
	if err == nil {
		var dt arrow.DataType
		if c.Type != "" {
			dt, err = batch.ParseType(c.Type)
		}
		if err == nil {
			var row arrow.Record
			if row, err = modelRow(modelSchema(dt), text); err == nil {
				return operators.FromRecords(b, []arrow.Record{row}).Named(m.Kind() + " model")
			}
		}
	}
	b.Errorf("%s: %w", op, err)
	return b.Poisoned(op)
}

// labelTypeOf returns the type of labels that the dataset of a model tells, nil for a
// regression.
func labelTypeOf(made *engine.Dataset) arrow.DataType {
	if made == nil || made.Poisoned() || !made.Schema().HasField(labelColumn) {
		return nil // what else is wrong is told by model.ApplyRows
	}
	i, _ := batch.FindColumn(made.Schema(), labelColumn)
	return made.Schema().Field(i).Type
}
