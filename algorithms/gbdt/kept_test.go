package gbdt_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// lasting is a row whose label is an interval of times.
type lasting struct {
	A, B         float64
	Lower, Upper float64
}

// keptTraining describes a training in which all state except the kept state is dropped between
// rounds.
type keptTraining struct {
	name  string
	table trial.Table
	rows  func(b *engine.Builder) *engine.Dataset // the rows, in place of those of the table
	p     gbdt.Params
	set   bool // an evaluation set of the same rows is added
}

// keptTrainings returns trainings with every objective and with every way to draw rows, to weight
// them, to measure metrics and to stop.
func keptTrainings(t *testing.T) []keptTraining {
	table := weighted(made(61, 90, 4))
	binary := labelled(table, func(y float64) float64 { return kernelBool(y > 3) })
	classes := labelled(table, func(y float64) float64 { return math.Floor(max(0, min(2, y/2))) })
	counts := labelled(table, func(y float64) float64 { return math.Floor(math.Exp(y/3)) + 1 })
	sparse := table
	sparse.Sparse = true
	var times []lasting
	for i := range 80 {
		x := table.Row(i)
		times = append(times, lasting{x[0], x[2], 1 + x[0], 1 + x[0]})
		if i%3 == 0 {
			times[i].Upper = math.Inf(1)
		}
	}
	lastings := func(b *engine.Builder) *engine.Dataset { return operators.FromSlice(b, times) }
	lists := queries(9)
	ranks := func(b *engine.Builder) *engine.Dataset { return operators.FromSlice(b, lists) }
	towns := citizens(4, 200, 40)
	live := func(b *engine.Builder) *engine.Dataset { return operators.FromSlice(b, towns) }
	many := citizens(5, 400, 300)
	wide := func(b *engine.Builder) *engine.Dataset { return operators.FromSlice(b, many) }
	mean := &gbdt.CustomObjective{Name: "mean and square", Outputs: 2, Gradients: func(r *gbdt.Rows, grad, hess [][]float64) error {
		for i, y := range r.Label {
			grad[0][i], hess[0][i] = r.Margin[0][i]-y, 1
			grad[1][i], hess[1][i] = r.Margin[1][i]-float64(y*y), 1
		}
		return nil
	}}
	first := gbdt.Params{LabelCol: "label", WeightCol: "weight", NumTrees: 2, MaxDepth: 3, Objective: gbdt.Softmax}
	start := train(t, classes, first)
	cities := trainRows(t, citizens(6, 200, 50), gbdt.Params{FeatureCols: []string{"city", "age"}, LabelCol: "label", NumTrees: 2})
	return []keptTraining{
		{name: "squared", table: table, set: true},
		{name: "absolute", table: table, p: gbdt.Params{Objective: gbdt.Absolute}, set: true},
		{name: "quantile of a part", table: table, p: gbdt.Params{Objective: gbdt.Quantile, QuantileAt: 0.3, Subsample: 0.7, Monotone: map[string]int{"f0": 1}}},
		{name: "Huber, held out", table: table, p: gbdt.Params{Objective: gbdt.Huber, ValidationFraction: 0.3, EarlyStoppingRounds: 2}},
		{name: "logistic", table: binary, p: gbdt.Params{Objective: gbdt.Logistic, Metrics: []string{"auc", "logloss", "aucpr"}}, set: true},
		{name: "logistic, weighed", table: binary, p: gbdt.Params{Objective: gbdt.Logistic, ScalePosWeight: 3, NoTrainMetrics: true}},
		{name: "GOSS", table: binary, p: gbdt.Params{Objective: gbdt.Logistic, GOSS: true, LearningRate: 0.5}, set: true},
		{name: "softmax", table: classes, p: gbdt.Params{Objective: gbdt.Softmax, Balanced: true}, set: true},
		{name: "softmax, weighed", table: classes, p: gbdt.Params{Objective: gbdt.Softmax, ClassWeights: map[string]float64{"1": 2}, GrowPolicy: gbdt.LossGuide, MaxLeaves: 5}},
		{name: "softmax goes on", table: classes, p: gbdt.Params{Objective: gbdt.Softmax, Start: start}, set: true},
		{name: "Poisson", table: counts, p: gbdt.Params{Objective: gbdt.Poisson, ColsampleByNode: 0.5}, set: true},
		{name: "gamma", table: counts, p: gbdt.Params{Objective: gbdt.Gamma, Base: []float64{1}}, set: true},
		{name: "Tweedie, stopped", table: counts, p: gbdt.Params{Objective: gbdt.Tweedie, EarlyStoppingRounds: 1, LearningRate: 0.9, NumTrees: 12}, set: true},
		{name: "times", rows: lastings, p: gbdt.Params{Objective: gbdt.AFT, FeatureCols: []string{"a", "b"}, LabelCol: "lower", LabelUpperCol: "upper"}},
		{name: "ranks", rows: ranks, p: gbdt.Params{Objective: gbdt.LambdaMART, FeatureCols: []string{"a", "b"}, LabelCol: "label", GroupCol: "query", Metrics: []string{"ndcg@3", "map"}}, set: true},
		{name: "custom", table: table, p: gbdt.Params{Objective: gbdt.Custom, CustomObjective: mean}, set: true},
		{name: "margins", rows: ranks, p: gbdt.Params{FeatureCols: []string{"a"}, LabelCol: "label", MarginCols: []string{"b"}}, set: true},
		{name: "DART", table: table, p: gbdt.Params{DART: true, SkipDrop: -1, DropRate: 0.6, NumTrees: 8}, set: true},
		{name: "DART of classes", table: classes, p: gbdt.Params{Objective: gbdt.Softmax, DART: true, SkipDrop: 0.3, DropRate: 0.7, MaxDrop: 2, NumTrees: 6}},
		{name: "DART, stopped", table: table, p: gbdt.Params{DART: true, SkipDrop: -1, LearningRate: 0.9, EarlyStoppingRounds: 2, NumTrees: 20, Subsample: 0.5}, set: true},
		{name: "sparse", table: sparse, p: gbdt.Params{ColsampleByTree: 0.8}, set: true},
		{name: "schedule", table: table, p: gbdt.Params{Schedule: func(round int) float64 { return 1 / float64(1+round) }, DART: true, SkipDrop: -1, DropRate: 0.9}},
		{name: "towns", rows: live, p: gbdt.Params{FeatureCols: []string{"city", "age"}, LabelCol: "label"}, set: true},
		{name: "many towns", rows: wide, p: gbdt.Params{FeatureCols: []string{"code", "age"}, CategoricalCols: []string{"code"}, LabelCol: "label", CategoryLambda: -1, CategorySmooth: 1}, set: true},
		{name: "other towns", rows: live, p: gbdt.Params{FeatureCols: []string{"city", "age"}, LabelCol: "label", Start: cities}},
	}
}

