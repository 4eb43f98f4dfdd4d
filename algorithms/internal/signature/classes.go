package signature

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Classes has the classes of a classifier as text, in the order of their values, and the type
// of the label column. For a regression, Type and Values are empty.
type Classes struct {
	Type   string   `json:"label_type"`
	Values []string `json:"classes"`
}

// task returns what a model with these classes predicts.
func (c Classes) task() Task {
	if c.Type == "" {
		return Regression
	}
	return Classification
}

// Check returns an error if there are fewer classes than the parameter least, or if Type and
// Values contradict each other. Unlike Cells, it accepts classes of type binary.
func (c Classes) Check(least int) error {
	if len(c.Values) < least {
		return fmt.Errorf("there are %d classes, want %d or more", len(c.Values), least)
	}
	dt, err := batch.ParseType(c.Type)
	if err != nil {
		return fmt.Errorf("the type of labels: %w", err)
	}
	if batch.IsVector(dt) {
		return fmt.Errorf("labels are %s", c.Type)
	}
	seen := map[string]bool{}
	b := array.NewBuilder(memory.NewGoAllocator(), dt)
	defer b.Release()
	for _, v := range c.Values {
		if seen[v] {
			return fmt.Errorf("the class %q occurs twice", v)
		}
		seen[v] = true
		if err := batch.ParseInto(b, []byte(v)); err != nil {
			return fmt.Errorf("a class: %w", err)
		}
	}
	return nil
}

// Append appends the value of the class with the given number to a column of the labels' type.
// For class −1 it appends null.
func (c Classes) Append(b array.Builder, class int) error {
	if class < 0 {
		batch.AppendNull(b)
		return nil
	}
	return batch.ParseInto(b, []byte(c.Values[class]))
}

// Setter returns a function that sets a cell to the value that a class has in the label column.
// For class −1 it sets the cell to null.
func (c Classes) Setter() (func(cell *model.Cell, class int), error) {
	values, err := c.Cells()
	if err != nil {
		return nil, err
	}
	return func(cell *model.Cell, class int) {
		if class < 0 {
			cell.SetNull()
			return
		}
		SetCell(cell, &values[class])
	}, nil
}

// MatchDataset compares the dataset of a model with the model's file. It returns an error if
// they disagree on whether the model is a classifier, or on the type of labels. label is the
// type of labels in the dataset, or nil for a regression. The parameter named is contains a
// description of the model for the message.
func (c Classes) MatchDataset(label arrow.DataType, is string) error {
	switch {
	case (c.Type != "") != (label != nil):
		return fmt.Errorf("%s, and its dataset is of the other kind: give Predict the dataset that training returned", is)
	case label != nil:
		return c.Match(label)
	}
	return nil
}

// Match returns an error if label, which is the type of labels in the dataset of a model,
// differs from the type in the model's file.
func (c Classes) Match(label arrow.DataType) error {
	if says := batch.TypeName(label); c.Type != says {
		return fmt.Errorf("the model predicts labels of type %s, its dataset says %s", c.Type, says)
	}
	return nil
}

// Cells returns the value that each class has in the label column. It returns an error if a
// cell cannot hold the type, if a class is not a value of the type, or if two classes are
// equal.
func (c Classes) Cells() ([]model.Cell, error) {
	dt, err := batch.ParseType(c.Type)
	if err != nil {
		return nil, fmt.Errorf("the type of labels: %w", err)
	}
	field := arrow.Field{Name: LabelColumn, Type: dt}
	if err := model.CheckCell(arrowrows.Columns([]arrow.Field{field})[0]); err != nil || batch.IsVector(dt) {
		return nil, fmt.Errorf("labels are %s: want numbers, bools, text or dates", c.Type)
	}
	b := array.NewBuilder(memory.NewGoAllocator(), dt)
	defer b.Release()
	seen := map[string]bool{}
	for _, text := range c.Values {
		if seen[text] {
			return nil, fmt.Errorf("the class %q occurs twice", text)
		}
		seen[text] = true
		if err := batch.ParseInto(b, []byte(text)); err != nil {
			return nil, fmt.Errorf("class %q: %w", text, err)
		}
	}
	column := b.NewArray() // the memory is garbage-collected; the texts in cells point into it
	schema := arrow.NewSchema([]arrow.Field{field}, nil)
	layout := model.NewLayout(LabelColumn)
	if _, err := layout.Find(LabelColumn); err != nil {
		return nil, err
	}
	r, err := model.NewReader(arrowrows.Schema(schema), layout)
	if err != nil {
		return nil, err
	}
	r.Reset(arrowrows.Batch(array.NewRecord(schema, []arrow.Array{column}, int64(column.Len()))))
	cells := make([]model.Cell, len(c.Values))
	for i := range cells {
		r.Read(i, cells[i:i+1])
	}
	return cells, nil
}

// ClassColumn returns the type of a column of class labels, or an error if cells cannot hold
// the type.
func ClassColumn(schema *arrow.Schema, name string) (arrow.DataType, error) {
	i, err := batch.FindColumn(schema, name)
	if err != nil {
		return nil, err
	}
	label := schema.Field(i).Type
	_, err = Classes{Type: batch.TypeName(label)}.Cells()
	return label, err
}

// SetCell copies the value of the cell from to the cell to. The value must not be a vector or
// null.
func SetCell(to, from *model.Cell) {
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
