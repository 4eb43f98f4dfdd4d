package optim_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// classes returns rows whose columns all have the same scale.
func classes(seed uint64, n, d int) objective {
	table := trial.Gaussian(seed, n, d)
	noise := trial.Gaussian(seed+1, n, 1)
	for i := range n {
		y := 0.0
		if table.Row(i)[0]-2*table.Row(i)[1]+noise.X[i] > 0.2 {
			y = 1
		}
		table.Label = append(table.Label, y)
	}
	return objective{table: table, loss: logistic}
}

func TestSGDComesClose(t *testing.T) {
	o := classes(5, 200, 3)
	quick := []engine.Option{engine.CheckBroadcasts(false), engine.Parallelism(1)}
	const l2 = 0.01
	best, _ := o.independent(t, optim.Settings{L2: l2})
	for name, s := range map[string]optim.Stochastic{
		"inverse":     {Rate: 1},
		"constant":    {Schedule: optim.Constant, Rate: 0.06},
		"exponential": {Schedule: optim.Exponential, Rate: 0.5, Decay: 0.9},
		"optimal":     {Schedule: optim.Optimal, Rate: 1},
		"momentum":    {Momentum: 0.9, Rate: 0.1},
		"nesterov":    {Momentum: 0.9, Nesterov: true, Rate: 0.1},
		"adam":        {Update: optim.Adam, Schedule: optim.Exponential, Rate: 0.05, Decay: 0.9},
		"adagrad":     {Update: optim.AdaGrad, Schedule: optim.Constant, Rate: 0.5},
		"average":     {Schedule: optim.Constant, Rate: 0.1, Average: true},
		"batches":     {Batch: 40, Rate: 2, Schedule: optim.Exponential, Decay: 0.9},
		"single rows": {Batch: 1, Schedule: optim.Optimal, Rate: 0.1},
		"all rows":    {Batch: 1000, Schedule: optim.Constant, Rate: 3},
	} {
		r := solve(t, o, optim.Settings{Method: optim.SGD, L2: l2, MaxIter: 50, Stochastic: s}, quick...)
		require.InDelta(t, best, r.Loss, 1e-3*best, name)
		requireClose(t, o.value(r.Parameters, nil, optim.Settings{L2: l2}), r.Loss, name)
		require.Equal(t, 50, r.Iterations)
		require.InDelta(t, 52, r.Reads, 1e-9)
		require.Len(t, r.Record, 51)
		if !testsize.Soak && name != "exponential" && name != "all rows" {
			continue
		}
		again := solve(t, o, optim.Settings{Method: optim.SGD, L2: l2, MaxIter: 50, Stochastic: s, Seed: 99}, quick...)
		if name != "all rows" {
			require.NotEqual(t, r.Parameters, again.Parameters, "another seed must give another order of rows")
		} else {
			require.InDeltaSlice(t, r.Parameters, again.Parameters, 1e-9)
		}
	}
}

// TestSGDWeighsRows requires that a row with weight w has the same effect as w copies of the
// row.
func TestSGDWeighsRows(t *testing.T) {
	o := classes(7, 300, 3)
	o.table.Weight = make([]float64, o.table.N)
	for i := range o.table.Weight {
		o.table.Weight[i] = float64(i%3) + 0.1
		if o.table.Label[i] == 1 {
			o.table.Weight[i] *= 5
		}
	}
	best, at := o.independent(t, optim.Settings{L2: 0.01})
	r := solve(t, o, optim.Settings{Method: optim.SGD, L2: 0.01, Stochastic: optim.Stochastic{Batch: 8, Schedule: optim.Optimal, Rate: 0.5}}, engine.CheckBroadcasts(false))
	require.InDelta(t, best, r.Loss, 1e-3*best)
	require.InDeltaSlice(t, at, r.Parameters, 0.1)
}

