package linear_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
)

// TestUnitsOfLabels trains on the same labels in several units. Every method must give the same
// coefficients in each unit, because the limit below which a gradient is small also has the
// unit of the labels.
func TestUnitsOfLabels(t *testing.T) {
	table := trial.Gaussian(11, 80, 3)
	noise := trial.Gaussian(12, 80, 1)
	label := make([]float64, table.N)
	for i := range label {
		x := table.Row(i)
		label[i] = 2*x[0] - x[1] + 0.25*x[2] + 0.5*noise.X[i] + 3
	}
	for _, method := range []optim.Method{optim.Newton, optim.LBFGS, optim.GD, optim.OWLQN} {
		t.Run(method.String(), func(t *testing.T) {
			fit := func(unit float64) *linear.Model {
				scaled := table
				scaled.Label = make([]float64, table.N)
				for i, y := range label {
					scaled.Label[i] = y * unit
				}
				p := linear.Params{VectorCol: "features", LabelCol: "label", Method: method, MaxIter: 2000}
				r := trial.Run(t, func(b *engine.Builder) {
					engine.Collect(linear.Train(scaled.Dataset(b), p), "model")
				})
				m, err := linear.ModelOf(r, "model")
				require.NoError(t, err)
				return m
			}
			want := fit(1)
			require.True(t, want.Summary.Converged)
			for _, unit := range []float64{1e-12, 1e-7, 1e-3, 1e5, 1e12} {
				got := fit(unit)
				require.True(t, got.Summary.Converged, "training with the unit %g must converge, but it ended with %q", unit, got.Summary.Reason)
				for j, w := range want.Coefficients[0] {
					require.InEpsilon(t, w, got.Coefficients[0][j]/unit, 1e-4, fmt.Sprintf("unit %g, coefficient %d", unit, j))
				}
				require.InEpsilon(t, want.Intercepts[0], got.Intercepts[0]/unit, 1e-4)
			}
		})
	}
}

// TestFarFromAnOptimum trains on labels whose squares overflow. Training may fail, but must not
// report convergence far from an optimum.
func TestFarFromAnOptimum(t *testing.T) {
	table := trial.Gaussian(11, 40, 2)
	table.Label = make([]float64, table.N)
	for i := range table.Label {
		table.Label[i] = 1e100 * (table.Row(i)[0] - 2*table.Row(i)[1])
	}
	r, err := trial.Try(t, func(b *engine.Builder) {
		engine.Collect(linear.Train(table.Dataset(b), linear.Params{VectorCol: "features", LabelCol: "label", Method: optim.LBFGS}), "model")
	})
	if err != nil {
		require.ErrorContains(t, err, "loss")
		return
	}
	defer r.Release()
	m, err := linear.ModelOf(r, "model")
	require.NoError(t, err)
	right := math.Abs(m.Coefficients[0][0]/1e100-1) < 1e-3 && math.Abs(m.Coefficients[0][1]/1e100+2) < 1e-3
	require.Equal(t, right, m.Summary.Converged, "convergence must be reported only at the optimum: coefficients %v, reason %q", m.Coefficients, m.Summary.Reason)
}

// TestRowsWithoutWeight requires that additional rows of weight 0 change neither the
// coefficients nor the table.
func TestRowsWithoutWeight(t *testing.T) {
	table, noise := trial.Gaussian(21, 90, 2), trial.Gaussian(22, 90, 1)
	for i := range table.N {
		w := 1.0
		if i >= 60 {
			w = 0
		}
		table.Weight = append(table.Weight, w)
		table.Label = append(table.Label, table.Row(i)[0]+0.5*noise.X[i])
	}
	few := table
	few.N, few.X, few.Label, few.Weight = 60, table.X[:120], table.Label[:60], table.Weight[:60]
	fit := func(d trial.Table) *linear.Model {
		r := trial.Run(t, func(b *engine.Builder) {
			engine.Collect(linear.Train(d.Dataset(b), linear.Params{VectorCol: "features", LabelCol: "label", WeightCol: "weight"}), "model")
		})
		m, err := linear.ModelOf(r, "model")
		require.NoError(t, err)
		return m
	}
	want, got := fit(few), fit(table)
	require.Equal(t, 57.0, want.Summary.Inference.Freedom)
	require.Equal(t, want.Summary.Inference.Freedom, got.Summary.Inference.Freedom)
	for j, term := range want.Summary.Inference.Terms {
		require.InEpsilon(t, term.StdError, got.Summary.Inference.Terms[j].StdError, 1e-10, term.Name)
	}
	require.Equal(t, len(want.Summary.Measures), len(got.Summary.Measures))
	for i, m := range want.Summary.Measures {
		require.InEpsilon(t, m.Value, got.Summary.Measures[i].Value, 1e-9, m.Name)
	}
}
