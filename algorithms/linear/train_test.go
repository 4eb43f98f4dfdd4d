package linear_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/linear"
)

// TestPublishedLeastSquares: rows 1 and 2 of a case of four rows and four coefficients that
// has been published with the predictions below.
func TestPublishedLeastSquares(t *testing.T) {
	table := trial.TableOf([]float64{16.8, 6.7, 6.9, 8.0}, []float64{1, 7, 9}, []float64{1, 3, 3}, []float64{1, 2, 4}, []float64{1, 3, 4})
	m := train(t, table, linear.Params{})
	fmt.Printf("%+v\n", m.Summary)
	fmt.Printf("%+v\n", m.Summary.Inference)
	require.InDelta(t, 16.81478873, m.Predict(table.Row(0)), 1e-8)
	require.InDelta(t, 6.77394366, m.Predict(table.Row(1)), 1e-8)
}
