package optim_test

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
)

func TestBadSettings(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	sgd := func(s optim.Stochastic) optim.Settings { return optim.Settings{Method: optim.SGD, Stochastic: s} }
	for want, s := range map[string]optim.Settings{
		"Method is 17":                         {Method: 17},
		"Method is -1":                         {Method: -1},
		"L1 is -1":                             {L1: -1},
		"L1 is NaN":                            {L1: nan},
		"L2 is -0.5":                           {L2: -0.5},
		"L2 is +Inf":                           {L2: inf},
		"LossTol is -1":                        {LossTol: -1},
		"StepTol is NaN":                       {StepTol: nan},
		"Tol is NaN":                           {Tol: nan},
		"MaxIter is -1":                        {MaxIter: -1},
		"History is -2":                        {History: -2},
		"History is 1001":                      {History: 1001},
		"Trials is 65":                         {Trials: 65},
		"MaxBytes is -8":                       {MaxBytes: -8},
		"parameter 1 of Start":                 {Start: []float64{0, inf}},
		"Method is LBFGS, which":               {Method: optim.LBFGS, L1: 1},
		"Method is Newton, which":              {Method: optim.Newton, L1: 1},
		"Method is GD, which":                  {Method: optim.GD, L1: 1},
		"Batch is -1":                          sgd(optim.Stochastic{Batch: -1}),
		"Update is 9":                          sgd(optim.Stochastic{Update: 9}),
		"Schedule is 9":                        sgd(optim.Stochastic{Schedule: 9}),
		"Rate is -1":                           sgd(optim.Stochastic{Rate: -1}),
		"Rate is NaN":                          sgd(optim.Stochastic{Rate: nan}),
		"Power is -1":                          sgd(optim.Stochastic{Power: -1}),
		"Decay is 2":                           sgd(optim.Stochastic{Decay: 2}),
		"Momentum is 1":                        sgd(optim.Stochastic{Momentum: 1}),
		"Momentum and Stochastic.Nesterov are": sgd(optim.Stochastic{Update: optim.Adam, Momentum: 0.5}),
		"Nesterov needs a Stochastic.Momentum": sgd(optim.Stochastic{Nesterov: true}),
		"made from L2, which is 0":             sgd(optim.Stochastic{Schedule: optim.Optimal}),
	} {
		require.ErrorContains(t, s.Validate(), want)
		trial.Fails(t, build(ids(1), smooth(), s), want, "minimize \"minimize\"")
	}
	require.NoError(t, optim.Settings{}.Validate())
	require.EqualError(t, optim.Settings{Method: optim.SGD, L1: -1, LossTol: nan, MaxIter: -3, Stochastic: optim.Stochastic{Rate: -1, Decay: 2}}.Validate(),
		"L1 is -1: want a number of 0 or more\nLossTol is NaN: want a number of 0 or more\nMaxIter is -3: want 1 to 2147483647, or 0 for the default\n"+
			"Stochastic.Rate is -1: want a number above 0, or 0 for the default\nStochastic.Decay is 2: want a number above 0 and at most 1, or 0 for the default")
	require.NoError(t, optim.Settings{Method: optim.LBFGS, Stochastic: optim.Stochastic{Batch: -1}}.Validate(), "settings of SGD must not be checked if another method is selected")
	require.Equal(t, "Method(17)", optim.Method(17).String())
}

func TestBadProblems(t *testing.T) {
	trial.Fails(t, func(b *engine.Builder) {
		optim.Minimize(b, optim.Problem{Name: "q", Closer: asText})
	}, "the objective is nil")
	trial.Fails(t, func(b *engine.Builder) {
		optim.Minimize(b, optim.Problem{Name: "q", Objective: smooth()})
	}, "there is no Closer")
	trial.Fails(t, func(b *engine.Builder) {
		optim.Minimize(b, optim.Problem{Objective: smooth(), Closer: asText})
	}, "the queue has no name")
}

// broken is an objective whose Open returns the values of its fields.
type broken struct {
	evaluator optim.Evaluator
	err       error
}

func (o broken) Open(*comqueue.ComContext) (optim.Evaluator, error) { return o.evaluator, o.err }

// constant returns an Evaluate function with the same loss, slope and error at all parameters.
func constant(loss, slope float64, err error) func(shard int, v, out []float64) error {
	return func(_ int, _, out []float64) error {
		out[0] += loss
		out[1] += slope
		return err
	}
}

// of returns an evaluator with one parameter and the given Evaluate function.
func of(evaluate func(shard int, v, out []float64) error) optim.Evaluator {
	return optim.Evaluator{Dim: 1, Weight: 1, PenaltyFactors: []float64{1}, Evaluate: evaluate}
}

