package gbdt_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/selection"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// TestMonotone requires that predictions never fall as a feature with the constraint 1 rises,
// with every objective.
func TestMonotone(t *testing.T) {
	table := made(51, 200, 3)
	for i := range table.N {
		table.Label[i] += math.Sin(12 * table.X[3*i])
	}
	for _, o := range []gbdt.Objective{gbdt.Squared, gbdt.Absolute, gbdt.Huber} {
		p := gbdt.Params{LabelCol: "label", Objective: o, NumTrees: 8, MaxDepth: 4, LearningRate: 0.3, Monotone: map[string]int{"f0": 1, "f2": -1}}
		free, bound := 0, 0
		m := train(t, table, p)
		p.Monotone = nil
		loose := train(t, table, p)
		for i := range monotoneRows {
			x := append([]float64(nil), table.Row(i)...)
			for j, way := range map[int]float64{0: 1, 2: -1} {
				at := x[j]
				before, looseBefore := math.Inf(-1), math.Inf(-1)
				for v := -0.05; v < 8; v += 0.05 {
					x[j] = way * v
					if way < 0 {
						x[j] = 8 - v
					}
					now, looseNow := m.Predict(x), loose.Predict(x)
					if now < before-1e-12 {
						bound++
					}
					if looseNow < looseBefore-1e-12 {
						free++
					}
					before, looseBefore = now, looseNow
				}
				x[j] = at
			}
		}
		require.Zero(t, bound, o)
		require.Positive(t, free, o)
	}
}

// TestInteractions requires that all features on the path to a leaf are in one of the sets.
func TestInteractions(t *testing.T) {
	p := gbdt.Params{LabelCol: "label", NumTrees: 10, Interactions: [][]string{{"f0", "f1"}, {"f2", "f3"}}}
	m := train(t, made(52, 300, 5), p)
	together := map[[2]int32]bool{}
	for i := range m.Ensemble.Trees {
		ways(&m.Ensemble.Trees[i], 0, nil, together)
	}
	for pair := range together {
		require.True(t, pair[0]/2 == pair[1]/2 && pair[0] < 4 || pair[0] == pair[1], pair)
	}
	require.True(t, together[[2]int32{0, 1}])
}

// ways adds to pairs the pairs of features that are on a common path through node n; above has
// the features on the path from the root to n.
func ways(t *tree.Tree, n int32, above []int32, pairs map[[2]int32]bool) {
	node := &t.Nodes[n]
	if node.Leaf() {
		return
	}
	for _, j := range above {
		pairs[[2]int32{min(j, node.Feature), max(j, node.Feature)}] = true
	}
	above = append(above[:len(above):len(above)], node.Feature)
	ways(t, node.Left, above, pairs)
	ways(t, node.Right, above, pairs)
}

// TestLimits requires that trees stay within their limits.
func TestLimits(t *testing.T) {
	table := made(53, 400, 4)
	p := gbdt.Params{LabelCol: "label", NumTrees: 5, GrowPolicy: gbdt.LossGuide, MinSamplesLeaf: 9, MinChildWeight: 11.5}
	m := train(t, table, p)
	for i := range m.Ensemble.Trees {
		leaves := 0
		for _, n := range m.Ensemble.Trees[i].Nodes {
			if n.Leaf() {
				leaves++
				require.GreaterOrEqual(t, n.Cover, 11.5)
				require.GreaterOrEqual(t, n.Count, int64(12))
			}
		}
		require.LessOrEqual(t, leaves, 31)
		require.Greater(t, leaves, 15)
	}
	p = gbdt.Params{LabelCol: "label", NumTrees: 5, MaxDepth: 2, MaxDeltaStep: 0.3, LearningRate: 0.5, MaxLeaves: 3}
	m = train(t, table, p)
	for i := range m.Ensemble.Trees {
		require.LessOrEqual(t, len(m.Ensemble.Trees[i].Nodes), 5)
		for _, n := range m.Ensemble.Trees[i].Nodes {
			require.LessOrEqual(t, math.Abs(n.Value), 0.15+1e-12)
		}
	}
}

