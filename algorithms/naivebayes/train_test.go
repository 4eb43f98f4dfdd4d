package naivebayes_test

import (
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/naivebayes"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// sklearn has results of predict_proba of scikit-learn's GaussianNB, MultinomialNB(alpha=0.5),
// ComplementNB(alpha=0.5) and BernoulliNB(alpha=0.5, binarize=1). They are trained on small(),
// without and with weights, and predict the rows 2, 3 and 11 of small(). (For GaussianNB with
// weights, var_smoothing was scaled by hand to the weighted variance, which scikit-learn does
// not use.)
var sklearn = []struct {
	family   naivebayes.Family
	weighted bool
	want     [3][]float64
}{
	{naivebayes.Gaussian, false, [3][]float64{{0.4428688474798133, 0.0, 0.5571311525201866}, {0.9172266310087888, 0.0, 0.0827733689912112}, {0.5613812409616686, 0.0, 0.43861875903833153}}},
	{naivebayes.Gaussian, true, [3][]float64{{0.11893248903600796, 0.0, 0.881067510963992}, {0.9703460187964443, 0.0, 0.029653981203555748}, {0.7956673524968971, 0.0, 0.20433264750310276}}},
	{naivebayes.Multinomial, false, [3][]float64{{0.6358738881109017, 5.0290589816158394e-09, 0.36412610686004016}, {0.7689647287576121, 0.007252786190300239, 0.22378248505208645}, {0.528867454361853, 9.866094637776636e-05, 0.47103388469176966}}},
	{naivebayes.Multinomial, true, [3][]float64{{0.5610508138358001, 1.3137452208155096e-10, 0.4389491860328231}, {0.7872164254726831, 0.002489916639453571, 0.2102936578878622}, {0.6006817403293253, 1.7286146065915717e-05, 0.3993009735246078}}},
	{naivebayes.Complement, false, [3][]float64{{0.4147170572768444, 0.22806761407409612, 0.3572153286490618}, {0.36818045910809766, 0.3808721898922065, 0.25094735099969573}, {0.28262277262724517, 0.3285026288674292, 0.3888745985053239}}},
	{naivebayes.Complement, true, [3][]float64{{0.33365118211613815, 0.2453984336205814, 0.4209503842632804}, {0.3711137169791272, 0.3756409180289096, 0.25324536499196443}, {0.2952825115927097, 0.33468925919530357, 0.37002822921198697}}},
	{naivebayes.Bernoulli, false, [3][]float64{{0.5858112064433059, 0.0012555992191535595, 0.41293319433754044}, {0.8415448538006532, 0.07079068897362023, 0.08766445722572691}, {0.39483850004472704, 0.003132326248197509, 0.6020291737070754}}},
	{naivebayes.Bernoulli, true, [3][]float64{{0.4748823105999041, 0.00033082136093125957, 0.5247868680391644}, {0.9065735850868841, 0.028639743619803454, 0.06478667129331281}, {0.4770227017074709, 0.001096631052178451, 0.5218806672403506}}},
}

func TestSameAsScikitLearn(t *testing.T) {
	table := small()
	for _, c := range sklearn {
		p := of(c.family)
		if c.weighted {
			p.WeightCol = "weight"
		}
		for _, sparse := range []bool{false, true} {
			table.Sparse = sparse
			m := train(t, table, p)
			for i, row := range []int{2, 3, 11} {
				tolerance := 1e-9
				if c.family == naivebayes.Gaussian {
					tolerance = 1e-6 // larger for sparse rows, because the variances of constant features are 1e-9 of their means
				}
				require.InDeltaSlice(t, c.want[i], probabilities(t, m, table.Row(row)), tolerance, "%v %v", c.family, c.weighted)
				got := make([]float64, 3)
				indices, values := trial.Sparse(table.Row(row))
				require.True(t, m.PredictProbabilitySparse(indices, values, got))
				require.InDeltaSlice(t, c.want[i], got, tolerance, "sparse %v %v", c.family, c.weighted)
			}
		}
	}
}

// TestIris compares a Gaussian model of iris with scikit-learn's GaussianNB: its score, its
// probabilities, and one row of var_ and of theta_.
func TestIris(t *testing.T) {
	text, err := os.ReadFile("../gmm/testdata/iris.csv")
	require.NoError(t, err)
	table := trial.Table{D: 4}
	for _, line := range strings.Split(strings.TrimSpace(string(text)), "\n")[1:] {
		cells := strings.Split(line, ",")
		for _, cell := range cells[:4] {
			v, err := strconv.ParseFloat(cell, 64)
			require.NoError(t, err)
			table.X = append(table.X, v)
		}
		table.Words = append(table.Words, strings.TrimSpace(cells[4]))
		table.N++
	}
	m := train(t, table, naivebayes.Params{LabelCol: "label"})
	require.Equal(t, []string{"Iris-setosa", "Iris-versicolor", "Iris-virginica"}, m.Classes.Values)
	right := 0
	for i := range table.N {
		if m.Classes.Values[m.Predict(table.Row(i))] == table.Words[i] {
			right++
		}
	}
	require.Equal(t, 144, right)
	require.InDeltaSlice(t, []float64{0, 0.15449408491578914, 0.8455059150842108}, probabilities(t, m, table.Row(70)), 1e-9)
	require.InDeltaSlice(t, []float64{0.261104003092425, 0.0965000030924249, 0.21640000309242502, 0.03832400309242487}, m.Variances[1], 1e-12)
	require.InDeltaSlice(t, []float64{6.588, 2.974, 5.552, 2.026}, m.Means[2], 1e-12)
}

// TestFeaturesThatDoNotOccur requires that, of very many declared features, the model has only
// those that occur. Predictions must be the same as with all features, and for Gaussian the
// same as with only the features that occur.
func TestFeaturesThatDoNotOccur(t *testing.T) {
	const d = 66_000
	table := small()
	table.Weight = nil
	dense := widened(table, d, 10_000)
	sparse := dense
	sparse.Sparse = true
	for _, f := range []naivebayes.Family{naivebayes.Gaussian, naivebayes.Multinomial, naivebayes.Bernoulli} {
		x := append([]float64(nil), dense.Row(3)...)
		var want []float64
		p := of(f)
		if f == naivebayes.Bernoulli {
			p.Smoothing = 1e-4 // with a larger value, the many absent features would decide the class
		}
		if f == naivebayes.Gaussian {
			want = probabilities(t, train(t, table, p), table.Row(3))
		} else {
			x[77] = 3 // a feature that does not occur in training
			all := train(t, dense, p, engine.Shards(1))
			require.Nil(t, all.Columns)
			want = probabilities(t, all, x)
		}
		require.Less(t, slices.Max(want), 0.9999, "the probabilities must depend on the features, or the test proves nothing")
		m := train(t, sparse, p, engine.Shards(2))
		require.Equal(t, []int32{0, 10000, 20000, 30000, 40000, 50000}, m.Columns)
		require.Equal(t, d, m.Dim)
		require.InDeltaSlice(t, want, probabilities(t, m, x), 1e-6, "%v: a model without the absent features must give the same probabilities", f)
		indices, values := trial.Sparse(x)
		got := make([]float64, 3)
		require.True(t, m.PredictProbabilitySparse(indices, values, got))
		require.InDeltaSlice(t, want, got, 1e-6, "%v: a sparse row must have the same probabilities", f)
	}
}

// TestVariancesOfDistantClasses requires that the variances within classes are accurate if the
// means of the classes are far apart.
func TestVariancesOfDistantClasses(t *testing.T) {
	table := trial.Table{N: 8, D: 1, X: []float64{1e9, 1e9 + 1, 1e9 + 2, 1e9 + 3, -1e9, -1e9 - 2, -1e9 - 4, -1e9 - 6}, Label: []float64{1, 1, 1, 1, 0, 0, 0, 0}}
	for _, sparse := range []bool{false, true} {
		table.Sparse = sparse
		m := train(t, table, naivebayes.Params{LabelCol: "label", VarSmoothing: 1e-30})
		require.InDelta(t, 5, m.Variances[0][0], 1e-6)
		require.InDelta(t, 1.25, m.Variances[1][0], 1e-6)
	}
}

func TestPriors(t *testing.T) {
	table := small()
	p := of(naivebayes.Multinomial)
	require.Equal(t, []float64{12. / 24, 5. / 24, 7. / 24}, train(t, table, p).Priors)
	p.UniformPriors = true
	require.Equal(t, []float64{1. / 3, 1. / 3, 1. / 3}, train(t, table, p).Priors)
	p.UniformPriors, p.Priors = false, map[string]float64{"0": 0.5, "1": 0.25, "2": 0.25}
	m := train(t, table, p)
	require.Equal(t, []float64{0.5, 0.25, 0.25}, m.Priors)
	require.InDeltaSlice(t, m.Priors, probabilities(t, m, make([]float64, 6)), 1e-12, "a row of zeros must have the prior probabilities")
}

// TestFewRows requires that training succeeds with some constant features, with only constant
// features, and with one row per class.
func TestFewRows(t *testing.T) {
	table := trial.TableOf([]float64{0, 1}, []float64{3, 1}, []float64{3, 5})
	for _, f := range families {
		m := train(t, table, naivebayes.Params{LabelCol: "label", Family: f})
		require.Equal(t, 1.0, floor(probabilities(t, m, table.Row(0))))
	}
	same := trial.TableOf([]float64{0, 1, 1}, []float64{3, 3}, []float64{3, 3}, []float64{3, 3})
	for _, f := range families[:1] {
		m := train(t, same, naivebayes.Params{LabelCol: "label", Family: f})
		require.InDeltaSlice(t, []float64{1. / 3, 2. / 3}, probabilities(t, m, same.Row(0)), 1e-9)
	}
}

// floor returns the sum of probabilities, rounded to 12 decimal places.
func floor(p []float64) float64 {
	var sum float64
	for _, v := range p {
		sum += v
	}
	return math.Round(sum*1e12) / 1e12
}

func TestSameBits(t *testing.T) {
	table := small()
	for _, f := range families {
		for _, sparse := range []bool{false, true} {
			table.Sparse = sparse
			p := of(f)
			p.WeightCol = "weight"
			trial.SameBits(t, func(b *engine.Builder) {
				rows := table.Dataset(b)
				m := naivebayes.Train(rows, p)
				engine.Collect(operators.Select(m, "model"), "model")
				engine.Collect(naivebayes.Predict(rows, m, naivebayes.PredictOptions{}), "rows")
			})
		}
	}
	wild := trial.Wild(200, 4)
	trial.SameBits(t, func(b *engine.Builder) {
		m := naivebayes.Train(wild.Dataset(b), naivebayes.Params{LabelCol: "label", WeightCol: "weight"})
		engine.Collect(operators.Select(m, "model"), "model")
	})
	for i, v := range wild.X {
		wild.X[i] = math.Abs(v)
	}
	trial.SameBits(t, func(b *engine.Builder) {
		m := naivebayes.Train(wild.Dataset(b), naivebayes.Params{LabelCol: "label", WeightCol: "weight", Family: naivebayes.Multinomial})
		engine.Collect(operators.Select(m, "model"), "model")
	})
}
