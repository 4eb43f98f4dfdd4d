package prepare_test

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/model"
)

// text returns the value of a cell as a text. Values with different bits have different texts,
// except that all NaNs have the same text.
func text(c model.Cell) string {
	switch c.Kind {
	case model.NullCell:
		return "null"
	case model.TextCell:
		return c.Text
	case model.DenseCell:
		return fmt.Sprint("vector ", bits(c.Values))
	case model.SparseCell:
		return fmt.Sprint("sparse ", c.Indices, bits(c.Values))
	case model.FloatCell:
		return fmt.Sprint("number ", bits([]float64{c.Float}))
	}
	return fmt.Sprint(c.Kind, " ", c.Int)
}

func bits(values []float64) []string {
	made := make([]string, len(values))
	for i, v := range values {
		made[i] = fmt.Sprintf("%x", math.Float64bits(v))
		if v != v {
			made[i] = "NaN"
		}
	}
	return made
}
