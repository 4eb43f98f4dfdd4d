package gbdt_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// exact has parameters with which trees fit the labels as closely as they can.
var exact = gbdt.Params{LabelCol: "label", LearningRate: 1, Lambda: -1, MinChildWeight: -1, Base: []float64{0}}

// TestLogisticExactly compares three rounds on four rows, each in its own leaf, with Newton's
// method: from p = ½ on, the margin changes by (y−p)/(p(1−p)) in each round.
func TestLogisticExactly(t *testing.T) {
	type row struct {
		X, N  float64
		C     string
		M     int64
		Label int64
	}
	rows := []row{{1, 0, "A", 0, 0}, {2, 1, "B", 1, 0}, {3, 2, "C", 2, 1}, {4, 3, "D", 3, 1}}
	p := exact
	p.Objective, p.NumTrees = gbdt.Logistic, 3
	for _, columns := range [][]string{{"x", "c", "n", "m"}, {"c"}, {"m", "x"}} {
		p.FeatureCols = columns
		m := trainRows(t, rows, p)
		for i := range rows {
			values := map[string]float64{"x": rows[i].X, "n": rows[i].N, "m": float64(rows[i].M)}
			var x []float64
			for j, name := range columns {
				if name == "c" {
					values[name] = m.Code(j, rows[i].C)
				}
				x = append(x, values[name])
			}
			var got [2]float64
			require.True(t, m.PredictProbability(x, got[:]))
			want := 0.0150855054
			if rows[i].Label == 1 {
				want = 0.9849144946
			}
			require.InDelta(t, want, got[1], 1e-9, columns)
			require.Equal(t, float64(rows[i].Label), m.Predict(x))
		}
	}
}

// TestRegressionTreeExactly requires that one regression tree gives every row its own leaf,
// except for the two rows that are equal.
func TestRegressionTreeExactly(t *testing.T) {
	table := trial.TableOf([]float64{0.8, 0.7, 0.4, 0.4, 0.6, 0.2, 0.3},
		[]float64{1, 2}, []float64{1, 2}, []float64{0, 3}, []float64{0, 2}, []float64{1, 3}, []float64{4, 3}, []float64{4, 4})
	for _, base := range [][]float64{{0}, nil} {
		p := exact
		p.NumTrees, p.Base = 1, base
		m := train(t, table, p)
		require.InDelta(t, 0.026726, last(m, 0, 0), 1e-6)
		require.InDelta(t, math.Sqrt(2*0.05*0.05/7), last(m, 0, 0), 1e-12)
		require.InDelta(t, 0.75, m.Predict([]float64{1, 2}), 1e-12)
		require.InDelta(t, 0.4, m.Predict([]float64{0, 3}), 1e-12)
	}
}

