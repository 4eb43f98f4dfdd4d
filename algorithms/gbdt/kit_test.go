package gbdt_test

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// made returns n rows of d features in 0..1. The label is a function of the first three
// features, with kinks and jumps, plus noise. Every seventh value of feature 1 is missing, and
// feature 2 has eight values.
func made(seed uint64, n, d int) trial.Table {
	r := sharding.NewRandom(seed, "rows", 0, 0)
	t := trial.Table{N: n, D: d}
	for i := range n {
		x := make([]float64, d)
		for j := range x {
			x[j] = r.Float64()
		}
		x[2] = math.Floor(x[2] * 8)
		y := 3*x[0]*x[0] + 0.5*x[2] + 0.2*r.NormFloat64()
		if x[1] > 0.6 {
			y += 2
		}
		if i%7 == 0 {
			x[1] = math.NaN()
		}
		t.X = append(t.X, x...)
		t.Label = append(t.Label, y)
	}
	return t
}

// labelled returns the table with f applied to its labels.
func labelled(t trial.Table, f func(y float64) float64) trial.Table {
	t.Label = append([]float64(nil), t.Label...)
	for i, y := range t.Label {
		t.Label[i] = f(y)
	}
	return t
}

// weighted returns the table with a weight for each row.
func weighted(t trial.Table) trial.Table {
	t.Weight = make([]float64, t.N)
	for i := range t.Weight {
		t.Weight[i] = 0.5 + float64(i%5)/4
	}
	return t
}

// part returns the rows lo to hi−1 of t.
func part(t trial.Table, lo, hi int) trial.Table {
	p := t
	p.N, p.X = hi-lo, t.X[lo*t.D:hi*t.D]
	p.Label = t.Label[lo:hi]
	if t.Weight != nil {
		p.Weight = t.Weight[lo:hi]
	}
	return p
}

// train returns the model that is trained on table with the evaluation sets.
func train(t testing.TB, table trial.Table, p gbdt.Params, sets ...trial.Table) *gbdt.Model {
	t.Helper()
	return run(t, func(b *engine.Builder) *engine.Dataset {
		var with []gbdt.Set
		for i, s := range sets {
			with = append(with, gbdt.Set{Name: "test" + strings.Repeat("'", i), Rows: s.Dataset(b)})
		}
		return gbdt.Train(table.Dataset(b), p, with...)
	})
}

// run returns the model that the job made by build trains.
func run(t testing.TB, build func(b *engine.Builder) *engine.Dataset, options ...engine.Option) *gbdt.Model {
	t.Helper()
	r := trial.Run(t, func(b *engine.Builder) { engine.Collect(build(b), "model") }, options...)
	m, err := gbdt.ModelOf(r, "model")
	require.NoError(t, err)
	return m
}

// trainRows returns the model that is trained on rows, which are structs.
func trainRows[T any](t testing.TB, rows []T, p gbdt.Params) *gbdt.Model {
	t.Helper()
	return run(t, func(b *engine.Builder) *engine.Dataset { return gbdt.Train(operators.FromSlice(b, rows), p) })
}

// fails requires that training fails with an error that contains texts.
func fails(t *testing.T, table trial.Table, p gbdt.Params, texts ...string) {
	t.Helper()
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(gbdt.Train(table.Dataset(b), p), "model")
	}, texts...)
}

// last returns the value of a metric on a set after the best round.
func last(m *gbdt.Model, set, metric int) float64 {
	return float64(m.Summary.Record[m.Summary.BestRound-1][set][metric])
}

// sameTrees requires that two models have the same trees, bit for bit.
func sameTrees(t testing.TB, a, b *gbdt.Model, about ...any) {
	t.Helper()
	trial.SameTrees(t, a.Ensemble, b.Ensemble, about...)
}

// shuffled returns the rows of t in a random order that depends on seed.
func shuffled(t trial.Table, seed uint64) trial.Table {
	r := sharding.NewRandom(seed, "order", 0, 0)
	order := r.Perm(t.N)
	s := t
	s.X, s.Label, s.Weight = nil, nil, nil
	for _, i := range order {
		s.X = append(s.X, t.Row(i)...)
		s.Label = append(s.Label, t.Label[i])
		if t.Weight != nil {
			s.Weight = append(s.Weight, t.Weight[i])
		}
	}
	return s
}

// sortedQuantile returns the quantile of v for the probability in parameter at: the smallest
// element q such that the share of the elements up to q is at least this probability. If the
// share equals the probability, it returns the mean of q and the next larger element.
func sortedQuantile(v []float64, at float64) float64 {
	slices.Sort(v)
	goal := at * float64(len(v))
	i := int(math.Ceil(goal)) - 1
	if float64(i+1) == goal && i+1 < len(v) {
		return (v[i] + v[i+1]) / 2
	}
	return v[i]
}
func stageOf(p gbdt.Params) model.Stage { return p }

// renewing has the objectives that renew leaves.
var renewing = []gbdt.Objective{gbdt.Absolute, gbdt.Quantile, gbdt.Huber}
