package glm_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// TestUnitsOfLabels trains on the same labels in other units: by an identity the
// coefficients change with the unit, by a logarithm only the intercept does.
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
					operators.Collect(b, "model", glm.Train(scaled.Dataset(b), p))
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