func TestBadObjectives(t *testing.T) {
	one := of(constant(0, 0, nil))
	with := func(f func(e *optim.Evaluator)) optim.Evaluator {
		e := one
		f(&e)
		return e
	}
	nan, inf := math.NaN(), math.Inf(1)
	for want, c := range map[string]struct {
		o broken
		s optim.Settings
	}{
		"no such file":                                              {o: broken{err: errors.New("no such file")}},
		"the evaluator has no Evaluate":                             {o: broken{}},
		"has -1 parameters":                                         {o: broken{evaluator: with(func(e *optim.Evaluator) { e.Dim = -1 })}},
		"1 parameters and 2 PenaltyFactors":                         {o: broken{evaluator: with(func(e *optim.Evaluator) { e.PenaltyFactors = []float64{1, 1} })}},
		"none with a weight above 0":                                {o: broken{evaluator: with(func(e *optim.Evaluator) { e.Weight = 0 })}},
		"total weight of the rows is +Inf":                          {o: broken{evaluator: with(func(e *optim.Evaluator) { e.Weight = inf })}},
		"total weight of the rows is NaN":                           {o: broken{evaluator: with(func(e *optim.Evaluator) { e.Weight = nan })}},
		"GradientUnit of the evaluator is -1":                       {o: broken{evaluator: with(func(e *optim.Evaluator) { e.GradientUnit = -1 })}},
		"HessianCost of the evaluator is NaN":                       {o: broken{evaluator: with(func(e *optim.Evaluator) { e.HessianCost = nan })}},
		"there are 2 parameters to start from, the objective has 1": {o: broken{evaluator: with(func(e *optim.Evaluator) { e.Initial = []float64{1, 2} })}},
		"parameter 0 to start from is +Inf":                         {o: broken{evaluator: with(func(e *optim.Evaluator) { e.Initial = []float64{inf} })}},
		"Start has 2 parameters":                                    {o: broken{evaluator: one}, s: optim.Settings{Start: []float64{1, 2}}},
		"no Hessian, which Newton needs":                            {o: broken{evaluator: one}, s: optim.Settings{Method: optim.Newton}},
		"no Minibatch, which SGD needs":                             {o: broken{evaluator: one}, s: optim.Settings{Method: optim.SGD}},
		"no Hessian, which Information asks for":                    {o: broken{evaluator: one}, s: optim.Settings{Information: true}},
		"superstep 1: row 3 of the shard":                           {o: broken{evaluator: of(constant(0, 0, errors.New("row 3 of the shard")))}},
		"superstep 1: the loss is NaN at the start":                 {o: broken{evaluator: of(constant(nan, 0, nil))}},
		"superstep 1: the loss is +Inf at the start: check":         {o: broken{evaluator: of(constant(inf, 0, nil))}},
		"its derivative by parameter 0 is NaN: check features":      {o: broken{evaluator: of(constant(0, nan, nil))}},
		"the second derivatives of 3000 parameters take 34 MiB, in ": {o: broken{evaluator: with(func(e *optim.Evaluator) {
			e.Dim, e.PenaltyFactors, e.Hessian = 3000, make([]float64, 3000), constant(0, 0, errors.New("asked for"))
		})}, s: optim.Settings{Method: optim.Newton, MaxBytes: 100 << 20}},
	} {
		err := trial.Fails(t, build(ids(3), c.o, c.s), want)
		require.NotContains(t, err.Error(), "panic")
	}
}