// TestSubsample requires that each round draws the given share of the rows, and that different
// rounds draw different rows.
func TestSubsample(t *testing.T) {
	table := made(54, 2000, 3)
	for _, c := range []struct {
		p      gbdt.Params
		lo, hi float64
	}{
		{gbdt.Params{Subsample: 0.3}, 0.26, 0.34},
		{gbdt.Params{GOSS: true, LearningRate: 0.9, TopRate: 0.3, OtherRate: 0.2}, 0.46, 0.54},
	} {
		c.p.LabelCol, c.p.NumTrees = "label", 6
		m := train(t, table, c.p)
		seen := map[int64]bool{}
		for i := range m.Ensemble.Trees {
			root := m.Ensemble.Trees[i].Nodes[0]
			if c.p.GOSS && i == 0 {
				require.Equal(t, int64(2000), root.Count, "GOSS must use all rows in the first rounds")
				continue
			}
			seen[root.Count] = true
			share := float64(root.Count) / 2000
			require.True(t, c.lo < share && share < c.hi, "round %d draws an unexpected share of the rows: %v", i, share)
			if c.p.GOSS {
				require.InDelta(t, 2000, root.Cover, 120, "the weights of the drawn rows must make up for the rows that are not drawn")
			}
		}
		require.Greater(t, len(seen), 2)
	}
	// Leaves must be renewed from the drawn rows only.
	flat := trial.Table{N: 51, D: 1, X: make([]float64, 51), Label: table.Label[:51]}
	m := train(t, flat, gbdt.Params{LabelCol: "label", Objective: gbdt.Absolute, NumTrees: 1, LearningRate: 1, Subsample: 0.4})
	require.Equal(t, sortedQuantile(append([]float64(nil), flat.Label...), 0.5), m.Ensemble.Base[0])
	require.NotZero(t, m.Ensemble.Trees[0].Nodes[0].Value)
	// Another seed must draw other rows.
	p := gbdt.Params{LabelCol: "label", NumTrees: 2, Subsample: 0.5, Seed: 1}
	a := train(t, table, p)
	p.Seed = 2
	require.NotEqual(t, a.Ensemble, train(t, table, p).Ensemble)
}

// TestDART requires that the weights of rounds follow the rule of DART, and that the margins of
// training equal those of the model.
func TestDART(t *testing.T) {
	table := made(55, 200, 3)
	p := gbdt.Params{LabelCol: "label", NumTrees: 25, MaxDepth: 3, DART: true, SkipDrop: -1, DropRate: 0.2, LearningRate: 0.4}
	m := train(t, table, p, table)
	lighter := 0
	for i := range m.Ensemble.Trees {
		w := m.Ensemble.Trees[i].Weight
		require.True(t, w > 0 && w <= 1, w)
		if w < 1 {
			lighter++
		}
	}
	require.Greater(t, lighter, 10)
	require.InDelta(t, last(m, 0, 0), metricOf(m, table), 1e-9)
	require.InDelta(t, last(m, 0, 0), last(m, 1, 0), 1e-12)
	require.Less(t, last(m, 0, 0), 0.5*float64(m.Summary.Record[0][0][0]))

	// If no round is dropped, DART equals plain boosting.
	p.SkipDrop = 1
	sameTrees(t, train(t, table, gbdt.Params{LabelCol: "label", NumTrees: 25, MaxDepth: 3, LearningRate: 0.4}), train(t, table, p))

	// With two trees, if the first is dropped while the second is made, both end with the
	// weight 1/(1+rate).
	p.SkipDrop, p.DropRate, p.NumTrees = -1, 1, 2
	m = train(t, table, p)
	for i := range 2 {
		require.InDelta(t, 1/1.4, m.Ensemble.Trees[i].Weight, 1e-12)
	}

	// After early stopping the weights are those after the best round.
	p = gbdt.Params{LabelCol: "label", NumTrees: 200, MaxDepth: 3, DART: true, SkipDrop: -1, LearningRate: 0.8, EarlyStoppingRounds: 3}
	test := made(56, 100, 3)
	m = train(t, table, p, test)
	require.Less(t, m.Summary.BestRound, m.Summary.Rounds)
	require.InDelta(t, last(m, 1, 0), metricOf(m, test), 1e-9)
}