// TestPriors trains trees of one leaf. A leaf is a Newton step from the prior. For these
// objectives the step is 0, so the prediction must be the prior.
func TestPriors(t *testing.T) {
	n := 40
	table := trial.Table{N: n, D: 1, X: make([]float64, n), Label: make([]float64, n), Weight: make([]float64, n)}
	var sum, weight, logs float64
	for i := range n {
		table.Label[i], table.Weight[i] = float64(1+i*i%7), float64(1+i%3)
		sum += table.Weight[i] * table.Label[i]
		weight += table.Weight[i]
		logs += table.Weight[i] * math.Log(table.Label[i])
	}
	mean := sum / weight
	for _, c := range []struct {
		o    gbdt.Objective
		want float64
	}{
		{gbdt.Squared, mean}, {gbdt.Poisson, math.Log(mean)}, {gbdt.Gamma, math.Log(mean)}, {gbdt.Tweedie, math.Log(mean)}, {gbdt.AFT, logs / weight},
	} {
		m := train(t, table, gbdt.Params{LabelCol: "label", WeightCol: "weight", Objective: c.o, NumTrees: 1})
		require.InDelta(t, c.want, m.Ensemble.Base[0], 1e-12, c.o)
		require.Equal(t, c.o, m.Objective)
		if c.o != gbdt.AFT {
			require.InDelta(t, 0, m.Ensemble.Trees[0].Nodes[0].Value, 1e-12, c.o)
		}
	}
	binary := labelled(table, func(y float64) float64 { return kernelBool(y > 4) })
	var positive float64
	for i, y := range binary.Label {
		positive += y * binary.Weight[i]
	}
	m := train(t, binary, gbdt.Params{LabelCol: "label", WeightCol: "weight", Objective: gbdt.Logistic, NumTrees: 1})
	require.InDelta(t, math.Log(positive/(weight-positive)), m.Ensemble.Base[0], 1e-12)
	m = train(t, binary, gbdt.Params{LabelCol: "label", WeightCol: "weight", Objective: gbdt.Logistic, NumTrees: 1, Balanced: true})
	require.InDelta(t, 0, m.Ensemble.Base[0], 1e-12)
	m = train(t, binary, gbdt.Params{LabelCol: "label", WeightCol: "weight", Objective: gbdt.Logistic, NumTrees: 1, ScalePosWeight: 3})
	require.InDelta(t, math.Log(3*positive/(weight-positive)), m.Ensemble.Base[0], 1e-12)
	m = train(t, binary, gbdt.Params{LabelCol: "label", WeightCol: "weight", Objective: gbdt.Logistic, NumTrees: 1, ClassWeights: map[string]float64{"0": 2}})
	require.InDelta(t, math.Log(positive/(weight-positive)/2), m.Ensemble.Base[0], 1e-12)
	m = train(t, binary, gbdt.Params{LabelCol: "label", WeightCol: "weight", Objective: gbdt.Softmax, NumTrees: 1})
	require.InDelta(t, math.Log(positive/weight), m.Ensemble.Base[1], 1e-12)
	require.Len(t, m.Ensemble.Trees, 2)
}

func kernelBool(v bool) float64 {
	if v {
		return 1
	}
	return 0
}

// TestQuantiles compares the medians and other quantiles of labels, and of the rows of a leaf,
// with those of sorted labels.
func TestQuantiles(t *testing.T) {
	table := trial.Table{D: 1}
	for i := range 31 {
		table.X = append(table.X, float64(i%3))
		table.Label = append(table.Label, float64(i*i%17)-8+float64(i%3)*100)
		table.N++
	}
	quantile := func(of func(i int) bool, at float64) float64 {
		var v []float64
		for i, y := range table.Label {
			if of(i) {
				v = append(v, y)
			}
		}
		return sortedQuantile(v, at)
	}
	for _, at := range []float64{0.1, 0.5, 0.9} {
		p := gbdt.Params{LabelCol: "label", Objective: gbdt.Quantile, QuantileAt: at, NumTrees: 1, LearningRate: 1, Lambda: -1, MinChildWeight: -1}
		if at == 0.5 {
			p.Objective, p.QuantileAt = gbdt.Absolute, 0
		}
		m := train(t, table, p)
		require.InDelta(t, quantile(func(int) bool { return true }, at), m.Ensemble.Base[0], 1e-12)
		leaf := func(x int) int32 {
			var n [1]int32
			require.True(t, m.Leaves([]float64{float64(x)}, n[:]))
			return n[0]
		}
		require.NotEqual(t, leaf(0), leaf(2))
		for x := range 3 {
			require.InDelta(t, quantile(func(i int) bool { return leaf(i%3) == leaf(x) }, at), m.Predict([]float64{float64(x)}), 1e-9, at)
		}
		// A row with an integer weight counts like that many equal rows.
		double, weighted := table, table
		double.X, double.Label = append([]float64(nil), table.X...), append([]float64(nil), table.Label...)
		weighted.Weight = make([]float64, table.N)
		for i := range table.N {
			weighted.Weight[i] = 1.5
			if i%4 == 0 {
				weighted.Weight[i] = 3
				double.X, double.Label = append(double.X, table.X[i]), append(double.Label, table.Label[i])
				double.N++
			}
		}
		want := train(t, double, p)
		p.WeightCol = "weight"
		got := train(t, weighted, p)
		for x := range 3 {
			require.Equal(t, want.Predict([]float64{float64(x)}), got.Predict([]float64{float64(x)}))
		}
	}
}