// TestSGDWithL1 requires that SGD with the proximal map comes close to the optimum. With a
// strong penalty, parameters must become exactly 0.
func TestSGDWithL1(t *testing.T) {
	o := classes(9, 300, 8)
	s := optim.Settings{L1: 0.03, Tol: 1e-10}
	want := solve(t, o, s)
	for _, u := range []optim.Stochastic{
		{Rate: 0.5, Schedule: optim.Exponential, Decay: 0.9},
		{Rate: 0.05, Schedule: optim.Exponential, Decay: 0.95, Momentum: 0.9},
		{Rate: 0.05, Schedule: optim.Exponential, Decay: 0.95, Momentum: 0.9, Nesterov: true},
		{Update: optim.AdaGrad, Schedule: optim.Exponential, Rate: 0.5, Decay: 0.95},
		{Update: optim.Adam, Rate: 0.05, Schedule: optim.Exponential, Decay: 0.9},
	} {
		s.Method, s.Stochastic, s.MaxIter = optim.SGD, u, 60
		r := solve(t, o, s, engine.CheckBroadcasts(false))
		require.InDelta(t, want.Loss, r.Loss, 1e-3*want.Loss, "%+v", u)
		for j, v := range r.Parameters {
			require.InDelta(t, want.Parameters[j], v, 0.05, "%+v", u)
		}
		s.L1, s.MaxIter = 10, 4
		for _, v := range solve(t, o, s, engine.CheckBroadcasts(false)).Parameters[:8] {
			require.Zero(t, v)
		}
		s.L1 = 0.03
	}
}

func TestSGDEnds(t *testing.T) {
	o := classes(5, 300, 3)
	end := func(s optim.Settings) *optim.Result {
		s.Method, s.L2 = optim.SGD, 0.1
		return solve(t, o, s, engine.CheckBroadcasts(false))
	}
	r := end(optim.Settings{LossTol: 1e-4, Stochastic: optim.Stochastic{Rate: 1}})
	require.Equal(t, optim.LossSettled, r.Reason)
	require.True(t, r.Converged)
	require.Less(t, r.Iterations, 100)
	r = end(optim.Settings{StepTol: 1e-2, Stochastic: optim.Stochastic{Rate: 1}})
	require.Equal(t, optim.StepSmall, r.Reason)
	r = end(optim.Settings{MaxIter: 3})
	require.Equal(t, optim.MaxIterations, r.Reason)
	require.False(t, r.Converged)
	r = end(optim.Settings{Start: solve(t, o, optim.Settings{L2: 0.1, Tol: 1e-9}).Parameters})
	require.Equal(t, optim.GradientSmall, r.Reason)
	require.Equal(t, 1.0, r.Reads)
	r = end(optim.Settings{Tol: 0.05, MaxIter: 20, Stochastic: optim.Stochastic{Rate: 1}})
	require.Equal(t, optim.GradientSmall, r.Reason, "Tol must be tested on all rows at the end; gradient norm %v", r.GradientNorm)
	r = end(optim.Settings{LossTol: 1, MaxIter: 9, Stochastic: optim.Stochastic{Average: true}})
	require.Equal(t, 5, r.Iterations, "LossTol must not end training before averaging has begun")

	r = end(optim.Settings{MaxIter: 3, Stochastic: optim.Stochastic{Rate: 30, Schedule: optim.Constant}})
	require.Equal(t, optim.Overshooting, r.Reason, "the loss changed from %v to %v", r.Record[0].Loss, r.Loss)
	require.Greater(t, r.Loss, r.Record[0].Loss)
	require.False(t, r.Converged)

	o.loss = squared
	trial.Fails(t, build(o.table, o, optim.Settings{Method: optim.SGD, Stochastic: optim.Stochastic{Rate: 1e200, Schedule: optim.Constant}}), "epoch 1, step", "the loss is ", "are too long: standardise the features, or lower the rate")
	require.False(t, math.IsNaN(r.Loss))
}

// TestSGDOfParametersThatAreNoNumbers requires an error that names the parameters if a huge
// rate makes them infinite or NaN while the slopes of the loss are still finite.
func TestSGDOfParametersThatAreNoNumbers(t *testing.T) {
	o := classes(9, 60, 3)
	trial.Fails(t, build(o.table, o, optim.Settings{Method: optim.SGD, Stochastic: optim.Stochastic{Rate: 1.7e308, Schedule: optim.Constant, Momentum: 0.9}}), "steps with the learning rate 1.7e+308 are too long: standardise the features, or lower the rate")
}
