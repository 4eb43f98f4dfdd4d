package gbdt_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// ranked is a row that belongs to a query.
type ranked struct {
	Query int64
	A, B  float64
	Label float64
}

// queries returns n queries of a few rows each. The labels rise with the first feature.
func queries(n int) []ranked {
	table := made(21, n*7, 3)
	var rows []ranked
	for i := range table.N {
		x := table.Row(i)
		label := math.Floor(min(4, max(0, 4*x[0]+table.Label[i]/4-1)))
		rows = append(rows, ranked{int64(i * 5 % n), x[0], x[2], label})
	}
	return rows
}

// TestSameBits requires the same model file, and the same metrics in every round, at any
// parallelism, with any batch size, and with and without assembly.
func TestSameBits(t *testing.T) {
	table := weighted(made(11, 120, 4))
	positive := labelled(table, func(y float64) float64 { return math.Floor(math.Exp(y / 3)) })
	classes := labelled(table, func(y float64) float64 { return math.Floor(max(0, min(2, y/2))) })
	binary := labelled(table, func(y float64) float64 { return kernelBool(y > 3) })
	for i, c := range []struct {
		table trial.Table
		p     gbdt.Params
	}{
		{binary, gbdt.Params{Objective: gbdt.Logistic, GOSS: true, LearningRate: 0.5, Metrics: []string{"auc", "logloss"}}},
		{table, gbdt.Params{Objective: gbdt.Squared, Subsample: 0.6, ColsampleByLevel: 0.7}},
		{classes, gbdt.Params{Objective: gbdt.Softmax, GrowPolicy: gbdt.LossGuide, MaxLeaves: 6}},
		{table, gbdt.Params{Objective: gbdt.Huber, ValidationFraction: 0.3, DART: true, SkipDrop: -1, DropRate: 0.4}},
		{table, gbdt.Params{Objective: gbdt.Quantile, QuantileAt: 0.3}},
		{positive, gbdt.Params{Objective: gbdt.Tweedie, EarlyStoppingRounds: 2}},
	} {
		if i%sameBitsEvery != 0 {
			continue
		}
		c.p.LabelCol, c.p.WeightCol, c.p.NumTrees, c.p.MaxDepth = "label", "weight", 3, 3
		trial.SameBits(t, func(b *engine.Builder) {
			rows := c.table.Dataset(b)
			m := gbdt.Train(rows, c.p, gbdt.Set{Name: "test", Rows: part(c.table, 20, 60).Dataset(b)})
			engine.Collect(operators.Select(m, "model"), "model")
			engine.Collect(gbdt.Predict(rows, m, gbdt.PredictOptions{MarginCol: "margin", LeafCol: "leaf", ContributionCol: "why"}), "rows")
		}, "gbdt")
	}
	rows := queries(12)
	trial.SameBits(t, func(b *engine.Builder) {
		d := operators.FromSlice(b, rows)
		m := gbdt.Train(d, gbdt.Params{Objective: gbdt.LambdaMART, FeatureCols: []string{"a", "b"}, LabelCol: "label", GroupCol: "query", NumTrees: 2, MaxDepth: 3, Metrics: []string{"ndcg@3", "map"}})
		engine.Collect(m, "model")
	}, "gbdt")
}

// TestSameBitsOfWildRows requires the same model file at any parallelism for rows with
// magnitudes from 1e-8 to 1e16. For such rows a sum that depends on the order of its terms
// would change the bits.
func TestSameBitsOfWildRows(t *testing.T) {
	wild := trial.Wild(200, 4)
	squares := labelled(wild, func(float64) float64 { return 0 })
	for i := range squares.Label {
		squares.Label[i] = wild.X[4*i]
	}
	for i, c := range []struct {
		table trial.Table
		p     gbdt.Params
	}{{squares, gbdt.Params{}}, {wild, gbdt.Params{Objective: gbdt.Logistic}}, {squares, gbdt.Params{Objective: gbdt.Absolute}}} {
		if i%sameBitsEvery != 0 {
			continue
		}
		c.p.LabelCol, c.p.WeightCol, c.p.NumTrees, c.p.MaxDepth = "label", "weight", 3, 3
		trial.SameBits(t, func(b *engine.Builder) {
			engine.Collect(operators.Select(gbdt.Train(c.table.Dataset(b), c.p), "model"), "model")
		})
	}
}

// TestRowsPermuted requires that trees depend neither on the order of the rows nor on the
// number of shards if no rows are drawn, as trees are then made only from sums of integers.
func TestRowsPermuted(t *testing.T) {
	table := weighted(made(12, 200, 4))
	wild := trial.Wild(200, 4)
	for i := range wild.Label {
		wild.Label[i] = wild.X[4*i+1]
	}
	for _, c := range []struct {
		table trial.Table
		p     gbdt.Params
	}{
		{table, gbdt.Params{Objective: gbdt.Squared}},
		{wild, gbdt.Params{Objective: gbdt.Squared}},
		{labelled(table, func(y float64) float64 { return kernelBool(y > 3) }), gbdt.Params{Objective: gbdt.Logistic}},
		{labelled(table, func(y float64) float64 { return kernelBool(y > 3) }), gbdt.Params{Objective: gbdt.Logistic, GrowPolicy: gbdt.LossGuide}},
		{labelled(table, func(y float64) float64 { return math.Floor(max(0, min(2, y/2))) }), gbdt.Params{Objective: gbdt.Softmax}},
		{labelled(table, func(y float64) float64 { return math.Floor(max(0, y)) }), gbdt.Params{Objective: gbdt.Poisson}},
		{labelled(table, func(y float64) float64 { return math.Exp(y / 3) }), gbdt.Params{Objective: gbdt.Gamma}},
		{labelled(table, func(y float64) float64 { return math.Floor(max(0, y)) }), gbdt.Params{Objective: gbdt.Tweedie}},
		{table, gbdt.Params{Objective: gbdt.Absolute}},
		{table, gbdt.Params{Objective: gbdt.Quantile, QuantileAt: 0.3}},
	} {
		c.p.LabelCol, c.p.WeightCol, c.p.NumTrees, c.p.MaxDepth = "label", "weight", 4, 4
		if c.p.GrowPolicy == gbdt.LossGuide {
			c.p.MaxDepth = 0
		}
		want := train(t, c.table, c.p)
		for seed := range uint64(orders) {
			s := shuffled(c.table, seed)
			got := run(t, func(b *engine.Builder) *engine.Dataset { return gbdt.Train(s.Dataset(b), c.p) }, engine.Shards(4<<seed))
			sameTrees(t, want, got, fmt.Sprint(c.p.Objective, c.p.GrowPolicy))
		}
	}
	require.NotEqual(t, table.Label, shuffled(table, 1).Label)
}