// TestHuberLeaves requires that the leaves of Huber are the median plus the mean of the cut
// differences from the median.
func TestHuberLeaves(t *testing.T) {
	table := trial.Table{N: 5, D: 1, X: make([]float64, 5), Label: []float64{1, 2, 3, 10, -4}}
	m := train(t, table, gbdt.Params{LabelCol: "label", Objective: gbdt.Huber, HuberDelta: 2, NumTrees: 1, LearningRate: 1})
	require.Equal(t, 2.0, m.Ensemble.Base[0])
	require.InDelta(t, 2+(-1+0+1+2-2)/5.0, m.Predict([]float64{0}), 1e-12)
}

// TestObjectivesLearn requires, for every objective, that its metric falls in training and
// equals the metric computed row by row.
func TestObjectivesLearn(t *testing.T) {
	base := made(1, learnRows, 5)
	positive := labelled(base, func(y float64) float64 { return math.Exp(y / 3) })
	for _, c := range []struct {
		name  string
		table trial.Table
		p     gbdt.Params
		share float64 // the last value must be below this share of the value after the first round
	}{
		{"squared", base, gbdt.Params{}, 0.5},
		{"absolute", base, gbdt.Params{Objective: gbdt.Absolute}, 0.5},
		{"huber", base, gbdt.Params{Objective: gbdt.Huber}, 0.3},
		{"quantile", base, gbdt.Params{Objective: gbdt.Quantile, QuantileAt: 0.8}, 0.5},
		{"logistic", labelled(base, func(y float64) float64 { return kernelBool(y > 3) }), gbdt.Params{Objective: gbdt.Logistic}, 0.6},
		{"softmax", labelled(base, func(y float64) float64 { return math.Floor(max(0, min(3, y/1.5))) }), gbdt.Params{Objective: gbdt.Softmax}, 0.7},
		{"poisson", labelled(positive, math.Floor), gbdt.Params{Objective: gbdt.Poisson}, 0.7},
		{"gamma", positive, gbdt.Params{Objective: gbdt.Gamma}, 0.2},
		{"tweedie", labelled(positive, math.Floor), gbdt.Params{Objective: gbdt.Tweedie}, 0.7},
		{"aft", positive, gbdt.Params{Objective: gbdt.AFT, TimeScale: 0.5}, 0.9},
	} {
		c.p.LabelCol, c.p.NumTrees, c.p.MaxDepth, c.p.LearningRate = "label", learnRounds, 4, 3/float64(learnRounds)
		test := part(c.table, learnRows*3/4, learnRows)
		m := train(t, part(c.table, 0, learnRows*3/4), c.p, test)
		require.Equal(t, []string{"train", "test"}, m.Summary.Sets)
		require.Len(t, m.Summary.Record, learnRounds)
		for set := range 2 {
			first := float64(m.Summary.Record[0][set][0])
			require.Less(t, last(m, set, 0), c.share*first+(1-c.share)*min(0, first), "%s on set %d: the metric must fall in training; after the first round it is %v", c.name, set, first)
		}
		// The margins in training must equal the margins that the model predicts.
		require.InDelta(t, last(m, 1, 0), metricOf(m, test), 1e-9, c.name)
	}
}

