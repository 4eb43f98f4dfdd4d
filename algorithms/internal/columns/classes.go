package columns

import (
	"fmt"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Classes are the classes of a classifier, in the order of their values, as text, and the
// type of the column that they are from. Those of a regression are empty.
type Classes struct {
	Type   string   `json:"label_type"`
	Values []string `json:"classes"`
}

// Check tells what does not hold together, given the least number of classes. Classes may
// be bytes, which Cells does not take.
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
			return fmt.Errorf("the class %q is there twice", v)
		}
		seen[v] = true
		if err := appendClass(b, v); err != nil {
			return fmt.Errorf("a class: %w", err)
		}
	}
	return nil
}

// appendClass appends the value that a class has in its column.
func appendClass(b array.Builder, text string) error {
	if raw, ok := b.(*array.BinaryBuilder); ok {
		raw.Append([]byte(text))
		return nil
	}
	return batch.ParseInto(b, []byte(text))
}

// Append appends a class to a column of the labels' type, null for −1.
func (c Classes) Append(b array.Builder, class int) error {
	if class < 0 {
		batch.AppendNull(b)
		return nil
	}
	return appendClass(b, c.Values[class])
}

// Setter returns what sets a cell to the value of a class, null for −1.
func (c Classes) Setter() (func(cell *model.Cell, class int), error) {
	dt, err := batch.ParseType(c.Type)
	if err != nil {
		return nil, err
	}
	values := make([]model.Cell, len(c.Values))
	for i, text := range c.Values {
		v := &values[i]
		switch {
		case dt.ID() == arrow.STRING || dt.ID() == arrow.BINARY:
			v.SetText(text)
		case dt.ID() == arrow.BOOL:
			v.SetBool(text == "true")
		case arrow.IsFloating(dt.ID()):
			x, err := strconv.ParseFloat(text, 64)
			if err != nil {
				return nil, err
			}
			v.SetFloat(x)
		default:
			n, err := wholeClass(dt, text)
			if err != nil {
				return nil, err
			}
			v.SetInt(n)
		}
	}
	return func(cell *model.Cell, class int) {
		if class < 0 {
			cell.SetNull()
			return
		}
		SetCell(cell, &values[class])
	}, nil
}

// wholeClass returns a class of a type that is held as integers, dates among them.
func wholeClass(dt arrow.DataType, text string) (int64, error) {
	b := array.NewBuilder(memory.NewGoAllocator(), dt)
	defer b.Release()
	if err := batch.ParseInto(b, []byte(text)); err != nil {
		return 0, err
	}
	one := b.NewArray()
	defer one.Release()
	switch a := one.(type) {
	case *array.Date32:
		return int64(a.Value(0)), nil
	case *array.Timestamp:
		return int64(a.Value(0)), nil
	case *array.Uint64:
		return int64(a.Value(0)), nil
	}
	return strconv.ParseInt(text, 10, 64)
}

// Match tells that the dataset of a model promises another type of labels than its file
// has.
func (c Classes) Match(label arrow.DataType) error {
	if says := batch.TypeName(label); c.Type != says {
		return fmt.Errorf("the model predicts labels of type %s, its dataset says %s", c.Type, says)
	}
	return nil
}

// Cells returns the value of each class, as a row of the label column has it. The error is
// about types that no cell has and about classes that are not of the type or there twice.
func (c Classes) Cells() ([]model.Cell, error) {
	dt, err := batch.ParseType(c.Type)
	if err != nil {
		return nil, fmt.Errorf("the type of labels: %w", err)
	}
	field := arrow.Field{Name: LabelColumn, Type: dt}
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
	layout := model.NewLayout(LabelColumn)
	if _, err := layout.Find(LabelColumn); err != nil {
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

// SetCell gives a cell the value of another that is no vector.
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