// TestCensoredTimes requires, for rows with censored times, that the model predicts more than
// the lower end of the interval.
func TestCensoredTimes(t *testing.T) {
	type row struct {
		X            float64
		Lower, Upper float64
	}
	var rows []row
	for i := range 200 {
		x := float64(i % 4)
		rows = append(rows, row{x, 1 + x, 1 + x})
		if x == 3 {
			rows[i] = row{x, 4, math.Inf(1)}
		}
	}
	for _, d := range []gbdt.Distribution{gbdt.NormalTime, gbdt.LogisticTime, gbdt.ExtremeTime} {
		p := gbdt.Params{Objective: gbdt.AFT, Time: d, TimeScale: 0.3, FeatureCols: []string{"x"}, LabelCol: "lower", LabelUpperCol: "upper", NumTrees: 60, LearningRate: 0.3, Lambda: -1}
		m := trainRows(t, rows, p)
		for x := range 3 {
			want := float64(1 + x)
			if d == gbdt.ExtremeTime {
				require.Greater(t, m.Predict([]float64{float64(x)}), want*0.99)
				continue
			}
			require.InDelta(t, want, m.Predict([]float64{float64(x)}), 0.02, d)
		}
		require.Greater(t, m.Predict([]float64{3}), 5.0, d)
		require.Equal(t, []string{"aft_nloglik"}, m.Summary.Metrics)
	}
	rows[7].Upper = 0.5
	p := gbdt.Params{Objective: gbdt.AFT, FeatureCols: []string{"x"}, LabelCol: "lower", LabelUpperCol: "upper"}
	trial.Fails(t, func(b *engine.Builder) { engine.Collect(gbdt.Train(operators.FromSlice(b, rows), p), "model") }, "0.5")
}

// TestRanking requires that training raises NDCG even if the rows of a query are scattered over
// the data, and that the NDCG equals the NDCG of package evaluate.
func TestRanking(t *testing.T) {
	rows := queries(40)
	p := gbdt.Params{Objective: gbdt.LambdaMART, FeatureCols: []string{"a", "b"}, LabelCol: "label", GroupCol: "query", NumTrees: 20, MinChildWeight: -1, Metrics: []string{"ndcg@5", "map@5"}}
	m := trainRows(t, rows, p)
	require.Greater(t, last(m, 0, 0), float64(m.Summary.Record[0][0][0]))
	require.Greater(t, last(m, 0, 0), 0.97)
	var query []int64
	var label, score []float64
	for _, r := range rows {
		query, label, score = append(query, r.Query), append(label, r.Label), append(score, m.Predict([]float64{r.A, r.B}))
	}
	report, err := evaluate.MeasureRanking(query, label, score, nil, evaluate.RankingOptions{K: 5})
	require.NoError(t, err)
	require.InDelta(t, report.NDCG, last(m, 0, 0), 1e-12)
	require.InDelta(t, report.MAP, last(m, 0, 1), 1e-12)
	rows[3].Label = 40
	trial.Fails(t, func(b *engine.Builder) { engine.Collect(gbdt.Train(operators.FromSlice(b, rows), p), "model") }, "want a relevance of 0 to 31")
}

