package gmm_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/superstep-ml/superstep/algorithms/gmm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// TestPublishedMixture compares a mixture with the two components that are published for these
// numbers as results of Spark's GaussianMixture.
func TestPublishedMixture(t *testing.T) {
	table := trial.Table{N: 15, D: 1, X: []float64{
		-5.1971, -2.5359, -3.8220, -5.2211, -5.0602, 4.7118, 6.8989, 3.4592, 4.6322, 5.7048, 4.6567, 5.5026, 4.5605, 5.2043, 6.2734,
	}}
	for _, shape := range shapes[:3] {
		m := train(t, table, gmm.Params{K: 2, Covariance: shape})
		large := 0
		if m.Weights[1] > m.Weights[0] {
			large = 1
		}
		small := 1 - large
		require.InDelta(t, 2.0/3, m.Weights[large], 1e-2)
		require.InDelta(t, 1.0/3, m.Weights[small], 1e-2)
		require.InDelta(t, 5.1604, m.Means[large][0], 1e-2)
		require.InDelta(t, -4.3673, m.Means[small][0], 1e-2)
		require.InDelta(t, 0.86644, m.Covariances[large][0], 1e-2)
		require.InDelta(t, 1.1098, m.Covariances[small][0], 1e-2)
		require.True(t, m.Converged)
	}
}

// sklearn has results of scikit-learn's GaussianMixture(3, reg_covar=1e-6, tol=0, max_iter=T)
// on iris. Each row begins in the component of the nearest of rows 0, 50 and 100. The results
// are score, bic and aic after T = 5 and 40 iterations, and weights and two rows of
// predict_proba after 40.
var sklearn = []struct {
	shape            gmm.Covariance
	score5, score40  float64
	bic, aic         float64
	weights          []float64
	row77, row133    []float64
	meanOfComponent1 []float64
}{
	{gmm.Full, -1.2408550378431384, -1.206646392543356, 582.4618707032421, 449.9939177630068,
		[]float64{0.33333333333333326, 0.29919509335433353, 0.3674715733123332},
		[]float64{0, 0.3287048310903463, 0.6712951689096536}, []float64{0, 0.21560992155335212, 0.7843900784466478},
		[]float64{5.914972010346518, 2.777843665939604, 4.201556772935559, 1.2969683967491599}},
	{gmm.Diagonal, -2.054996150931844, -2.0549957808923267, 746.7752519142006, 668.498734267698,
		[]float64{0.33333333331074566, 0.4139921987796134, 0.25267446790964093},
		[]float64{0, 0.5118720802361953, 0.4881279197638045}, []float64{0, 0.9810117720540915, 0.018988227945908397},
		[]float64{5.927756545121912, 2.750394969150803, 4.406370681360644, 1.4135415235873436}},
	{gmm.Spherical, -2.566019255958031, -2.5660161404812443, 854.9856421440097, 803.8048424443733,
		[]float64{0.3333333340622002, 0.4139398144161575, 0.2527268515216422},
		[]float64{0, 0.31013537804128916, 0.6898646219587107}, []float64{0, 0.8675948038780128, 0.13240519612198737},
		[]float64{5.905213013803248, 2.748867594914656, 4.402605984178022, 1.4326235691445746}},
	{gmm.Tied, -1.7131987897403027, -1.708713680470646, 632.869351199504, 560.6141041411938,
		[]float64{0.33333333333385246, 0.3294719541241617, 0.33719471254198574},
		[]float64{0, 0.7024140036240979, 0.29758599637590205}, []float64{0, 0.7452217959418346, 0.25477820405816526},
		[]float64{5.942039746469727, 2.7611516338299547, 4.258249803263076, 1.319119241882891}},
}

func TestSameAsScikitLearn(t *testing.T) {
	table := iris(t)
	means := [][]float64{table.Row(0), table.Row(50), table.Row(100)}
	for _, want := range sklearn {
		p := gmm.Params{VectorCol: "features", Covariance: want.shape, Means: means, Tol: -1, MaxIter: 5}
		m := train(t, table, p)
		require.Equal(t, 5, m.Iterations)
		require.InDelta(t, want.score5, m.LogLikelihood/150, 1e-9, "%v", want.shape)

		// Training that starts from the model must give the same mixture as training that did
		// not stop.
		p.MaxIter, p.Means, p.Start = 35, nil, m
		m = train(t, table, p)
		require.InDelta(t, want.score40, m.LogLikelihood/150, 1e-9, "%v", want.shape)
		require.InDelta(t, want.bic, m.BIC(), 1e-6)
		require.InDelta(t, want.aic, m.AIC(), 1e-6)
		// Training may end a little earlier if rounding hides the rise of the likelihood.
		require.InDeltaSlice(t, want.weights, m.Weights, 2e-6)
		require.InDeltaSlice(t, want.meanOfComponent1, m.Means[1], 1e-5)
		got := make([]float64, 3)
		m.Probabilities(table.Row(77), got)
		require.InDeltaSlice(t, want.row77, got, 2e-5)
		m.Probabilities(table.Row(133), got)
		require.InDeltaSlice(t, want.row133, got, 2e-5)
	}
}

