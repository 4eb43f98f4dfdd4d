package linearmodel

import (
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
)

// FeatureName returns the name of the feature that has coefficient k.
func (m *Model) FeatureName(k int) string {
	j := k
	if m.Columns != nil {
		j = int(m.Columns[k])
	}
	for _, in := range m.Reads {
		n, err := signature.Width(in)
		switch {
		case err != nil:
			return ""
		case j < n && signature.Inputs{in}.Vector() != "":
			return fmt.Sprintf("%s[%d]", in.Column, j)
		case j < n:
			return in.Column
		}
		j -= n
	}
	return ""
}