// TestEvaluatorsAreComplete requires that an evaluator is refused when it is opened if one of
// its fields needs another field that is not set. The error must name both fields, even if the
// method would use neither.
func TestEvaluatorsAreComplete(t *testing.T) {
	at := constant(0, 0, nil)
	ray := func(int, []float64, float64, []float64) error { return nil }
	step := func(int, float64, []float64) error { return nil }
	tried := func(int, []float64, []float64) error { return nil }
	whole := optim.Evaluator{
		Dim: 1, Weight: 1, PenaltyFactors: []float64{1}, Evaluate: at, Hessian: at, HessianCost: 2,
		Margins: optim.Margins{Start: at, Direction: ray, Trials: tried, Gradient: step, Advance: func(int, float64) error { return nil }, Hessian: true},
		Subspace: optim.Subspace{
			Hessian: func(int, []float64, int, []float64) error { return nil },
			Slopes:  func(int, []float64, []float64, []float64) error { return nil },
		},
		Minibatch: optim.Minibatch{
			Rows:     func(int) int { return 1 },
			Evaluate: func(int, []int32, []float64, []float64) error { return nil },
			Fold:     func([]int, [][]int32, []float64, []float64) (bool, error) { return false, nil },
		},
		Snapshot: optim.Snapshot{
			Append:  func(_ int, dst []byte) ([]byte, error) { return dst, nil },
			Restore: func(int, []byte) error { return nil },
		},
		Smoothing: optim.Smoothing{
			BoundLen: 1, Bound: at, Refine: func(int) error { return nil },
			Gap: func([]float64, []float64, float64, float64) (float64, float64) { return 0, 0 },
		},
	}
	require.NoError(t, optim.Complete(whole))
	require.NoError(t, optim.Complete(of(at)))
	for _, c := range []struct {
		without func(e *optim.Evaluator)
		want    string
	}{
		{func(e *optim.Evaluator) { e.Margins.Start = nil }, "Margins.Advance and no Margins.Start: set both, or neither"},
		{func(e *optim.Evaluator) { e.Margins.Direction = nil }, "Margins.Start and no Margins.Direction"},
		{func(e *optim.Evaluator) { e.Margins.Trials = nil }, "Margins.Direction and no Margins.Trials"},
		{func(e *optim.Evaluator) { e.Margins.Gradient = nil }, "Margins.Trials and no Margins.Gradient"},
		{func(e *optim.Evaluator) { e.Margins.Advance = nil }, "Margins.Gradient and no Margins.Advance"},
		{func(e *optim.Evaluator) { e.Margins = optim.Margins{Advance: e.Margins.Advance} }, "Margins.Advance and no Margins.Start"},
		{func(e *optim.Evaluator) { e.Subspace.Hessian = nil }, "Subspace.Slopes and no Subspace.Hessian"},
		{func(e *optim.Evaluator) { e.Subspace.Slopes = nil }, "Subspace.Hessian and no Subspace.Slopes"},
		{func(e *optim.Evaluator) { e.Minibatch.Rows = nil }, "Minibatch.Evaluate and no Minibatch.Rows"},
		{func(e *optim.Evaluator) { e.Minibatch.Evaluate = nil }, "Minibatch.Rows and no Minibatch.Evaluate"},
		{func(e *optim.Evaluator) { e.Minibatch = optim.Minibatch{Fold: e.Minibatch.Fold} }, "Minibatch.Fold, which needs Minibatch.Evaluate"},
		{func(e *optim.Evaluator) { e.Snapshot.Append = nil }, "Snapshot.Restore and no Snapshot.Append"},
		{func(e *optim.Evaluator) { e.Snapshot.Restore = nil }, "Snapshot.Append and no Snapshot.Restore"},
		{func(e *optim.Evaluator) { e.Smoothing.BoundLen = 0 }, "Smoothing.Refine and no Smoothing.BoundLen"},
		{func(e *optim.Evaluator) { e.Smoothing.BoundLen = -3 }, "Smoothing.Refine and no Smoothing.BoundLen"},
		{func(e *optim.Evaluator) { e.Smoothing.Bound = nil }, "Smoothing.BoundLen and no Smoothing.Bound"},
		{func(e *optim.Evaluator) { e.Smoothing.Gap = nil }, "Smoothing.Bound and no Smoothing.Gap"},
		{func(e *optim.Evaluator) { e.Smoothing.Refine = nil }, "Smoothing.Gap and no Smoothing.Refine"},
		{func(e *optim.Evaluator) { e.Snapshot = optim.Snapshot{} }, "Margins, which needs Snapshot"},
		{func(e *optim.Evaluator) {
			e.Snapshot, e.Margins, e.Subspace, e.HessianCost = optim.Snapshot{}, optim.Margins{}, optim.Subspace{}, 0
		}, "Smoothing, which needs Snapshot"},
		{func(e *optim.Evaluator) { e.Margins = optim.Margins{Hessian: true} }, "Margins.Hessian, which needs Margins.Start"},
		{func(e *optim.Evaluator) { e.Hessian = nil }, "Margins.Hessian, which needs Hessian"},
		{func(e *optim.Evaluator) { e.Margins.Hessian = false }, "HessianCost, which needs Margins.Hessian"},
		{func(e *optim.Evaluator) { e.Margins = optim.Margins{} }, "HessianCost, which needs Margins.Hessian"},
		{func(e *optim.Evaluator) { e.Margins, e.HessianCost = optim.Margins{}, 0 }, "Subspace, which needs Margins"},
	} {
		e := whole
		c.without(&e)
		require.ErrorContains(t, optim.Complete(e), c.want)
	}
	whole.Snapshot = optim.Snapshot{}
	trial.Fails(t, build(ids(3), broken{evaluator: whole}, optim.Settings{Method: optim.LBFGS}), "the evaluator has Margins, which needs Snapshot")
}

// TestLossIsNaNEverywhere requires an error if the loss is finite at the start and NaN
// everywhere else.
func TestLossIsNaNEverywhere(t *testing.T) {
	o := broken{evaluator: of(func(_ int, v, out []float64) error {
		out[1]++
		if v[0] != 0 {
			out[0] = math.NaN()
		}
		return nil
	})}
	trial.Fails(t, build(ids(3), o, optim.Settings{Method: optim.LBFGS}),
		"LBFGS, superstep 2: the loss is infinite or NaN at every step along the gradient", "too far from those of other rows: scale them down")
}

// TestWrongGradientEnds requires that training ends, and does not loop, if the evaluator's
// gradient is not the derivative of its loss. Here the slope of |v| at 0 is such a gradient.
func TestWrongGradientEnds(t *testing.T) {
	e := of(func(_ int, v, out []float64) error {
		out[0] += math.Abs(v[0])
		out[1] += math.Copysign(1, v[0])
		return nil
	})
	e.PenaltyFactors[0] = 0
	r := minimize(t, ids(1), broken{evaluator: e}, optim.Settings{Method: optim.LBFGS})
	require.Equal(t, optim.Exhausted, r.Reason)
	require.Zero(t, r.Parameters[0])
	require.LessOrEqual(t, r.Reads, 100.0)
}