// TestLikelihoodRises requires that without regularisation no update lowers the likelihood,
// except by rounding.
func TestLikelihoodRises(t *testing.T) {
	for seed := range uint64(16) {
		r := sharding.NewRandom(seed, "likelihood", 0, 0)
		d, k := 1+r.IntN(4), 1+r.IntN(3)
		table := blobs(seed, 40+r.IntN(80), d, k)
		p := gmm.Params{K: k, Covariance: shapes[seed%4], Regularization: -1, Tol: -1, MaxIter: 12}
		if r.IntN(2) == 0 {
			for i := range table.N {
				table.Weight = append(table.Weight, 0.5+float64(i%5))
			}
			p.WeightCol = "weight"
		}
		m := train(t, table, p)
		for i := 1; i < len(m.Record); i++ {
			require.GreaterOrEqual(t, m.Record[i]-m.Record[i-1], -1e-12, "seed %d, update %d of %v", seed, i, m.Record)
		}
		sum := 0.0
		for _, w := range m.Weights {
			sum += w
		}
		require.InDelta(t, 1, sum, 1e-12)
		require.EqualValues(t, table.N, m.Rows)
	}
}

// TestOneComponent requires that a single component has the mean and the covariance of the
// rows. It compares the density with gonum's normal distribution.
func TestOneComponent(t *testing.T) {
	table := blobs(3, 200, 3, 2)
	for i := range table.N {
		table.Weight = append(table.Weight, float64(i%4))
	}
	m := train(t, table, gmm.Params{K: 1, WeightCol: "weight", Regularization: -1})
	mean, total := make([]float64, 3), 0.0
	for i := range table.N {
		for j, v := range table.Row(i) {
			mean[j] += table.Weight[i] * v
		}
		total += table.Weight[i]
	}
	cov := mat.NewSymDense(3, nil)
	for j := range mean {
		mean[j] /= total
	}
	for i := range table.N {
		for a := range 3 {
			for b := range a + 1 {
				cov.SetSym(a, b, cov.At(a, b)+table.Weight[i]*(table.Row(i)[a]-mean[a])*(table.Row(i)[b]-mean[b])/total)
			}
		}
	}
	require.InDeltaSlice(t, mean, m.Means[0], 1e-12)
	for a, row := range m.Matrix(0) {
		for b, v := range row {
			require.InDelta(t, cov.At(a, b), v, 1e-11)
		}
	}
	var chol mat.Cholesky
	require.True(t, chol.Factorize(cov))
	x := []float64{1, -2, 3}
	diff, solved := mat.NewVecDense(3, nil), mat.NewVecDense(3, nil)
	for j := range x {
		diff.SetVec(j, x[j]-mean[j])
	}
	require.NoError(t, chol.SolveVecTo(solved, diff))
	require.InDelta(t, -0.5*(3*math.Log(2*math.Pi)+chol.LogDet()+mat.Dot(diff, solved)), m.LogDensity(x), 1e-10)
	component, probability := m.Predict(x)
	require.Equal(t, 0, component)
	require.Equal(t, 1.0, probability)
}

// TestWeights requires that a row of weight n counts as n rows, and that a row of weight 0 has
// no effect.
func TestWeights(t *testing.T) {
	base := blobs(5, 60, 2, 2)
	weighted, repeated := base, trial.Table{D: 2}
	for i := range base.N {
		weighted.Weight = append(weighted.Weight, float64(i%3))
		for range i % 3 {
			repeated.X = append(repeated.X, base.Row(i)...)
			repeated.N++
		}
	}
	means := [][]float64{{0, 4}, {4, 0}}
	for _, shape := range shapes {
		p := gmm.Params{Means: means, Covariance: shape, MaxIter: 20, Tol: -1}
		plain := train(t, repeated, p)
		p.WeightCol = "weight"
		m := train(t, weighted, p)
		require.InDelta(t, plain.LogLikelihood, m.LogLikelihood, 1e-8)
		require.InDelta(t, plain.BIC(), m.BIC(), 1e-8)
		require.InDeltaSlice(t, plain.Means[0], m.Means[0], 1e-8)
	}
}

// TestFarFromTheOrigin requires that data far from the origin lose no precision, as moments are
// taken about the current means.
func TestFarFromTheOrigin(t *testing.T) {
	near := blobs(6, 150, 2, 2)
	far := near
	far.X = append([]float64(nil), near.X...)
	for i, v := range near.X {
		near.X[i] = math.Round(v*1024) / 1024 // rounded, so that adding 2^30 is exact
		far.X[i] = near.X[i] + 1<<30
	}
	for _, shape := range shapes {
		p := gmm.Params{Covariance: shape, MaxIter: 10, Tol: -1}
		p.Means = [][]float64{{0, 4}, {4, 0}}
		a := train(t, near, p)
		p.Means = [][]float64{{1 << 30, 4 + 1<<30}, {4 + 1<<30, 1 << 30}}
		b := train(t, far, p)
		require.InDelta(t, a.LogLikelihood/150, b.LogLikelihood/150, 1e-6)
		require.InDeltaSlice(t, a.Covariances[0], b.Covariances[0], 1e-5)
	}
}

