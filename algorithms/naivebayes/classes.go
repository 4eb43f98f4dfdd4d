package naivebayes

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
// type of the column that they are from.
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

// modelSchema is that of the one-row datasets of models.
func modelSchema(label arrow.DataType) *arrow.Schema {
	return arrow.NewSchema([]arrow.Field{
		{Name: model.Column, Type: arrow.BinaryTypes.String}, {Name: labelColumn, Type: label, Nullable: true},
	}, nil)
}

// modelRow returns the row of such a dataset, owned.
func modelRow(schema *arrow.Schema, file []byte) (arrow.Record, error) {
	b, err := batch.NewRecordBuilder(memory.NewGoAllocator(), schema)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	b.Field(0).(*array.StringBuilder).Append(string(file))
	batch.AppendNull(b.Field(1))
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
	const op = "naivebayes.Model"
	text, err := m.Encode()
	if err == nil {
		dt, wrong := batch.ParseType(c.Type)
		if err = wrong; err == nil {
			var row arrow.Record
			if row, err = modelRow(modelSchema(dt), text); err == nil {
				return operators.FromRecords(b, []arrow.Record{row}).Named(m.Kind() + " model")
			}
		}
	}
	b.Errorf("%s: %w", op, err)
	return b.Poisoned(op)
}

// labelTypeOf returns the type of labels that the dataset of a model tells.
func labelTypeOf(made *engine.Dataset) (arrow.DataType, error) {
	if made == nil || made.Poisoned() || !made.Schema().HasField(model.Column) {
		return arrow.BinaryTypes.String, nil // what is wrong is told by model.ApplyRows
	}
	i, err := batch.FindColumn(made.Schema(), labelColumn)
	if err != nil {
		return nil, fmt.Errorf("the dataset of the model has no column %q, which tells the type of the labels: give it the dataset that training returned, or that of the model's Dataset", labelColumn)
	}
	return made.Schema().Field(i).Type, nil
}
