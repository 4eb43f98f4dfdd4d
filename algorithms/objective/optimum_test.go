package objective_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
)

// fitted is the result of minimising an objective, as coefficients of unscaled features.
type fitted struct {
	Weights, Intercepts, Constants []float64
	Loss, Reads                    float64
	Iterations                     int64
	Converged                      bool
	Reason                         string
}

// fit minimises an objective over a table.
func fit(t testing.TB, table trial.Table, l objective.Linear, s optim.Settings) fitted {
	t.Helper()
	found, _ := fitOf(t, func(b *engine.Builder) *engine.Dataset { return table.Dataset(b) }, columnsOf(table), l, s)
	return found
}

// fitOf minimises an objective over a dataset and also returns the result of the run.
func fitOf(t testing.TB, data func(b *engine.Builder) *engine.Dataset, c rows.Columns, l objective.Linear, s optim.Settings, options ...engine.Option) (fitted, *engine.Result) {
	t.Helper()
	r := trial.Run(t, func(b *engine.Builder) {
		checked, err := rows.Check("test", data(b), c, l.Loss.Label())
		require.NoError(t, err)
		l.Table = checked
		engine.Collect(optim.Minimize(b, optim.Problem{
			Name: "fit", Init: checked.Init, Objective: l, Settings: s,
			Closer: comqueue.Output(func(ctx *comqueue.ComContext) ([]fitted, error) {
				facts, err := checked.FactsOf(ctx)
				if err != nil {
					return nil, err
				}
				r := optim.ResultOf(ctx)
				c, err := l.Coefficients(facts, r.Parameters)
				return []fitted{{c.Weights, c.Intercepts, c.Constants, r.Loss, r.Reads, int64(r.Iterations), r.Converged, string(r.Reason)}}, err
			}),
		}), "fit")
	}, options...)
	found, err := engine.Rows[fitted](r, "fit")
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0], r
}

func TestLeastSquaresOfTheLiterature(t *testing.T) {
	table := trial.TableOf([]float64{16.8, 6.7, 6.9, 8.0}, []float64{7, 9}, []float64{3, 3}, []float64{2, 4}, []float64{3, 4})
	for _, method := range []optim.Method{optim.Newton, optim.LBFGS} {
		f := fit(t, table, objective.Linear{Loss: objective.Squared{}}, optim.Settings{Method: method, Tol: 1e-12})
		predict := func(i int) float64 {
			return f.Intercepts[0] + f.Weights[0]*table.Row(i)[0] + f.Weights[1]*table.Row(i)[1]
		}
		require.InDelta(t, 16.81478873, predict(0), 5e-9)
		require.InDelta(t, 6.77394366, predict(1), 5e-9)
	}
}

func TestRidgeIsTheClosedForm(t *testing.T) {
	for _, d := range []design{{noStandardize: true}, {noStandardize: true, sparse: true, weighted: true}, {noStandardize: true, noIntercept: true}} {
		table := tableFor(kinds()[0], d)
		const l2 = 0.3
		f := fit(t, table, objective.Linear{Loss: objective.Squared{}, NoIntercept: d.noIntercept, NoStandardize: true}, optim.Settings{L2: l2, Tol: 1e-12})
		// (XᵀUX/W + l2·I) w = XᵀUy/W. X has a column of ones, which has no penalty.
		width := table.D
		if !d.noIntercept {
			width++
		}
		a, y := mat.NewSymDense(width, nil), mat.NewVecDense(width, nil)
		var total float64
		for i := range table.N {
			w := 1.0
			if d.weighted {
				w = table.Weight[i]
			}
			total += w
			x := append([]float64(nil), table.Row(i)...)
			if !d.noIntercept {
				x = append(x, 1)
			}
			v := mat.NewVecDense(width, x)
			a.SymRankOne(a, w, v)
			y.AddScaledVec(y, w*table.Label[i], v)
		}
		for j := range table.D {
			a.SetSym(j, j, a.At(j, j)+l2*total)
		}
		var want mat.VecDense
		require.NoError(t, want.SolveVec(a, y))
		for j := range table.D {
			if j == 2 && !d.noIntercept {
				continue // the constant feature is part of the intercept
			}
			require.InDelta(t, want.AtVec(j), f.Weights[j], 1e-9)
		}
		require.True(t, f.Converged, f.Reason)
	}
}

func TestEveryMethodFindsTheSameLogisticOptimum(t *testing.T) {
	table := tableFor(kinds()[1], design{weighted: true})
	var first fitted
	for i, method := range []optim.Method{optim.Newton, optim.LBFGS, optim.OWLQN} {
		f := fit(t, table, objective.Linear{Loss: objective.Logistic{}}, optim.Settings{Method: method, L2: 0.01, Tol: 1e-9, MaxIter: 500})
		if i == 0 {
			first = f
		}
		require.InEpsilon(t, first.Loss, f.Loss, 1e-12)
		for j := range first.Weights {
			require.InDelta(t, first.Weights[j], f.Weights[j], 1e-6*(1+math.Abs(first.Weights[j])))
		}
	}
}
