package evaluate_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

type ranked struct {
	Query  string
	Label  float64
	Score  float64
	Weight float64
}

var rankingCols = evaluate.RankingOptions{QueryCol: "query", LabelCol: "label", ScoreCol: "score", WeightCol: "weight"}

func ranking(o evaluate.RankingOptions) func(*engine.Dataset) *engine.Dataset {
	return func(d *engine.Dataset) *engine.Dataset { return evaluate.Ranking(d, o) }
}

// measureRanked calls MeasureRanking with the columns of rows.
func measureRanked(rows []ranked, o evaluate.RankingOptions) (*evaluate.RankingReport, error) {
	var query []string
	var label, score, weight []float64
	for _, r := range rows {
		query, label, score, weight = append(query, r.Query), append(label, r.Label), append(score, r.Score), append(weight, r.Weight)
	}
	return evaluate.MeasureRanking(query, label, score, weight, o)
}

var rankedRows = []ranked{
	{"a", 3, .9, 1}, {"a", 2, .8, 1}, {"a", 3, .8, 1}, {"a", 0, .4, 1}, {"a", 1, .8, 1}, {"a", 2, .1, 1},
	{"b", 0, .5, 2}, {"b", 1, .5, 2}, {"b", 0, .2, 2}, {"b", 2, .1, 2}, {"b", 0, .5, 2},
	{"c", 1, .1, .5}, {"c", 0, .2, .5}, {"c", 0, .3, .5},
}

// TestRankingEqualsScikitLearn compares NDCG with scikit-learn's ndcg_score for the gains
// 2^label-1. scikit-learn averages over ties too.
func TestRankingEqualsScikitLearn(t *testing.T) {
	for k, want := range map[int][]float64{3: {0.8629841898786564, 0.19562755714523997, 0.5}, 10: {0.9451279243474717, 0.5152587536898924, 0.5}} {
		o := rankingCols
		o.K = k
		mean := (want[0] + 2*want[1] + 0.5*want[2]) / 3.5
		r := measured[evaluate.RankingReport](t, rankedRows, ranking(o))
		requireClose(t, mean, r.NDCG, "ndcg")
		requireSame(t, must(measureRanked(rankedRows, o)), r)
	}
}

// TestRankingByHand compares the measures with values computed by hand for a list without ties.
// Of its 4 rows, those at ranks 1 and 3 are relevant; K is 2 and then 4.
func TestRankingByHand(t *testing.T) {
	rows := []ranked{{"q", 1, 4, 1}, {"q", 0, 3, 1}, {"q", 2, 2, 1}, {"q", 0, 1, 1}}
	r := must(measureRanked(rows, evaluate.RankingOptions{K: 2}))
	require.Equal(t, []float64{0.5, 1, 0.5, 0.5}, []float64{r.MAP, r.MRR, r.Precision, r.Recall})
	r = must(measureRanked(rows, evaluate.RankingOptions{K: 4}))
	require.InDeltaSlice(t, []float64{(1 + 2.0/3) / 2, 1, 0.5, 1}, []float64{r.MAP, r.MRR, r.Precision, r.Recall}, 1e-15)
	r = must(measureRanked(rows, evaluate.RankingOptions{K: 4, Relevant: 2}))
	requireClose(t, 1.0/3, r.MRR, "mrr")
	require.Equal(t, int64(4), r.K)
	require.Contains(t, r.String(), "ndcg")
}

// permutations calls f with every order of 0..n-1.
func permutations(order []int, n int, f func([]int)) {
	if len(order) == n {
		f(order)
		return
	}
	for i := range n {
		if !slices.Contains(order, i) {
			permutations(append(slices.Clone(order), i), n, f)
		}
	}
}

// TestRankingIsTheMeanOverTies requires that with ties each measure is its mean over all orders
// that the scores permit.
func TestRankingIsTheMeanOverTies(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 6).Draw(t, "n")
		k := rapid.IntRange(1, 7).Draw(t, "k")
		label, score := make([]float64, n), make([]float64, n)
		for i := range n {
			label[i] = float64(rapid.IntRange(0, 3).Draw(t, "label"))
			score[i] = float64(rapid.IntRange(0, 2).Draw(t, "score"))
		}
		var orders, ndcg, ap, rr, precision, recall float64
		sorted := slices.Clone(label)
		slices.Sort(sorted)
		slices.Reverse(sorted)
		var best, relevant float64
		for i, l := range sorted {
			if i < k {
				best += (math.Exp2(l) - 1) / math.Log2(float64(i+2))
			}
			if l >= 1 {
				relevant++
			}
		}
		permutations(nil, n, func(order []int) {
			for i := 1; i < n; i++ {
				if score[order[i]] > score[order[i-1]] {
					return
				}
			}
			orders++
			var dcg, hits, sum, first, within float64
			for i, row := range order {
				if label[row] >= 1 {
					hits++
					if first == 0 {
						first = 1 / float64(i+1)
					}
				}
				if i < k {
					dcg += (math.Exp2(label[row]) - 1) / math.Log2(float64(i+2))
					if label[row] >= 1 {
						sum += hits / float64(i+1)
						within++
					}
				}
			}
			ndcg += dcg / best
			ap += sum / min(relevant, float64(k))
			rr += first
			precision += within / float64(k)
			recall += within / relevant
		})
		r := must(evaluate.MeasureRanking(make([]int, n), label, score, nil, evaluate.RankingOptions{K: k}))
		for i, v := range [][2]float64{{ndcg, r.NDCG}, {ap, r.MAP}, {rr, r.MRR}, {precision, r.Precision}, {recall, r.Recall}} {
			if relevant == 0 {
				require.True(t, math.IsNaN(v[1]))
				require.Equal(t, int64(1), r.Irrelevant)
				continue
			}
			require.InDelta(t, v[0]/orders, v[1], 1e-12, i)
		}
	})
}

