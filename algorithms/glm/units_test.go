package glm_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
)

// TestUnitsOfLabels requires that labels in other units change the coefficients in proportion
// to the unit with the link Identity, and only the intercept with the link Log.
func TestUnitsOfLabels(t *testing.T) {
	table := trial.Gaussian(31, 80, 2)
	label := make([]float64, table.N)
	for i := range label {
		label[i] = math.Exp(0.4*table.Row(i)[0]-0.2*table.Row(i)[1]) * (1 + 0.5*math.Sin(float64(7*i)))
	}
	for _, p := range []glm.Params{{Family: glm.Gaussian}, {Family: glm.Gamma, Link: glm.Log}, {Family: glm.Tweedie, Link: glm.Log}, {Family: glm.Poisson, Link: glm.Log}} {
		t.Run(fmt.Sprint(p.Family), func(t *testing.T) {
			p.VectorCol, p.LabelCol = "features", "label"
			fit := func(unit float64) *glm.Model {
				scaled := table
				scaled.Label = make([]float64, table.N)
				for i, y := range label {
					scaled.Label[i] = y * unit
				}
				r := trial.Run(t, func(b *engine.Builder) {
					engine.Collect(glm.Train(scaled.Dataset(b), p), "model")
				})
				m, err := glm.ModelOf(r, "model")
				require.NoError(t, err)
				require.True(t, m.Summary.Converged, "unit %g: %s", unit, m.Summary.Reason)
				return m
			}
			want := fit(1)
			for _, unit := range []float64{1e-10, 1e-3, 1e6} {
				got, by := fit(unit), 1.0
				if p.Family == glm.Gaussian {
					by = unit
				}
				for j, w := range want.Coefficients[0] {
					require.InEpsilon(t, w, got.Coefficients[0][j]/by, 1e-4, fmt.Sprintf("unit %g, coefficient %d", unit, j))
				}
			}
		})
	}
}

// TestGaussianWithLabelsOfAllMagnitudes requires that training with the table of standard
// errors reaches the same coefficients as training without it, even for rows for which the sums
// for the table are far larger than all other sums.
func TestGaussianWithLabelsOfAllMagnitudes(t *testing.T) {
	for seed := range uint64(4) {
		table := trial.Gaussian(20+seed, 120, 4)
		for i := range table.N {
			x := table.Row(i)
			for j := range x {
				x[j] *= math.Pow(10, float64(8*j-8)) // from 1e-8 to 1e16
			}
			table.Label = append(table.Label, 1e14*(x[0]*1e8+2)+3*x[3]+x[1]*1e13*math.Sin(float64(i)))
		}
		want := train(t, table, glm.Params{NoInference: true, MaxIter: 5})
		got := train(t, table, glm.Params{MaxIter: 5})
		require.True(t, want.Summary.Converged)
		require.True(t, got.Summary.Converged)
		require.InEpsilon(t, want.Summary.Loss, got.Summary.Loss, 1e-12)
		require.InEpsilonSlice(t, want.Coefficients[0], got.Coefficients[0], 1e-6)
		require.Equal(t, 1, got.Summary.Iterations)
		require.NotNil(t, got.Summary.Inference)
	}
}
