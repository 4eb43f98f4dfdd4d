package affine

import (
	"fmt"
	"math/bits"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/batch"
)

func onesCount(w uint64) int { return bits.OnesCount64(w) }

// inputWidth returns the number of features that a column gives.
func inputWidth(in model.Input) (int, error) {
	dt, err := batch.ParseType(in.Type)
	if err != nil {
		return 0, fmt.Errorf("input %q: %w", in.Column, err)
	}
	if batch.IsVector(dt) {
		return batch.VectorDim(dt), nil
	}
	return 1, nil
}

// inputsOf returns the columns of the features of a dataset that was checked, with the
// number of features where the type of a vector column does not tell it.
func inputsOf(schema *arrow.Schema, t rows.Table, features []string, dim int) ([]model.Input, error) {
	names := features
	if v := t.Vector(); v != "" {
		names = []string{v}
	}
	var in []model.Input
	for _, name := range names {
		i, err := batch.FindColumn(schema, name)
		if err != nil {
			return nil, err
		}
		dt := schema.Field(i).Type
		text := batch.TypeName(dt)
		if batch.IsVector(dt) && batch.VectorDim(dt) == 0 && dim > 0 {
			text = fmt.Sprintf("%s[%d]", text, dim)
		}
		in = append(in, model.Input{Column: name, Type: text})
	}
	return in, nil
}

// FeatureName names a feature that has a coefficient, by its place among the coefficients.
func (m *Model) FeatureName(k int) string {
	j := k
	if m.Columns != nil {
		j = int(m.Columns[k])
	}
	if v := m.vector(); v != "" {
		return fmt.Sprintf("%s[%d]", v, j)
	}
	for _, in := range m.Reads {
		n, err := inputWidth(in)
		switch {
		case err != nil:
			return ""
		case j < n && in.Type[0] == 'v':
			return fmt.Sprintf("%s[%d]", in.Column, j)
		case j < n:
			return in.Column
		}
		j -= n
	}
	return ""
}