// TestTrainingsFromKeptStateHaveTheSameBits requires that trainings continue from the kept
// state alone. Trees, margins, records and the last round must have the same bits if all other
// state is dropped between rounds.
func TestTrainingsFromKeptStateHaveTheSameBits(t *testing.T) {
	for _, c := range keptTrainings(t) {
		t.Run(c.name, func(t *testing.T) {
			p, rows := c.p, c.rows
			if rows == nil {
				rows = c.table.Dataset
				p.LabelCol, p.WeightCol = "label", "weight"
			}
			if p.NumTrees == 0 {
				p.NumTrees = 4
			}
			p.MaxDepth = 3
			trial.SameBits(t, func(b *engine.Builder) {
				d := rows(b)
				var sets []gbdt.Set
				if c.set {
					sets = append(sets, gbdt.Set{Name: "test", Rows: rows(b)})
				}
				engine.Collect(operators.Select(gbdt.Train(d, p, sets...), "model"), "model")
			}, gbdt.Kind)
		})
	}
}

// TestKeptTreesAreChecked requires that the kept state is the same on all subtasks, and at any
// parallelism.
func TestKeptTreesAreChecked(t *testing.T) {
	table := weighted(made(63, 80, 4))
	for _, p := range []gbdt.Params{{}, {Objective: gbdt.Quantile, Subsample: 0.6}, {DART: true, SkipDrop: -1, DropRate: 0.5, GrowPolicy: gbdt.LossGuide}} {
		p.LabelCol, p.WeightCol, p.NumTrees, p.MaxDepth = "label", "weight", 3, 3
		job := engine.Define("checked", func(b *engine.Builder, _ struct{}) error {
			engine.Collect(gbdt.Train(table.Dataset(b), p, gbdt.Set{Name: "test", Rows: table.Dataset(b)}), "model")
			return nil
		})
		require.NoError(t, engine.Check(t.Context(), job, struct{}{}, engine.Shards(8), engine.CheckState(true)))
	}
}

// TestQuantilesOfSmallWeights requires that multiplying all weights by the same factor leaves
// the quantiles of all rounds unchanged.
func TestQuantilesOfSmallWeights(t *testing.T) {
	large := weighted(made(64, 120, 3))
	small := large
	small.Weight = nil
	for _, w := range large.Weight {
		small.Weight = append(small.Weight, w/64)
	}
	p := gbdt.Params{LabelCol: "label", WeightCol: "weight", Objective: gbdt.Absolute, NumTrees: 3, MaxDepth: 2, MinChildWeight: -1, Lambda: -1}
	a, b := train(t, large, p), train(t, small, p)
	require.Equal(t, a.Ensemble.Base, b.Ensemble.Base)
	for i := range a.Ensemble.Trees {
		for n := range a.Ensemble.Trees[i].Nodes {
			require.Equal(t, a.Ensemble.Trees[i].Nodes[n].Value, b.Ensemble.Trees[i].Nodes[n].Value)
		}
	}
}

// TestTrainingsFromKeptStateWithoutMetrics requires that a training without metrics keeps an
// empty record.
func TestTrainingsFromKeptStateWithoutMetrics(t *testing.T) {
	table := made(62, 60, 3)
	trial.SameBits(t, func(b *engine.Builder) {
		p := gbdt.Params{LabelCol: "label", NumTrees: 3, MaxDepth: 2, NoTrainMetrics: true}
		engine.Collect(gbdt.Train(table.Dataset(b), p), "model")
	}, gbdt.Kind)
	p := gbdt.Params{LabelCol: "label", NumTrees: 3, MaxDepth: 2}
	build := func(b *engine.Builder) *engine.Dataset { return gbdt.Train(table.Dataset(b), p) }
	sameTrees(t, run(t, build), run(t, build, engine.CheckState(true)))
	require.Equal(t, run(t, build).Summary, run(t, build, engine.CheckState(true)).Summary)
}
