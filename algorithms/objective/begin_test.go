package objective_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
)

// planes returns rows whose labels are nearly a linear function of the features, except for
// some outliers. Each label is multiplied by size, and moved is added to the result.
func planes(size, moved float64) trial.Table {
	table := trial.Gaussian(3, 400, 5)
	for i := range table.N {
		x := table.Row(i)
		y := 3*x[0] - 2*x[1] + x[2] + 0.3*x[3]*x[4]
		if i%17 == 0 {
			y += 40
		}
		table.Label = append(table.Label, y*size+moved)
	}
	return table
}

// TestLabelsOfAnyMagnitude requires that training needs few reads for labels of any magnitude,
// and that a number that is added to all labels changes only the intercept.
func TestLabelsOfAnyMagnitude(t *testing.T) {
	for _, size := range []float64{1e-6, 1, 1e3, 1e6} {
		for _, m := range []optim.Method{optim.Auto, optim.LBFGS, optim.OWLQN} {
			for _, l := range []objective.Loss{objective.Huber{}, objective.Squared{}} {
				name := fmt.Sprint(l, " ", m, " ", size)
				still := fit(t, planes(size, 0), objective.Linear{Loss: l}, optim.Settings{Method: m, MaxIter: 1000})
				require.True(t, still.Converged, name)
				require.LessOrEqual(t, still.Reads, 140.0, name)
				far := fit(t, planes(size, 1e3*size), objective.Linear{Loss: l}, optim.Settings{Method: m, MaxIter: 1000})
				require.True(t, far.Converged, name)
				require.LessOrEqual(t, far.Reads, 140.0, name)
				require.InEpsilon(t, still.Loss, far.Loss, 1e-7, name)
				require.InDelta(t, still.Intercepts[0]+1e3*size, far.Intercepts[0], 1e-3*size, name)
			}
		}
	}
	// Labels are a million times as large as Delta. So nearly all rows are in the linear part
	// of the loss, where second derivatives are 0, and Newton's method has almost no second
	// derivatives to use.
	require.LessOrEqual(t, fit(t, planes(1e6, 0), objective.Linear{Loss: objective.Huber{}}, optim.Settings{}).Reads, 100.0)
}

// TestTimesOfAnyUnit requires that survival times in another unit change only the intercept of
// the optimum, by the logarithm of the unit.
func TestTimesOfAnyUnit(t *testing.T) {
	times := []float64{1, 4, 2, 7, 5, 12}
	for _, m := range []optim.Method{optim.Auto, optim.LBFGS} {
		for _, unit := range []float64{1e-8, 1, 1e4, 1e6, 1e8} {
			table := trial.TableOf(nil, []float64{1}, []float64{2}, []float64{3}, []float64{4}, []float64{5}, []float64{6})
			for _, y := range times {
				table.Label = append(table.Label, y*unit)
			}
			f := fit(t, table, objective.Linear{Loss: objective.AFT{}}, optim.Settings{Method: m, MaxIter: 500, Tol: 1e-9})
			first := fit(t, trial.TableOf(times, []float64{1}, []float64{2}, []float64{3}, []float64{4}, []float64{5}, []float64{6}),
				objective.Linear{Loss: objective.AFT{}}, optim.Settings{Method: m, MaxIter: 500, Tol: 1e-9})
			require.True(t, f.Converged, "%v, unit %v: training must converge", m, unit)
			require.InEpsilon(t, first.Loss, f.Loss, 1e-8, "%v, unit %v: the loss must not depend on the unit", m, unit)
			require.InDelta(t, first.Intercepts[0]+math.Log(unit), f.Intercepts[0], 1e-4, "%v, unit %v: the intercept must change by the logarithm of the unit", m, unit)
			require.InDelta(t, first.Reads, f.Reads, 3, "%v, unit %v: the number of reads must not depend on the unit", m, unit)
		}
	}
}

// TestLargeOffsets requires that offsets that are large and nearly equal do not impair
// training. The initial intercept compensates for the offsets.
func TestLargeOffsets(t *testing.T) {
	table := trial.Gaussian(6, 300, 3)
	for i := range table.N {
		x := table.Row(i)
		y := 0.0
		if x[0]-0.5*x[2]+2*float64(i%7)/7 > 1 {
			y = 1
		}
		table.Label = append(table.Label, y)
		table.Offset = append(table.Offset, 0.1*float64(i%5))
	}
	moved := table
	for _, l := range []objective.Loss{objective.Logistic{}, objective.Poisson{}, objective.Squared{}} {
		for _, m := range []optim.Method{optim.Auto, optim.LBFGS} {
			at := fit(t, table, objective.Linear{Loss: l}, optim.Settings{Method: m, L2: 0.01, Tol: 1e-9})
			for _, by := range []float64{-1e4, 1e4} {
				moved.Offset = nil
				for _, o := range table.Offset {
					moved.Offset = append(moved.Offset, o+by)
				}
				far := fit(t, moved, objective.Linear{Loss: l}, optim.Settings{Method: m, L2: 0.01, Tol: 1e-9})
				require.True(t, far.Converged)
				require.InEpsilon(t, at.Loss, far.Loss, 1e-7, "%v: offsets that are larger by %v must not change the optimal loss", l, by)
				require.InDelta(t, at.Intercepts[0]-by, far.Intercepts[0], 1e-5)
				require.InDeltaSlice(t, at.Weights, far.Weights, 1e-5)
			}
		}
	}
}
