package linearmodel

import (
	"fmt"
	"math/bits"

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