// metricOf returns a model's metric on table, computed row by row.
func metricOf(m *gbdt.Model, table trial.Table) float64 {
	var sum float64
	for i := range table.N {
		y, v := table.Label[i], m.Predict(table.Row(i))
		switch m.Summary.Metrics[0] {
		case "rmse":
			sum += (y - v) * (y - v)
		case "mae":
			sum += math.Abs(y - v)
		case "huber":
			d := math.Abs(y - v)
			sum += min(d*d/2, max(d, 1)-0.5)
		case "quantile":
			sum += max(0.8*(y-v), 0.2*(v-y))
		case "poisson_deviance":
			if y > 0 {
				sum += 2 * y * math.Log(y/v)
			}
			sum += 2 * (v - y)
		case "gamma_deviance":
			sum += 2 * (y/v - 1 - math.Log(y/v))
		case "tweedie_deviance":
			sum += 2 * (-4*math.Sqrt(y) + 2*y/math.Sqrt(v) + 2*math.Sqrt(v))
		case "aft_nloglik":
			z := (math.Log(y) - math.Log(v)) / 0.5
			sum += z*z/2 + math.Log(math.Sqrt(2*math.Pi)*0.5*y)
		default:
			p := make([]float64, len(m.Classes.Values))
			m.PredictProbability(table.Row(i), p)
			sum -= math.Log(p[int(y)])
		}
	}
	sum /= float64(table.N)
	if m.Summary.Metrics[0] == "rmse" {
		sum = math.Sqrt(sum)
	}
	return sum
}

// TestEarlyStopping requires that early stopping keeps the trees up to the best round.
func TestEarlyStopping(t *testing.T) {
	table := made(2, 400, 4)
	p := gbdt.Params{LabelCol: "label", NumTrees: 300, LearningRate: 0.5, MaxDepth: 4, EarlyStoppingRounds: 7}
	m := train(t, part(table, 0, 200), p, part(table, 200, 400))
	best := m.Summary.BestRound
	require.Equal(t, best+7, m.Summary.Rounds)
	require.Less(t, m.Summary.Rounds, 300)
	require.Equal(t, best, m.Rounds())
	for i, round := range m.Summary.Record {
		require.GreaterOrEqual(t, float64(round[1][0]), last(m, 1, 0), i)
	}
	p.NumTrees, p.EarlyStoppingRounds = best, 0
	sameTrees(t, train(t, part(table, 0, 200), p), m)

	// Without an evaluation set, a share of the rows is held out and not trained on.
	p.NumTrees, p.EarlyStoppingRounds, p.ValidationFraction = 300, 5, 0.25
	m = train(t, table, p)
	require.Equal(t, []string{"train", "validation"}, m.Summary.Sets)
	require.Less(t, m.Summary.Rounds, 300)
	require.Less(t, 2*last(m, 0, 0), last(m, 1, 0)*1.9)
	count := m.Ensemble.Trees[0].Nodes[0].Count
	require.InDelta(t, 300, float64(count), 40)
}

func TestMetricsOfSets(t *testing.T) {
	table := weighted(labelled(made(3, 400, 4), func(y float64) float64 { return kernelBool(y > 3) }))
	p := gbdt.Params{LabelCol: "label", WeightCol: "weight", Objective: gbdt.Logistic, NumTrees: 5, Metrics: []string{"auc", "logloss", "error", "aucpr"}}
	m := train(t, table, p, part(table, 0, 100), table)
	require.Equal(t, []string{"train", "test", "test'"}, m.Summary.Sets)
	require.Equal(t, p.Metrics, m.Summary.Metrics)
	for _, round := range m.Summary.Record {
		require.Equal(t, round[0], round[2])
		require.NotEqual(t, round[0], round[1])
	}
	require.Greater(t, last(m, 0, 0), 0.9)
	p.NoTrainMetrics = true
	require.Equal(t, []string{"test"}, train(t, table, p, part(table, 0, 9)).Summary.Sets)
}

