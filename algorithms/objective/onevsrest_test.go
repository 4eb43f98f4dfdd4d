package objective_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/objective"
)

// TestOneVsRestOfTwoClasses compares the loss of one class against the rest with the two-class
// loss. The labels of the two-class loss say whether a row belongs to the class.
func TestOneVsRestOfTwoClasses(t *testing.T) {
	const n, classes = 60, 4
	facts := &rows.Facts{Classes: []string{"a", "b", "c", "d"}, ClassWeights: []float64{1, 1, 1, 1}}
	for class := range classes {
		label, is, margin := make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range n {
			label[i], margin[i] = float64(i*7%classes), float64(i%9-4)/2
			if i*7%classes == class {
				is[i] = 1
			}
		}
		for _, pair := range [][2]objective.Loss{
			{objective.HingeOneVsRest{Class: class}, objective.Hinge{}},
			{objective.SquaredHingeOneVsRest{Class: class}, objective.SquaredHinge{}},
			{objective.Smooth{Loss: objective.HingeOneVsRest{Class: class}}, objective.Smooth{Loss: objective.Hinge{}}},
		} {
			shape, err := pair[0].Shape(facts)
			require.NoError(t, err)
			require.Equal(t, objective.Shape{Margins: 1}, shape)
			require.Equal(t, rows.ClassLabel, pair[0].Label())
			require.Empty(t, pair[0].Refuses(2))
			require.Equal(t, pair[1].String(), pair[0].String())
			var got [2]objective.Batch
			for k, loss := range pair {
				b := objective.Batch{N: n, K: 1, Label: label, Margin: margin, Loss: make([]float64, n), Slope: make([]float64, n), Curve: make([]float64, n), Work: make([]float64, n)}
				if k == 1 {
					b.Label = is
				}
				loss.At(&b)
				got[k] = b
			}
			require.Equal(t, got[1].Loss, got[0].Loss)
			require.Equal(t, got[1].Slope, got[0].Slope)
			require.Equal(t, got[1].Curve, got[0].Curve)
		}
	}
	_, err := objective.HingeOneVsRest{Class: 4}.Shape(facts)
	require.ErrorContains(t, err, "class 4 is to be separated")
	_, err = objective.SquaredHingeOneVsRest{}.Shape(&rows.Facts{Classes: []string{"a"}})
	require.ErrorContains(t, err, `every label is "a"`)
	_, err = objective.HingeOneVsRest{}.Shape(&rows.Facts{Classes: []string{"a", "b"}, ClassWeights: []float64{1, 0}})
	require.ErrorContains(t, err, `class "b" weighs 0`)
}
