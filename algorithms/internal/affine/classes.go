package affine

import (
	"fmt"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/algorithms/model"
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

// Check tells what does not hold together.
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
		switch v := &values[class]; v.Kind {
		case model.TextCell:
			cell.SetText(v.Text)
		case model.BoolCell:
			cell.SetBool(v.Int != 0)
		case model.FloatCell:
			cell.SetFloat(v.Float)
		default:
			cell.SetInt(v.Int)
		}
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

// Dataset makes the model of a classifier a dataset of the job, as training returns one:
// model.Dataset and LabelColumn.
func (c Classes) Dataset(b *engine.Builder, m model.Model) *engine.Dataset {
	const op = "model.Dataset"
	fail := func(err error) *engine.Dataset {
		b.Errorf("%s: %w", op, err)
		return b.Poisoned(op)
	}
	text, err := m.Encode()
	if err != nil {
		return fail(err)
	}
	dt, err := batch.ParseType(c.Type)
	if err != nil {
		return fail(err)
	}
	row, err := datasetRow(datasetSchema(dt), text)
	if err != nil {
		return fail(err)
	}
	return operators.FromRecords(b, []arrow.Record{row}).Named(m.Kind() + " model")
}

// labelType returns the type of the labels that the dataset of a classifier's model tells.
func labelType(made *engine.Dataset) (arrow.DataType, error) {
	i, err := batch.FindColumn(made.Schema(), LabelColumn)
	if err != nil {
		return nil, fmt.Errorf("the dataset of the model has no column %q, which tells the type of the labels: give it the dataset that training returned, or that of the model's Dataset", LabelColumn)
	}
	return made.Schema().Field(i).Type, nil
}