// TestCustom requires that a custom metric and a custom objective give the same results as the
// built-in ones.
func TestCustom(t *testing.T) {
	table := weighted(labelled(made(4, 300, 4), func(y float64) float64 { return kernelBool(y > 3) }))
	p := gbdt.Params{LabelCol: "label", WeightCol: "weight", Objective: gbdt.Logistic, NumTrees: 8, Base: []float64{0}}
	want := train(t, table, p)
	loss := &gbdt.CustomMetric{Name: "mine", Sum: func(r *gbdt.Rows) (total, weight float64) {
		for i, m := range r.Margin[0] {
			total += r.Weight[i] * (kernel.Softplus(m) - r.Label[i]*m)
			weight += r.Weight[i]
		}
		return total, weight
	}}
	p.Objective = gbdt.Custom
	p.CustomObjective = &gbdt.CustomObjective{Name: "odds", Link: gbdt.Sigmoid, Metric: loss, Gradients: func(r *gbdt.Rows, grad, hess [][]float64) error {
		for i, m := range r.Margin[0] {
			v := kernel.Sigmoid(m)
			grad[0][i], hess[0][i] = r.Weight[i]*(v-r.Label[i]), r.Weight[i]*(v*(1-v))
		}
		return nil
	}}
	got := train(t, table, p)
	sameTrees(t, want, got)
	require.Equal(t, "odds", got.CustomName)
	require.Equal(t, []string{"mine"}, got.Summary.Metrics)
	require.InDelta(t, last(want, 0, 0), last(got, 0, 0), 1e-12)
	var both [2]float64
	require.True(t, want.PredictProbability(table.Row(3), both[:]))
	require.Equal(t, both[1], got.Predict(table.Row(3)))

	p.CustomObjective = &gbdt.CustomObjective{Name: "bad", Gradients: func(r *gbdt.Rows, grad, hess [][]float64) error {
		grad[0][0] = math.NaN()
		return nil
	}}
	fails(t, table, p, `custom objective "bad"`, "gradient NaN")
	p.CustomObjective.Gradients = func(*gbdt.Rows, [][]float64, [][]float64) error { return fmt.Errorf("no luck") }
	fails(t, table, p, `custom objective "bad": no luck`)
	for _, own := range [][]float64{nil, make([]float64, 1), make([]float64, 1000)} {
		p.CustomObjective.Gradients = func(_ *gbdt.Rows, grad, _ [][]float64) error { grad[0] = own; return nil }
		fails(t, table, p, `custom objective "bad": it has put slices of its own in the place of those of output 0`)
		p.CustomObjective.Gradients = func(_ *gbdt.Rows, _, hess [][]float64) error { hess[0] = own; return nil }
		fails(t, table, p, `custom objective "bad": it has put slices of its own in the place of those of output 0`)
	}
	// The slices have exactly one element for each row of the shard, on any number of subtasks.
	p.CustomObjective.Gradients = func(r *gbdt.Rows, grad, hess [][]float64) error {
		for i := range grad[0] {
			grad[0][i], hess[0][i] = r.Margin[0][i]-r.Label[i], 1
		}
		if n := len(hess[0]); n != r.N || cap(grad[0]) != n {
			return fmt.Errorf("%d values and room for %d, not %d", n, cap(grad[0]), r.N)
		}
		return nil
	}
	one := run(t, func(b *engine.Builder) *engine.Dataset { return gbdt.Train(table.Dataset(b), p) }, engine.Parallelism(1))
	two := run(t, func(b *engine.Builder) *engine.Dataset {
		return gbdt.Train(table.Dataset(b), p, gbdt.Set{Name: "test", Rows: part(table, 0, 299).Dataset(b)})
	}, engine.Parallelism(2))
	sameTrees(t, one, two)
}