func TestRankingIsAFunctionOfTheRows(t *testing.T) {
	draws := sharding.NewRandom(4, "ranking", 0, 0)
	rows := make([]ranked, 500)
	weights := wildNumbers("queries", 40)
	for i := range rows {
		q := draws.IntN(40)
		rows[i] = ranked{string(rune('A' + q)), 5 * draws.Float64(), float64(draws.IntN(6)), math.Abs(weights[q])}
	}
	want := must(measureRanked(rows, rankingCols))
	slices.Reverse(rows)
	for _, shards := range []int{1, 8, 128} {
		requireSame(t, want, measured[evaluate.RankingReport](t, rows, ranking(rankingCols), engine.Shards(shards), engine.Parallelism(1)))
	}
	trial.SameBits(t, func(b *engine.Builder) {
		engine.Collect(evaluate.Ranking(operators.FromSlice(b, rows), rankingCols), "report")
	})
	require.Equal(t, int64(40), want.Queries)
	perfect := slices.Clone(rows)
	for i := range perfect {
		perfect[i].Score = 2 * perfect[i].Label
	}
	r := must(measureRanked(perfect, rankingCols))
	requireClose(t, 1, r.NDCG, "ndcg")
	requireClose(t, 1, r.MRR, "mrr")
}

func TestRankingOfLittleAndOfNothing(t *testing.T) {
	r := measured[evaluate.RankingReport](t, []ranked{}, ranking(rankingCols))
	requireSame(t, must(measureRanked(nil, rankingCols)), r)
	require.Len(t, r.Undefined, 3)
	require.True(t, math.IsNaN(r.NDCG) && math.IsNaN(r.Precision))
	r = measured[evaluate.RankingReport](t, []ranked{{"a", 0, 1, 1}, {"b", 1, 1, 1}}, ranking(rankingCols))
	require.Equal(t, []float64{1, 1, 1, 0.1, 1, 2}, []float64{r.NDCG, r.MAP, r.MRR, r.Precision, r.Recall, float64(r.Queries)})
	require.Equal(t, int64(1), r.Irrelevant)
}

func TestRankingRefusesWhatItCannotMeasure(t *testing.T) {
	for text, o := range map[string]evaluate.RankingOptions{
		"K is -1":           {K: -1},
		"Relevant is NaN":   {Relevant: math.NaN()},
		"QueryCol is empty": {QueryCol: "-"},
		"ScoreCol: ":        {ScoreCol: "scores"},
	} {
		if o.ScoreCol == "" {
			o.ScoreCol = "score"
		}
		o.LabelCol = "label"
		if o.QueryCol == "" {
			o.QueryCol = "query"
		} else {
			o.QueryCol = ""
		}
		requireFailure(t, rankedRows, ranking(o), text)
	}
	requireFailure(t, []ranked{{"a", -1, 1, 1}}, ranking(rankingCols), `row 0 of the shard: column "label" is -1: want a relevance of 0 to 500`)
	requireFailure(t, []ranked{{"a", 1, math.NaN(), 1}}, ranking(rankingCols), `column "score" is NaN`)
	requireFailure(t, []ranked{{"a", 1, 1, 1}, {"a", 1, 1, 2}}, ranking(rankingCols), `query "a" has rows of weights 1 and 2`)
	for _, err := range []error{
		second(evaluate.MeasureRanking([]int{1}, []float64{-1}, []float64{1}, nil, evaluate.RankingOptions{})),
		second(evaluate.MeasureRanking([]int{1}, []float64{1}, nil, nil, evaluate.RankingOptions{})),
		second(evaluate.MeasureRanking([]float64{math.NaN()}, []float64{1}, []float64{1}, nil, evaluate.RankingOptions{})),
		second(evaluate.MeasureRanking([]int{1, 1}, []float64{1, 1}, []float64{1, 1}, []float64{1, 2}, evaluate.RankingOptions{})),
		second(evaluate.MeasureRanking([]int{1}, []float64{1}, []float64{1}, nil, evaluate.RankingOptions{K: -1})),
	} {
		require.Error(t, err)
	}
}

// TestFlatQueries requires that a query whose labels are all 0 is left out or has the NDCG 1 or
// 0, as the option Flat says. The only relevant row of the other query is at rank 2, so its
// NDCG is 1/log2(3). scikit-learn's ndcg_score gives the same value, and 0 for the flat query.
// LightGBM and XGBoost give 1 for the flat query.
func TestFlatQueries(t *testing.T) {
	for flat, want := range map[evaluate.FlatQueries]float64{
		evaluate.FlatOut: 0.6309297535714574, evaluate.FlatOne: (0.6309297535714574 + 1) / 2, evaluate.FlatZero: 0.6309297535714574 / 2,
	} {
		r, err := evaluate.MeasureRanking([]string{"a", "a", "b", "b"}, []float64{1, 0, 0, 0}, []float64{1, 2, 3, 4}, nil, evaluate.RankingOptions{Flat: flat})
		require.NoError(t, err)
		require.InDelta(t, want, r.NDCG, 1e-15)
		require.EqualValues(t, 1, r.FlatQueries)
		require.Equal(t, flat.String(), r.FlatAs)
		require.Contains(t, r.String(), flat.String()+", in ndcg: queries whose labels are all 0")
		require.InDelta(t, 0.5, r.MRR, 1e-15)
	}
	_, err := evaluate.MeasureRanking([]int{1}, []float64{1}, []float64{1}, nil, evaluate.RankingOptions{Flat: 3})
	require.ErrorContains(t, err, "FlatQueries(3) is not one of the package's constants")
	require.Equal(t, "FlatQueries(-1)", evaluate.FlatQueries(-1).String())
}
