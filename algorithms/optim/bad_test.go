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
	require.NoError(t, optim.Settings{Method: optim.LBFGS, Stochastic: optim.Stochastic{Batch: -1}}.Validate(), "not used")
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

// broken opens what it holds.
type broken struct {
	evaluator optim.Evaluator
	err       error
}

func (o broken) Open(*comqueue.ComContext) (optim.Evaluator, error) { return o.evaluator, o.err }

// shaped is an evaluator of any shape.
type shaped struct {
	n       int
	weight  float64
	factors []float64
	loss    float64
	slope   float64
	err     error
}

func (e shaped) Len() int           { return e.n }
func (e shaped) Weight() float64    { return e.weight }
func (e shaped) Factors() []float64 { return e.factors }
func (e shaped) Evaluate(_ int, _, out []float64) error {
	out[0] += e.loss
	out[1] += e.slope
	return e.err
}

// curvedShape has second derivatives that nobody gets to.
type curvedShape struct{ shaped }

func (e curvedShape) Hessian(int, []float64, []float64) error { return errors.New("asked for") }

func TestBadObjectives(t *testing.T) {
	one := shaped{n: 1, weight: 1, factors: []float64{1}}
	with := func(f func(e *shaped)) optim.Evaluator {
		e := one
		f(&e)
		return e
	}
	for want, c := range map[string]struct {
		o broken
		s optim.Settings
	}{
		"no such file":                                               {o: broken{err: errors.New("no such file")}},
		"opened nothing":                                             {o: broken{}},
		"has -1 parameters":                                          {o: broken{evaluator: with(func(e *shaped) { e.n = -1 })}},
		"1 parameters and 2 factors":                                 {o: broken{evaluator: with(func(e *shaped) { e.factors = []float64{1, 1} })}},
		"none with a weight above 0":                                 {o: broken{evaluator: with(func(e *shaped) { e.weight = 0 })}},
		"total weight of the rows is +Inf":                           {o: broken{evaluator: with(func(e *shaped) { e.weight = math.Inf(1) })}},
		"total weight of the rows is NaN":                            {o: broken{evaluator: with(func(e *shaped) { e.weight = math.NaN() })}},
		"Start has 2 parameters":                                     {o: broken{evaluator: one}, s: optim.Settings{Start: []float64{1, 2}}},
		"which Newton needs":                                         {o: broken{evaluator: one}, s: optim.Settings{Method: optim.Newton}},
		"which SGD needs":                                            {o: broken{evaluator: one}, s: optim.Settings{Method: optim.SGD}},
		"which Information asks for":                                 {o: broken{evaluator: one}, s: optim.Settings{Information: true}},
		"superstep 1: row 3 of the shard":                            {o: broken{evaluator: with(func(e *shaped) { e.err = errors.New("row 3 of the shard") })}},
		"superstep 1: the loss is NaN at the start":                  {o: broken{evaluator: with(func(e *shaped) { e.loss = math.NaN() })}},
		"superstep 1: the loss is +Inf at the start: check":          {o: broken{evaluator: with(func(e *shaped) { e.loss = math.Inf(1) })}},
		"its derivative by parameter 0 is NaN: check features":       {o: broken{evaluator: with(func(e *shaped) { e.slope = math.NaN() })}},
		"the second derivatives of 3000 parameters take 34 MiB, in ": {o: broken{evaluator: curvedShape{shaped{n: 3000, weight: 1, factors: make([]float64, 3000)}}}, s: optim.Settings{Method: optim.Newton, MaxBytes: 100 << 20}},
	} {
		err := trial.Fails(t, build(ids(3), c.o, c.s), want)
		require.NotContains(t, err.Error(), "panic")
	}
}

// lost is smooth at the start and nowhere else.
type lost struct{ shaped }

func (e lost) Evaluate(_ int, v, out []float64) error {
	out[1]++
	if v[0] != 0 {
		out[0] = math.NaN()
	}
	return nil
}

func TestLossIsNaNEverywhere(t *testing.T) {
	o := broken{evaluator: lost{shaped{n: 1, weight: 1, factors: []float64{1}}}}
	trial.Fails(t, build(ids(3), o, optim.Settings{Method: optim.LBFGS}),
		"LBFGS, superstep 2: the loss is infinite or NaN at every step along the gradient", "too far from those of other rows: scale them down")
}

// A gradient that is not the function's ends training where it is, not in a loop.
func TestWrongGradientEnds(t *testing.T) {
	o := broken{evaluator: with{}}
	r := minimize(t, ids(1), o, optim.Settings{Method: optim.LBFGS})
	require.Equal(t, optim.Exhausted, r.Reason)
	require.Zero(t, r.Parameters[0])
	require.LessOrEqual(t, r.Reads, 100.0)
}

// with is |v|, with a slope at 0.
type with struct{}

func (with) Len() int           { return 1 }
func (with) Weight() float64    { return 1 }
func (with) Factors() []float64 { return []float64{0} }
func (with) Evaluate(_ int, v, out []float64) error {
	out[0] += math.Abs(v[0])
	out[1] += math.Copysign(1, v[0])
	return nil
}
