package gbdt

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// measure returns the value of the metric name over the rows of the shards.
func measure(t *testing.T, name string, p Params, shards ...*Rows) float64 {
	t.Helper()
	m, err := parseMetric(name, &p)
	require.NoError(t, err)
	if m.ordered != nil {
		var flat []float64
		for _, r := range shards {
			flat = appendPairs(r, flat)
		}
		pairs := pairsOf(flat)
		sortPairs(pairs)
		return m.ordered(pairs)
	}
	sums := make([]float64, 2)
	for _, r := range shards {
		m.sum(r, make([]float64, r.N), sums)
	}
	return m.value(sums)
}

// halves divides the rows r in two at index at.
func halves(r *Rows, at int) []*Rows {
	cut := func(v []float64, lo, hi int) []float64 {
		if v == nil {
			return nil
		}
		return v[lo:hi]
	}
	part := func(lo, hi int) *Rows {
		h := &Rows{N: hi - lo, Label: cut(r.Label, lo, hi), Weight: cut(r.Weight, lo, hi)}
		for _, m := range r.Margin {
			h.Margin = append(h.Margin, m[lo:hi])
		}
		return h
	}
	return []*Rows{part(0, at), part(at, r.N)}
}

// TestMetricsAreThoseOfEvaluate requires that metrics equal those of package evaluate, whose
// sums are exact.
func TestMetricsAreThoseOfEvaluate(t *testing.T) {
	const n = 300
	margin := random(1, n, -2, 2)
	for i := range margin {
		margin[i] = math.Round(margin[i]*20) / 20 // make ties
	}
	value := func(l Link) []float64 {
		v := make([]float64, n)
		l.values(margin, v)
		return v
	}
	for _, weight := range [][]float64{nil, random(2, n, 0, 3)} {
		truth := make([]float64, n)
		for i, v := range random(3, n, 0, 1) {
			if v < kernel.Sigmoid(margin[i]) {
				truth[i] = 1
			}
		}
		r := &Rows{N: n, Margin: [][]float64{margin}, Label: truth, Weight: weight}
		b, err := evaluate.MeasureBinary(truth, value(Sigmoid), weight, evaluate.BinaryOptions{Threshold: math.Nextafter(0.5, 1)})
		require.NoError(t, err)
		p := Params{Objective: Logistic}
		require.InEpsilon(t, b.AUC, measure(t, "auc", p, halves(r, 100)...), 1e-12)
		require.InEpsilon(t, b.PRAUC, measure(t, "aucpr", p, halves(r, 100)...), 1e-12)
		require.InEpsilon(t, b.LogLoss, measure(t, "logloss", p, halves(r, 100)...), 1e-12)
		require.InEpsilon(t, 1-b.Accuracy, measure(t, "error", p, halves(r, 100)...), 1e-12)

		number := random(4, n, 0.1, 5)
		r.Label = number
		for _, c := range []struct {
			name string
			p    Params
			o    evaluate.RegressionOptions
			of   func(r *evaluate.RegressionReport) float64
		}{
			{"rmse", Params{}, evaluate.RegressionOptions{}, func(r *evaluate.RegressionReport) float64 { return r.RMSE }},
			{"mae", Params{}, evaluate.RegressionOptions{}, func(r *evaluate.RegressionReport) float64 { return r.MAE }},
			{"quantile", Params{Objective: Quantile, QuantileAt: 0.7}, evaluate.RegressionOptions{Quantile: 0.7}, func(r *evaluate.RegressionReport) float64 { return r.Pinball }},
			{"rmse", Params{Objective: Gamma}, evaluate.RegressionOptions{}, func(r *evaluate.RegressionReport) float64 { return r.RMSE }},
			{"poisson_deviance", Params{Objective: Poisson}, evaluate.RegressionOptions{Deviance: evaluate.PoissonDeviance}, func(r *evaluate.RegressionReport) float64 { return r.Deviance }},
			{"gamma_deviance", Params{Objective: Gamma}, evaluate.RegressionOptions{Deviance: evaluate.GammaDeviance}, func(r *evaluate.RegressionReport) float64 { return r.Deviance }},
			{"tweedie_deviance", Params{Objective: Tweedie, TweediePower: 1.2}, evaluate.RegressionOptions{Deviance: evaluate.TweedieDeviance, Power: 1.2}, func(r *evaluate.RegressionReport) float64 { return r.Deviance }},
		} {
			p := c.p.withDefaults(0)
			want, err := evaluate.MeasureRegression(number, value(linkOf(&p)), weight, c.o)
			require.NoError(t, err)
			require.InEpsilon(t, c.of(want), measure(t, c.name, p, halves(r, 10)...), 1e-12, c.name)
		}
	}
}