func TestBeginnings(t *testing.T) {
	table := blobs(8, 300, 2, 3)
	fromKMeans := train(t, table, gmm.Params{K: 3, Seed: 1})
	require.True(t, fromKMeans.Converged)

	// An assignment by the components of the trained mixture must give the same mixture.
	for i := range table.N {
		c, _ := fromKMeans.Predict(table.Row(i))
		table.Label = append(table.Label, float64(c))
	}
	given := train(t, table, gmm.Params{K: 3, ComponentCol: "label"})
	require.InDelta(t, fromKMeans.LogLikelihood, given.LogLikelihood, 1e-3)

	// Several restarts must not give a lower likelihood than the first of them alone.
	again := train(t, table, gmm.Params{K: 3, Seed: 1, Restarts: 3})
	require.GreaterOrEqual(t, again.LogLikelihood, fromKMeans.LogLikelihood)

	// Training that starts at the optimum must stay there.
	stay := train(t, table, gmm.Params{Start: fromKMeans})
	require.InDelta(t, fromKMeans.LogLikelihood, stay.LogLikelihood, 1e-3)
	require.LessOrEqual(t, stay.Iterations, 2)
}

// TestComponentWithoutRows requires that a component that loses its rows keeps its mean, with
// weight 0.
func TestComponentWithoutRows(t *testing.T) {
	start := train(t, blobs(9, 100, 2, 2), gmm.Params{K: 2, Covariance: gmm.Diagonal})
	start.Means[1] = []float64{1e6, 1e6}
	m := train(t, blobs(9, 100, 2, 1), gmm.Params{Start: start, Covariance: gmm.Diagonal})
	require.Zero(t, m.Weights[1])
	require.Equal(t, 1.0, m.Weights[0])
	require.Equal(t, []float64{1e6, 1e6}, m.Means[1])
	component, _ := m.Predict([]float64{1e6, 1e6})
	require.Equal(t, 0, component)
}

// TestSingularCovariances trains on collinear and constant columns, whose covariances are
// singular. Regularisation, or the smallest sufficient addition, must make them invertible.
func TestSingularCovariances(t *testing.T) {
	table := blobs(10, 80, 2, 2)
	wide := trial.Table{N: 80, D: 4}
	for i := range table.N {
		x := table.Row(i)
		wide.X = append(wide.X, x[0], x[1], x[0]+x[1], 7)
	}
	for _, shape := range shapes {
		for _, reg := range []float64{0, -1} {
			m := train(t, wide, gmm.Params{K: 2, Covariance: shape, Regularization: reg})
			require.False(t, math.IsNaN(m.LogLikelihood), "%v", shape)
			_, probability := m.Predict(wide.Row(0))
			require.InDelta(t, 0.75, probability, 0.26)
		}
	}
	fewer := train(t, trial.TableOf(nil, []float64{1, 2, 3}, []float64{4, 5, 7}), gmm.Params{K: 1})
	require.Equal(t, []float64{2.5, 3.5, 5}, fewer.Means[0])
	one := train(t, trial.TableOf(nil, []float64{1, 2}), gmm.Params{K: 1})
	require.InDelta(t, 1e-6, one.Covariances[0][0], 1e-18)
	fails(t, trial.TableOf(nil, []float64{1, 2}), gmm.Params{K: 1, Regularization: -1}, "the same point")
	fails(t, trial.TableOf(nil, []float64{1, 2}), gmm.Params{K: 1, Regularization: -1, Covariance: gmm.Diagonal}, "the same point")
	fails(t, trial.TableOf(nil, []float64{1, 1e-170}, []float64{1, 2e-170}), gmm.Params{K: 1}, "component 1: the values are so small that their squares underflow: scale them up")
}

func TestSameBits(t *testing.T) {
	table := blobs(11, 120, 3, 3)
	for _, shape := range shapes {
		trial.SameBits(t, func(b *engine.Builder) {
			rows := table.Dataset(b)
			m := gmm.Train(rows, gmm.Params{K: 3, Covariance: shape, MaxIter: 3, Restarts: 2})
			engine.Collect(m, "model")
			engine.Collect(gmm.Predict(rows, m, gmm.PredictOptions{DensityCol: "density"}), "rows")
		}, "gmm", "gmm 2")
	}
	wild := trial.Wild(100, 3)
	for _, shape := range shapes {
		trial.SameBits(t, func(b *engine.Builder) {
			p := gmm.Params{Covariance: shape, WeightCol: "weight", ComponentCol: "label", K: 2, MaxIter: 3}
			engine.Collect(gmm.Train(wild.Dataset(b), p), "model")
		}, "gmm")
	}
}