// TestStoppingByNothing requires an error if the metric for early stopping is NaN in all
// rounds. A round with NaN must never be the best round if the metric is a number in another
// round.
func TestStoppingByNothing(t *testing.T) {
	table := labelled(made(4, 60, 4), func(y float64) float64 { return kernelBool(y > 3) })
	alike := table
	alike.N, alike.X, alike.Label = 2, table.X[:8], []float64{1, 1}
	p := gbdt.Params{LabelCol: "label", Objective: gbdt.Logistic, NumTrees: 6, EarlyStoppingRounds: 3, Metrics: []string{"auc", "logloss"}}
	for _, rounds := range []int{2, 6} {
		p.NumTrees = rounds
		trial.Fails(t, func(b *engine.Builder) {
			engine.Collect(gbdt.Train(table.Dataset(b), p, gbdt.Set{Name: "test", Rows: alike.Dataset(b)}), "model")
		}, fmt.Sprintf(`no round is the best of %d: the metric auc on the set "test"`, min(rounds, 4)))
	}
	// This metric is NaN in the first rounds, and then a number that falls.
	late := gbdt.CustomMetric{Name: "late", Sum: func(r *gbdt.Rows) (total, weight float64) {
		m := math.Abs(r.Margin[0][0])
		if m < 0.3 {
			return math.NaN(), 1
		}
		return -m, 1
	}}
	p.NumTrees, p.Metrics, p.CustomMetrics, p.Base = 12, []string{}, []gbdt.CustomMetric{late}, []float64{0}
	p.EarlyStoppingRounds = 9
	m := train(t, table, p, part(table, 0, 1))
	require.True(t, math.IsNaN(float64(m.Summary.Record[0][1][0])))
	require.Equal(t, 12, m.Summary.BestRound)
}

// TestContinue requires that a continued training makes the same model as an uninterrupted
// training.
func TestContinue(t *testing.T) {
	table := labelled(made(5, 150, 4), func(y float64) float64 { return math.Floor(max(0, min(2, y/2))) })
	for _, c := range []gbdt.Params{
		{Objective: gbdt.Softmax, Subsample: 0.7, ColsampleByNode: 0.6},
		{Objective: gbdt.Squared, GOSS: true, LearningRate: 0.3},
		{Objective: gbdt.Absolute},
	} {
		c.LabelCol, c.NumTrees, c.MaxDepth, c.Seed = "label", 12, 3, 7
		want := train(t, table, c)
		c.NumTrees = 5
		first := train(t, table, c)
		c.NumTrees, c.Start = 7, first
		got := train(t, table, c, table)
		sameTrees(t, want, got, c.Objective)
		require.Equal(t, 7, got.Summary.Rounds)
		require.Equal(t, 12, got.Rounds())
		require.Equal(t, want.Summary.Record[11][0], got.Summary.Record[6][0])
		require.Equal(t, got.Summary.Record[6][0], got.Summary.Record[6][1])
		c.Objective = gbdt.Gamma
		fails(t, table, c, "Start is of the objective")
	}
}

// TestMargins requires that training starts from the margins of the rows, and that these are
// not part of the model.
func TestMargins(t *testing.T) {
	type row struct {
		A, B, Offset, Label, Rest float64
	}
	var rows []row
	table := made(6, 200, 3)
	for i := range table.N {
		x := table.Row(i)
		rows = append(rows, row{x[0], x[2], 10 * x[2], table.Label[i], table.Label[i] - 10*x[2]})
	}
	p := gbdt.Params{FeatureCols: []string{"a", "b"}, LabelCol: "label", MarginCols: []string{"offset"}, NumTrees: 5}
	got := trainRows(t, rows, p)
	p.LabelCol, p.MarginCols, p.Base = "rest", nil, []float64{0}
	want := trainRows(t, rows, p)
	require.Equal(t, []float64{0}, got.Ensemble.Base)
	for i := range rows {
		x := []float64{rows[i].A, rows[i].B}
		require.InDelta(t, want.Predict(x), got.Predict(x), 1e-9)
	}
}

func TestSchedule(t *testing.T) {
	table := made(8, 200, 4)
	p := gbdt.Params{LabelCol: "label", NumTrees: 4, LearningRate: 0.4}
	want := train(t, table, p)
	p.LearningRate, p.Schedule = 0, func(round int) float64 { return 0.4 }
	sameTrees(t, want, train(t, table, p))
	p.Schedule = func(round int) float64 { return 0.4 / float64(round) }
	got := train(t, table, p)
	require.Equal(t, want.Ensemble.Trees[0], got.Ensemble.Trees[0])
	require.NotEqual(t, want.Ensemble.Trees[1], got.Ensemble.Trees[1])
	p.Schedule = func(round int) float64 { return 3 - float64(round) }
	fails(t, table, p, "round 3: the learning rate is 0")
}
