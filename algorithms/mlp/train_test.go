package mlp_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/mlp"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// sklearn has medians over random_state 0 to 9 of scikit-learn's MLPClassifier((8,),
// solver="lbfgs", alpha = L2·rows, max_iter=200) after a StandardScaler. The classifier is
// trained on the rows with even index. accuracy is the median accuracy on the rows with odd
// index, and loss is the median of loss_. (For HIGGS the rows are the 500 test rows.)
var sklearn = []struct {
	data           string
	activation     mlp.Activation
	l2             float64
	accuracy, loss float64
}{
	{"iris", mlp.ReLU, 0.01, 0.9733333333333334, 0.14889743309497408},
	{"iris", mlp.Tanh, 0.01, 0.9733333333333334, 0.16695319575879913},
	{"iris", mlp.Logistic, 0.01, 0.9733333333333334, 0.37750333866090174},
	{"higgs", mlp.ReLU, 0.1, 0.5, 0.684701591594518}, // 0.5, because the accuracy on 250 rows of HIGGS is mostly noise
}

func TestAsGoodAsScikitLearn(t *testing.T) {
	data := map[string]trial.Table{
		"iris":  table(t, "../gmm/testdata/iris.csv", ",", true, 4, true),
		"higgs": table(t, "../logistic/testdata/higgs.tsv", "\t", false, 0, false),
	}
	for _, c := range sklearn[:comparedNetworks] {
		even, odd := halves(data[c.data])
		var accuracies, losses []float64
		for seed := range uint64(10) {
			m := train(t, even, mlp.Params{
				LabelCol: "label", Task: mlp.Classification, Hidden: []int{8}, Activation: c.activation, L2: c.l2, Seed: seed + 1,
			}, engine.Parallelism(1), engine.Shards(1))
			accuracies, losses = append(accuracies, accuracy(m, odd)), append(losses, m.Summary.Loss)
		}
		slices.Sort(accuracies)
		slices.Sort(losses)
		median := func(v []float64) float64 { return (v[4] + v[5]) / 2 }
		t.Logf("%s %v: accuracy %.4f (%.4f), loss %.4f (%.4f)", c.data, c.activation, median(accuracies), c.accuracy, median(losses), c.loss)
		require.GreaterOrEqual(t, median(accuracies), c.accuracy, "%s %v: the median accuracy must be at least that of scikit-learn", c.data, c.activation)
		require.Less(t, median(losses), 1.01*c.loss, "%s %v: the median loss must be less than 1.01 times that of scikit-learn", c.data, c.activation)
	}
}

// TestLinear requires that a network without hidden layers gives the predictions of least
// squares with an intercept. It compares them with published predictions.
func TestLinear(t *testing.T) {
	rows := trial.TableOf([]float64{16.8, 6.7, 6.9, 8.0}, []float64{1, 7, 9}, []float64{1, 3, 3}, []float64{1, 2, 4}, []float64{1, 3, 4})
	for _, plain := range []bool{false, true} {
		m := train(t, rows, mlp.Params{LabelCol: "label", Hidden: []int{}, Tol: 1e-10, NoStandardize: plain})
		require.InDelta(t, 16.81478873, m.Predict(rows.Row(0)), 1e-6)
		require.InDelta(t, 6.77394366, m.Predict(rows.Row(1)), 1e-6)
		require.True(t, m.Summary.Converged)
	}
}

// TestCurves requires that networks fit a circle and a curve, which no linear model can fit.
func TestCurves(t *testing.T) {
	require.Greater(t, accuracy(train(t, rings(300), classification), rings(300)), 0.97)
	p := classification
	p.Hidden = []int{}
	require.Less(t, accuracy(train(t, rings(300), p), rings(300)), 0.75)

	sine := trial.Table{N: 80, D: 1}
	for i := range sine.N {
		x := float64(i)/10 - 4
		sine.X, sine.Label = append(sine.X, x), append(sine.Label, math.Sin(x))
	}
	p = regression
	p.MaxIter, p.Tol = 1000, 1e-6
	m := train(t, sine, p)
	require.InDelta(t, math.Sin(1.23), m.Predict([]float64{1.23}), 0.03)
	require.Less(t, m.Summary.Loss, 1e-4)
}

// TestStochastic requires that SGD with Adam comes near to the optimum that L-BFGS finds.
func TestStochastic(t *testing.T) {
	even, _ := halves(table(t, "../gmm/testdata/iris.csv", ",", true, 4, true))
	p := classification
	p.L2 = 0.01
	best := train(t, even, p, engine.Shards(2))
	p.Method, p.MaxIter, p.Tol = optim.SGD, 150, -1
	p.Stochastic = optim.Stochastic{Batch: 16, Update: optim.Adam, Schedule: optim.Constant, Rate: 0.02}
	m := train(t, even, p, engine.Shards(2))
	require.InDelta(t, best.Summary.Loss, m.Summary.Loss, 0.03)
}