// TestCrossValidation requires that Params can be used as a stage in cross-validation.
func TestCrossValidation(t *testing.T) {
	table := labelled(made(57, 200, 3), func(y float64) float64 { return kernelBool(y > 3) })
	base := gbdt.Params{LabelCol: "label", Objective: gbdt.Logistic, NumTrees: 4, MaxDepth: 3}
	grid := selection.Grid(base, stageOf, selection.Over("rate", func(p *gbdt.Params, v float64) { p.LearningRate = v }, 1e-6, 0.3))
	r := trial.Run(t, func(b *engine.Builder) {
		found := selection.CrossValidate(table.Dataset(b), grid, selection.Options{
			Metrics: selection.Binary(evaluate.BinaryOptions{LabelCol: "label", ScoreCol: "probability"}, "log_loss"), K: 2, Refit: true,
		})
		engine.Collect(found.Scores, "scores")
		engine.Collect(found.Best, "model")
	})
	scores, err := selection.TableOf(r, "scores")
	require.NoError(t, err)
	require.Equal(t, "rate=0.3", scores.Best().Candidate)
	m, err := gbdt.ModelOf(r, "model")
	require.NoError(t, err)
	require.Equal(t, int64(200), m.Summary.Rows)
	require.Less(t, last(m, 0, 0), 0.5)
}

// TestWeights requires that a row of weight 2 counts like two equal rows of weight 1.
func TestWeights(t *testing.T) {
	table := made(58, 200, 3)
	double, single := table, table
	single.Weight = make([]float64, table.N)
	for i := range table.N {
		single.Weight[i] = 1
		if i%3 == 0 {
			single.Weight[i] = 2
			double.X = append(double.X[:len(double.X):len(double.X)], table.Row(i)...)
			double.Label = append(double.Label[:len(double.Label):len(double.Label)], table.Label[i])
			double.N++
		}
	}
	for _, o := range []gbdt.Objective{gbdt.Squared, gbdt.Absolute, gbdt.Huber} {
		p := gbdt.Params{LabelCol: "label", Objective: o, NumTrees: 6, MaxDepth: 3}
		want := train(t, double, p)
		p.WeightCol = "weight"
		got := train(t, single, p)
		for i := range table.N {
			require.InDelta(t, want.Predict(table.Row(i)), got.Predict(table.Row(i)), 1e-9, fmt.Sprint(o, i))
		}
		require.InDelta(t, last(want, 0, 0), last(got, 0, 0), 1e-9)
	}
}

// TestHeldOut requires that held-out rows change neither the prior, nor leaves, nor splits.
func TestHeldOut(t *testing.T) {
	table := made(59, 160, 3)
	other := labelled(table, func(y float64) float64 { return y })
	draw, held := sharding.NewRandom(5, "gbdt validation", 0, 0), 0
	for i := range other.Label {
		if draw.Float64At(uint64(i)) < 0.3 {
			other.Label[i] += 1000
			held++
		}
	}
	require.Positive(t, held)
	for _, o := range []gbdt.Objective{gbdt.Squared, gbdt.Absolute, gbdt.Huber, gbdt.Quantile} {
		p := gbdt.Params{LabelCol: "label", Objective: o, NumTrees: 4, MaxDepth: 3, ValidationFraction: 0.3, Seed: 5, GOSS: o == gbdt.Quantile, LearningRate: 0.6}
		var models [2]*gbdt.Model
		for i, rows := range []trial.Table{table, other} {
			models[i] = run(t, func(b *engine.Builder) *engine.Dataset { return gbdt.Train(rows.Dataset(b), p) }, engine.Shards(1))
		}
		sameTrees(t, models[0], models[1], o)
		require.Equal(t, last(models[0], 0, 0), last(models[1], 0, 0))
		require.Greater(t, last(models[1], 1, 0), 100*last(models[0], 1, 0), o)
	}
}

// TestColumnSampling requires that each tree draws its own features.
func TestColumnSampling(t *testing.T) {
	m := train(t, made(60, 200, 4), gbdt.Params{LabelCol: "label", NumTrees: 12, ColsampleByTree: 0.5})
	drawn := map[string]bool{}
	for i := range m.Ensemble.Trees {
		used := map[int32]bool{}
		for _, n := range m.Ensemble.Trees[i].Nodes {
			if !n.Leaf() {
				used[n.Feature] = true
			}
		}
		require.LessOrEqual(t, len(used), 2)
		drawn[fmt.Sprint(used)] = true
	}
	require.Greater(t, len(drawn), 2)
}
