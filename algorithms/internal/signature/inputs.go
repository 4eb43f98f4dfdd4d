package signature

import (
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Inputs are the columns that hold the features of a row: one column of vectors, or columns of
// numbers and vectors that are concatenated.
type Inputs []model.Input

// InputsOf returns the columns that training has read: the columns features if there are any,
// else the column vector, or the only vector column of schema if vector is empty. The columns
// must be in schema. dim is the number of features. It is added to the type of a vector whose
// type has no length.
func InputsOf(vector string, features []string, schema *arrow.Schema, dim int) Inputs {
	if len(features) == 0 {
		if vector == "" {
			vector, _ = rows.OnlyVector(schema)
		}
		features = []string{vector}
	}
	var in Inputs
	for _, name := range features {
		i, _ := batch.FindColumn(schema, name)
		dt := schema.Field(i).Type
		text := batch.TypeName(dt)
		if batch.IsVector(dt) && batch.VectorDim(dt) == 0 && dim > 0 {
			text = fmt.Sprintf("%s[%d]", text, dim)
		}
		in = append(in, model.Input{Column: name, Type: text})
	}
	return in
}

// Check returns an error if an input is not a number or a vector, or if the total number of
// features of the inputs is not dim.
func (in Inputs) Check(dim int) error {
	return in.check(dim, func(dt arrow.DataType, _ int) string {
		if batch.IsVector(dt) || batch.IsNumber(dt) {
			return ""
		}
		return ": want a number or a vector"
	})
}

// check does what Check does, with another rule for types. refuse returns a description of the
// error if input j must not have the type dt, else "".
func (in Inputs) check(dim int, refuse func(dt arrow.DataType, j int) string) error {
	if len(in) == 0 {
		return errors.New("the model reads no columns")
	}
	d := 0
	for j, c := range in {
		dt, err := batch.ParseType(c.Type)
		if err != nil {
			return fmt.Errorf("input %q: %w", c.Column, err)
		}
		if wrong := refuse(dt, j); wrong != "" {
			return fmt.Errorf("input %q is %s%s", c.Column, c.Type, wrong)
		}
		width := 1
		if batch.IsVector(dt) {
			width = batch.VectorDim(dt)
		}
		d += width
	}
	if d != dim {
		return fmt.Errorf("the columns that the model reads have %d components, and there are %d features", d, dim)
	}
	return nil
}

// CheckDim does what Check does, and also requires dim to be at least 1. columns lists the
// features that the model uses; nil means all features. over is the number of features that the
// model uses.
func (in Inputs) CheckDim(dim int, columns []int32) (over int, err error) {
	if dim < 1 || dim > batch.MaxDim {
		return 0, fmt.Errorf("dim is %d: want 1 to %d", dim, batch.MaxDim)
	}
	if columns == nil {
		return dim, in.Check(dim)
	}
	if due := OutOfOrder(columns, dim); due != "" {
		return 0, fmt.Errorf("the columns do not ascend: they have %s", due)
	}
	return len(columns), in.Check(dim)
}

// Width returns the number of features that an input has.
func Width(in model.Input) (int, error) {
	dt, err := batch.ParseType(in.Type)
	switch {
	case err != nil:
		return 0, fmt.Errorf("input %q: %w", in.Column, err)
	case batch.IsVector(dt):
		return batch.VectorDim(dt), nil
	case batch.IsNumber(dt):
		return 1, nil
	}
	return 0, fmt.Errorf("input %q is %s: want a number or a vector", in.Column, in.Type)
}

// IsVector reports whether the features are one vector.
func (in Inputs) IsVector() bool { return in.Vector() != "" }

// Vector returns the name of the vector column that holds all features, or "" if several
// columns are joined.
func (in Inputs) Vector() string {
	if len(in) == 1 && model.IsVector(in[0].Type) { // the type is a vector, such as vector[3] or sparse[3]
		return in[0].Column
	}
	return ""
}

// CheckFeatures returns an error if both VectorCol and FeatureCols are set in options of
// prediction.
func CheckFeatures(vector string, features []string) error {
	if vector != "" && len(features) > 0 {
		return errors.New("both VectorCol and FeatureCols are set: name one vector column or feature columns")
	}
	return nil
}
