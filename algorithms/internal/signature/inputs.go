package signature

import (
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Inputs are the columns that hold the features of a row: one vector, or numbers and
// vectors that follow each other.
type Inputs []model.Input

// InputsOf returns the columns that training read, which it has found in the schema: the
// vector, the features, or the only vector where neither is named. dim is the number of
// features, which is noted where the type of a vector does not tell it.
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

// Check tells what does not hold together, given the number of features.
func (in Inputs) Check(dim int) error {
	d := 0
	for _, c := range in {
		dt, err := batch.ParseType(c.Type)
		switch {
		case err != nil:
			return fmt.Errorf("input %q: %w", c.Column, err)
		case batch.IsVector(dt):
			d += batch.VectorDim(dt)
		case batch.IsNumber(dt):
			d++
		default:
			return fmt.Errorf("input %q is %s: want a number or a vector", c.Column, c.Type)
		}
	}
	if d != dim || d == 0 {
		return fmt.Errorf("the inputs have %d features, dim is %d", d, dim)
	}
	return nil
}

// joined tells whether features are several cells, or one that is no vector.
func (in Inputs) joined() bool {
	return len(in) > 1 || in[0].Type[0] != 'v' && in[0].Type[0] != 's' // as vector[3], sparse[3]
}

// Override is what prediction may say of the features.
type Override struct {
	// VectorCol or FeatureCols are read in place of the columns that training read; empty
	// means those.
	VectorCol   string
	FeatureCols []string
	// Skip takes rows with a NaN or an infinity among their features as rows with a null.
	Skip bool
}

// Check tells what does not hold together.
func (o Override) Check() error {
	if o.VectorCol != "" && len(o.FeatureCols) > 0 {
		return errors.New("both VectorCol and FeatureCols are set: name one vector column or number columns")
	}
	return nil
}