func TestClassMetrics(t *testing.T) {
	const n, k = 200, 4
	r := &Rows{N: n, Label: make([]float64, n), Weight: random(5, n, 0, 2)}
	for c := range k {
		r.Margin = append(r.Margin, random(uint64(6+c), n, -3, 3))
	}
	probability, truth, classes := make([][]float64, n), make([]int, n), []string{"0", "1", "2", "3"}
	for i := range n {
		truth[i] = i * i % k
		r.Label[i] = float64(truth[i])
		var sum float64
		for c := range k {
			probability[i] = append(probability[i], math.Exp(r.Margin[c][i]))
			sum += probability[i][c]
		}
		for c := range k {
			probability[i][c] /= sum
		}
	}
	want, err := evaluate.MeasureMulticlass(truth, nil, probability, r.Weight, evaluate.MulticlassOptions{Classes: classes})
	require.NoError(t, err)
	p := Params{Objective: Softmax}
	require.InEpsilon(t, want.LogLoss, measure(t, "mlogloss", p, halves(r, 77)...), 1e-12)
	require.InEpsilon(t, 1-want.Accuracy, measure(t, "merror", p, halves(r, 77)...), 1e-12)
}

func TestRankMetrics(t *testing.T) {
	const n = 240
	score, label := random(10, n, 0, 5), random(11, n, 0, 5)
	r := &Rows{N: n, Margin: [][]float64{score}, Label: label, Weight: make([]float64, n)}
	query := make([]int, n)
	for i := range n {
		score[i], label[i] = math.Round(score[i]*2)/2, math.Floor(label[i])
		query[i] = i / 12
		if i >= 204 {
			label[i] = 0
		}
		r.Weight[i] = 1 + float64(query[i]%3)
		if i%12 == 0 {
			r.Groups = append(r.Groups, int32(i))
		}
	}
	r.Groups = append(r.Groups, n)
	for _, places := range []int{1, 3, 10, 50} {
		want, err := evaluate.MeasureRanking(query, label, score, r.Weight, evaluate.RankingOptions{K: places})
		require.NoError(t, err)
		p := Params{Objective: LambdaMART}
		require.InEpsilon(t, want.NDCG, measure(t, fmt.Sprintf("ndcg@%d", places), p, r), 1e-12)
		require.InEpsilon(t, want.MAP, measure(t, fmt.Sprintf("map@%d", places), p, r), 1e-12)
	}
}

func TestMetricNames(t *testing.T) {
	for o := Squared; o < Custom; o++ {
		p := Params{Objective: o, GroupCol: "query"}
		for _, name := range defaultMetrics(&p) {
			_, err := parseMetric(name, &p)
			require.NoError(t, err, o)
		}
		for _, name := range metricsFor(&p) {
			require.Contains(t, allMetrics, name)
		}
	}
	for name, problem := range map[string]string{
		"rmsee": "or is none: want rmse, mae", "auc": "does not go with the objective squared", "rmse@3": "want ndcg or map", "ndcg@0": "places", "ndcg@x": "places",
	} {
		_, err := parseMetric(name, &Params{})
		require.ErrorContains(t, err, problem)
	}
	r := &Rows{N: 2, Margin: [][]float64{{1, 2}}, Label: []float64{1, 1}}
	require.True(t, math.IsNaN(measure(t, "auc", Params{Objective: Logistic}, r)))
	r.Label = []float64{0, 0}
	require.True(t, math.IsNaN(measure(t, "aucpr", Params{Objective: Logistic}, r)))
	less, more := metric{}, metric{more: true}
	require.True(t, less.better(1, 2, 0.5) && !less.better(1, 2, 1) && more.better(2, 1, 0) && !more.better(1, 1, 0))
	require.True(t, less.better(1, math.NaN(), 0) && !less.better(math.NaN(), 1, 0))
}