// TestSparse requires that sparse rows give the same results as dense rows if features are not
// shifted.
func TestSparse(t *testing.T) {
	dense := rings(80)
	for i := range dense.X {
		if i%3 == 0 {
			dense.X[i] = 0
		}
	}
	sparse := dense
	sparse.Sparse = true
	p := classification
	p.NoStandardize, p.MaxIter = true, 20
	a, b := train(t, dense, p), train(t, sparse, p)
	require.InDelta(t, a.Summary.Loss, b.Summary.Loss, 1e-9)
	p.NoStandardize = false
	scaled := train(t, sparse, p)
	require.Equal(t, []float64{0, 0}, scaled.Shift)
	indices, values := trial.Sparse(sparse.Row(4))
	require.Equal(t, scaled.Predict(sparse.Row(4)), scaled.PredictSparse(indices, values))

	// A model that shifts features must use 0 for the features that a sparse row leaves out.
	shifted := train(t, dense, p)
	require.NotEqual(t, []float64{0, 0}, shifted.Shift)
	x, y := make([]float64, 2), make([]float64, 2)
	require.True(t, shifted.PredictProbability(dense.Row(3), x))
	indices, values = trial.Sparse(dense.Row(3))
	require.True(t, shifted.PredictProbabilitySparse(indices, values, y))
	require.Equal(t, x, y)
}

// TestFeaturesThatDoNotOccur requires that, of very many declared features, only those that
// occur are trained.
func TestFeaturesThatDoNotOccur(t *testing.T) {
	small := rings(40)
	small.Sparse = true
	wide := trial.Table{N: 40, D: 70_000, Label: small.Label, X: make([]float64, 40*70_000), Sparse: true}
	for i := range 40 {
		copy(wide.X[i*70_000:], small.Row(i))
	}
	p := classification
	p.MaxIter = 10
	a, b := train(t, small, p, engine.Shards(2)), train(t, wide, p, engine.Shards(2))
	require.Equal(t, []int32{0, 1}, b.Columns)
	require.Equal(t, 70_000, b.Dim)
	require.Equal(t, a.Layers, b.Layers)
	x, y := make([]float64, 2), make([]float64, 2)
	indices, values := trial.Sparse(small.Row(7))
	require.True(t, a.PredictProbabilitySparse(indices, values, x))
	require.True(t, b.PredictProbabilitySparse(append(indices, 69_999), append(values, 5), y))
	require.Equal(t, x, y)
	require.True(t, b.PredictProbability(wide.Row(7), y))
	require.Equal(t, x, y)
}

// TestWeights requires that a row of weight n has the effect of n rows.
func TestWeights(t *testing.T) {
	rows := rings(40)
	repeated := trial.Table{D: 2}
	for i := range rows.N {
		for range int(rows.Weight[i]) {
			repeated.X = append(repeated.X, rows.Row(i)...)
			repeated.Label = append(repeated.Label, rows.Label[i])
			repeated.N++
		}
	}
	p := classification
	p.Hidden, p.Activation, p.L2 = []int{2}, mlp.Tanh, 0.1
	plain := train(t, repeated, p)
	p.WeightCol = "weight"
	require.InDelta(t, plain.Summary.Loss, train(t, rows, p).Summary.Loss, 1e-5)
}

// TestFewRows requires that training succeeds on one row, on more features than rows, and on
// constant and collinear columns.
func TestFewRows(t *testing.T) {
	rows := trial.TableOf([]float64{1, 2}, []float64{1, 5, 2, 10}, []float64{2, 5, 4, 10})
	m := train(t, rows, regression)
	require.InDelta(t, 1, m.Predict(rows.Row(0)), 1e-2)
	require.Equal(t, 0.0, m.Scale[1])
	one := train(t, trial.TableOf([]float64{7}, []float64{1, 2}), regression)
	require.InDelta(t, 7, one.Predict([]float64{1, 2}), 1e-2)
}

func TestSameBits(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		rows := rings(150)
		rows.Sparse = sparse
		for _, p := range []mlp.Params{
			{LabelCol: "label", WeightCol: "weight", Hidden: []int{4, 3}, Task: mlp.Classification, L2: 0.01, MaxIter: 5},
			{LabelCol: "label", WeightCol: "weight", Hidden: []int{3}, Activation: mlp.Logistic, MaxIter: 2, Method: optim.SGD},
		} {
			trial.SameBits(t, func(b *engine.Builder) {
				d := rows.Dataset(b)
				m := mlp.Train(d, p)
				engine.Collect(operators.Select(m, "model"), "model")
				engine.Collect(p.Apply(d, m), "rows")
			}, "mlp")
		}
	}
	wild := trial.Wild(100, 3)
	trial.SameBits(t, func(b *engine.Builder) {
		m := mlp.Train(wild.Dataset(b), mlp.Params{LabelCol: "label", WeightCol: "weight", Task: mlp.Classification, MaxIter: 4, Hidden: []int{9}})
		engine.Collect(operators.Select(m, "model"), "model")
	}, "mlp")
}
