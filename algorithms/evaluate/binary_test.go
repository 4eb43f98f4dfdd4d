package evaluate_test

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

type scored struct {
	Label  int64
	Score  float64
	Weight float64
}

var (
	binaryTruth  = []int64{0, 1, 1, 0, 1, 0, 1, 1, 0, 0, 1, 0}
	binaryScore  = []float64{0.1, 0.4, 0.35, 0.35, 0.8, 0.6, 0.35, 0.9, 0.2, 0.4, 0.4, 0.05}
	binaryWeight = []float64{1, 2, 0.5, 1.5, 1, 1, 3, 0.25, 2, 1, 0.75, 1}
	binaryCols   = evaluate.BinaryOptions{LabelCol: "label", ScoreCol: "score", WeightCol: "weight"}
)

func scoredRows(truth []int64, score, weight []float64) []scored {
	rows := make([]scored, len(truth))
	for i := range rows {
		rows[i] = scored{truth[i], score[i], 1}
		if weight != nil {
			rows[i].Weight = weight[i]
		}
	}
	return rows
}

func binary(o evaluate.BinaryOptions) func(*engine.Dataset) *engine.Dataset {
	return func(d *engine.Dataset) *engine.Dataset { return evaluate.Binary(d, o) }
}

// TestBinaryEqualsScikitLearn compares reports with scikit-learn's roc_auc_score,
// average_precision_score, log_loss, brier_score_loss and roc_curve, and with its metrics of
// predicted labels, all with sample_weight.
func TestBinaryEqualsScikitLearn(t *testing.T) {
	o := binaryCols
	o.Threshold = 0.39 // in scikit-learn, scores of 0.4 or more were predicted positive; no score lies between 0.39 and 0.4
	for _, c := range []struct {
		weight                                                                []float64
		auc, ap, loss, brier, ks, tn, fp, fn, tp, acc, precision, recall, mcc float64
	}{
		{nil, 0.7777777777777778, 0.7777777777777778, 0.541535534400824, 0.1925, 0.5, 4, 2, 2, 4, 0.6666666666666666, 0.6666666666666666, 0.6666666666666666, 0.3333333333333333},
		{binaryWeight, 0.7555555555555555, 0.7292929292929293, 0.6079928180720393, 0.2205, 0.5333333333333333, 5.5, 2, 3.5, 4, 0.6333333333333333, 0.6666666666666666, 0.5333333333333333, 0.2721655269759087},
	} {
		r := measured[evaluate.BinaryReport](t, scoredRows(binaryTruth, binaryScore, c.weight), binary(o))
		local, err := evaluate.MeasureBinary(binaryTruth, binaryScore, c.weight, o)
		require.NoError(t, err)
		requireSame(t, r, local)
		for _, v := range []struct {
			name      string
			want, got float64
		}{
			{"auc", c.auc, r.AUC}, {"ap", c.ap, r.PRAUC}, {"loss", c.loss, r.LogLoss}, {"brier", c.brier, r.Brier}, {"ks", c.ks, r.KS}, {"at", 0.35, r.KSScore},
			{"tn", c.tn, r.TrueNegative}, {"fp", c.fp, r.FalsePositive}, {"fn", c.fn, r.FalseNegative}, {"tp", c.tp, r.TruePositive},
			{"accuracy", c.acc, r.Accuracy}, {"precision", c.precision, r.Precision}, {"recall", c.recall, r.Recall}, {"mcc", c.mcc, r.MCC},
			{"f1", 2 * c.precision * c.recall / (c.precision + c.recall), r.F1}, {"specificity", c.tn / (c.tn + c.fp), r.Specificity},
		} {
			requireClose(t, v.want, v.got, v.name)
		}
		require.Empty(t, r.Undefined)
	}
}

// TestBinaryCurveHasTheCorners requires that, with few rows, Curve has a point for every corner
// of the exact curves.
func TestBinaryCurveHasTheCorners(t *testing.T) {
	r, err := evaluate.MeasureBinary(binaryTruth, binaryScore, binaryWeight, evaluate.BinaryOptions{})
	require.NoError(t, err)
	fpr := []float64{0, 0, 0, 0.13333333333333333, 0.26666666666666666, 0.4666666666666667, 0.7333333333333333, 0.8666666666666667, 1}
	tpr := []float64{0, 0.03333333333333333, 0.16666666666666666, 0.16666666666666666, 0.5333333333333333, 1, 1, 1, 1}
	score := []float64{math.Inf(1), 0.9, 0.8, 0.6, 0.4, 0.35, 0.2, 0.1, 0.05}
	require.Len(t, r.Curve, len(fpr))
	for i, p := range r.Curve {
		requireClose(t, fpr[i], p.FPR, "fpr")
		requireClose(t, tpr[i], p.TPR, "tpr")
		require.Equal(t, score[i], p.Score)
		requireClose(t, (7.5*p.TPR+7.5*p.FPR)/15, p.Share, "share")
		if i > 0 {
			requireClose(t, p.TPR/(p.TPR+p.FPR), p.Precision, "precision")
		}
		requireClose(t, p.Precision/0.5, p.Lift, "lift")
	}
}

func TestBinaryCurveIsBoundedAndExact(t *testing.T) {
	draws := sharding.NewRandom(1, "curve", 0, 0)
	truth, score := make([]bool, 5000), make([]float64, 5000)
	for i := range truth {
		score[i] = draws.Float64()
		truth[i] = draws.Float64() < score[i]
	}
	o := evaluate.BinaryOptions{CurvePoints: 20}
	r, err := evaluate.MeasureBinary(truth, score, nil, o)
	require.NoError(t, err)
	require.Greater(t, len(r.Curve), 10)
	require.LessOrEqual(t, len(r.Curve), 21)
	last := r.Curve[len(r.Curve)-1]
	require.Equal(t, []float64{1, 1, 1, 1}, []float64{last.Share, last.TPR, last.FPR, last.Lift})
	for _, p := range r.Curve {
		var tp, fp float64
		for i, s := range score {
			if s >= p.Score && truth[i] {
				tp++
			} else if s >= p.Score {
				fp++
			}
		}
		require.Equal(t, []float64{tp / r.Positive, fp / r.Negative, (tp + fp) / 5000}, []float64{p.TPR, p.FPR, p.Share})
	}
}

// TestBinaryEqualsItsDefinition compares reports with a reference that computes the AUC from
// its definition, pair by pair, and all other measures by loops over the rows.
func TestBinaryEqualsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 30).Draw(t, "n")
		truth, score, weight := make([]bool, n), make([]float64, n), make([]float64, n)
		for i := range n {
			truth[i] = rapid.Bool().Draw(t, "truth")
			score[i] = float64(rapid.IntRange(0, 8).Draw(t, "score")) / 8
			weight[i] = float64(rapid.IntRange(0, 5).Draw(t, "weight")) / 4
		}
		r, err := evaluate.MeasureBinary(truth, score, weight, evaluate.BinaryOptions{})
		require.NoError(t, err)
		var pairs, all, p, steps, brier, ks float64
		rates := func(at float64) (tp, fp float64) {
			for j, s := range score {
				if s >= at && truth[j] {
					tp += weight[j]
				} else if s >= at {
					fp += weight[j]
				}
			}
			return tp, fp
		}
		p, all = rates(0)
		for i := range n {
			for j := range n {
				if truth[i] && !truth[j] {
					if score[i] > score[j] {
						pairs += weight[i] * weight[j]
					} else if score[i] == score[j] {
						pairs += weight[i] * weight[j] / 2
					}
				}
			}
			tp, fp := rates(score[i])
			if truth[i] && tp > 0 {
				steps += weight[i] * tp / (tp + fp)
			}
			ks = max(ks, math.Abs(tp/p-fp/all))
			target := 0.0
			if truth[i] {
				target = 1
			}
			brier += weight[i] * (score[i] - target) * (score[i] - target)
		}
		if p > 0 && all > 0 {
			requireClose(t, pairs/(p*all), r.AUC, "auc")
			requireClose(t, steps/p, r.PRAUC, "ap")
			requireClose(t, ks, r.KS, "ks")
		} else {
			require.True(t, math.IsNaN(r.AUC) && math.IsNaN(r.KS))
			require.NotEmpty(t, r.Undefined)
		}
		requireClose(t, brier/(p+all), r.Brier, "brier")
	})
}

// TestBinaryIsAFunctionOfTheRows requires that a report has the same bits for any order of the
// rows, for any number of shards, and for slices.
func TestBinaryIsAFunctionOfTheRows(t *testing.T) {
	n := 700
	draws := sharding.NewRandom(2, "binary", 0, 0)
	truth, score, weight := make([]int64, n), make([]float64, n), wildNumbers("weights", n)
	for i := range n {
		truth[i] = int64(draws.IntN(2))
		score[i] = float64(draws.IntN(90)) / 90
		weight[i] = math.Abs(weight[i])
	}
	rows := scoredRows(truth, score, weight)
	want, err := evaluate.MeasureBinary(truth, score, weight, binaryCols)
	require.NoError(t, err)
	slices.Reverse(rows)
	for _, shards := range []int{1, 8, 128} {
		requireSame(t, want, measured[evaluate.BinaryReport](t, rows, binary(binaryCols), engine.Shards(shards), engine.Parallelism(min(shards, 3))))
	}
	// These margins have widely different magnitudes, and most of them are distinct.
	margins := wildNumbers("margins", n)
	o := binaryCols
	o.Margins = true
	want, err = evaluate.MeasureBinary(truth, margins, weight, o)
	require.NoError(t, err)
	requireSame(t, want, measured[evaluate.BinaryReport](t, scoredRows(truth, margins, weight), binary(o)))
}

// TestKSNamesTheLargestScore requires that KSScore is the largest of several scores, in several
// shards, that all have the largest difference of the rates.
func TestKSNamesTheLargestScore(t *testing.T) {
	truth, score := []int64{1, 0, 1, 0, 1, 0, 1, 0}, []float64{8, 7, 6, 5, 4, 3, 2, 1}
	o := binaryCols
	o.Margins = true
	want := must(evaluate.MeasureBinary(truth, score, nil, o))
	require.Equal(t, []float64{0.25, 8}, []float64{want.KS, want.KSScore})
	requireSame(t, want, measured[evaluate.BinaryReport](t, scoredRows(truth, score, nil), binary(o), engine.Parallelism(8)))
}

func TestBinarySameBits(t *testing.T) {
	table := trial.Wild(150, 1)
	o := evaluate.BinaryOptions{LabelCol: "label", ScoreCol: "offset", WeightCol: "weight", Margins: true}
	table.Offset = table.X
	trial.SameBits(t, func(b *engine.Builder) {
		report := evaluate.Binary(table.Dataset(b), o)
		engine.Collect(report, "report")
		engine.Collect(evaluate.Curve(report), "curve")
	})
}

func TestBinaryOfOneClassAndOfNothing(t *testing.T) {
	score := []float64{0.25, 0.6}
	for _, c := range []struct {
		truth     []int64
		score     []float64
		undefined []string
	}{
		{[]int64{1, 1}, score, []string{"auc: every row is positive", "ks: every row is positive", "specificity: no row is negative"}},
		{[]int64{0, 0}, score, []string{"auc: every row is negative", "ks: every row is negative", "pr_auc: no row is positive", "recall: no row is positive"}},
		{[]int64{1}, []float64{0.1}, []string{"auc: every row is positive", "ks: every row is positive", "precision: no row is predicted to be positive", "specificity: no row is negative"}},
		{nil, nil, []string{"all: there are no rows of positive weight"}},
	} {
		o := binaryCols
		o.WeightCol = ""
		r := measured[evaluate.BinaryReport](t, scoredRows(c.truth, c.score, nil), binary(o))
		local, err := evaluate.MeasureBinary(c.truth, c.score, nil, o)
		require.NoError(t, err)
		requireSame(t, local, r)
		require.Equal(t, c.undefined, r.Undefined)
		require.True(t, math.IsNaN(r.AUC))
		require.Contains(t, r.String(), c.undefined[0])
	}
	r, err := evaluate.MeasureBinary([]bool{true, false}, score, []float64{0, 0}, evaluate.BinaryOptions{})
	require.NoError(t, err)
	require.Equal(t, []string{"all: there are no rows of positive weight"}, r.Undefined)
	require.True(t, math.IsNaN(r.MCC) && math.IsNaN(r.F1) && math.IsNaN(r.LogLoss))
}

func TestBinaryLabelsOfAnyType(t *testing.T) {
	score := []float64{0.9, 0.8, 0.3}
	for _, r := range []*evaluate.BinaryReport{
		must(evaluate.MeasureBinary([]bool{true, false, false}, score, nil, evaluate.BinaryOptions{})),
		must(evaluate.MeasureBinary([]float64{1, -1, -1}, score, nil, evaluate.BinaryOptions{})),
		must(evaluate.MeasureBinary([]string{"yes", "no", "maybe"}, score, nil, evaluate.BinaryOptions{Positive: "yes"})),
		must(evaluate.MeasureBinary([]uint8{2, 1, 3}, score, nil, evaluate.BinaryOptions{Positive: "2"})),
	} {
		require.Equal(t, 1.0, r.AUC)
		require.Equal(t, 1.0, r.Positive)
	}
	type word struct {
		Label string
		Score float64
	}
	o := evaluate.BinaryOptions{LabelCol: "label", ScoreCol: "score"}
	words := []word{{"yes", 0.9}, {"no", 0.1}}
	requireFailure(t, words, binary(o), `column "label" is utf8: set Positive to the label that is the positive one`)
	o.Positive = "yes"
	require.Equal(t, 1.0, measured[evaluate.BinaryReport](t, words, binary(o)).AUC)
}

func TestBinaryScoresInVectors(t *testing.T) {
	type row struct {
		Label  bool
		P      []float64
		Weight float64
	}
	rows := make([]row, len(binaryTruth))
	for i, s := range binaryScore {
		rows[i] = row{binaryTruth[i] == 1, []float64{1 - s, s}, binaryWeight[i]}
	}
	want := must(evaluate.MeasureBinary(binaryTruth, binaryScore, binaryWeight, evaluate.BinaryOptions{}))
	o := evaluate.BinaryOptions{LabelCol: "label", ScoreCol: "p", WeightCol: "weight"}
	requireSame(t, want, measured[evaluate.BinaryReport](t, rows, binary(o)))
	o.Component = 2
	requireSame(t, want, measured[evaluate.BinaryReport](t, rows, binary(o)))
	o.Component, o.Positive = 1, "false"
	requireClose(t, want.AUC, measured[evaluate.BinaryReport](t, rows, binary(o)).AUC, "of the other class")
	o.Component = 3
	requireFailure(t, rows, binary(o), `column "p" has 2 components, Component is 3`)
	o.Component = -1
	requireFailure(t, rows, binary(o), "Component is -1")
	o.Component = 0
	rows[2].P = []float64{}
	requireFailure(t, rows, binary(o), `column "p" has 0 components`)
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestBinaryRefusesWhatItCannotMeasure(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	rows := func(r ...scored) []scored { return r }
	requireFailure(t, rows(scored{1, nan, 1}), binary(binaryCols), `row 0 of the shard: column "score" is NaN; set Skip`)
	requireFailure(t, rows(scored{1, inf, 1}), binary(binaryCols), `column "score" is +Inf`)
	requireFailure(t, rows(scored{1, 1, -2}), binary(binaryCols), `column "weight": the weight is -2; a weight is 0 or more`)
	requireFailure(t, rows(scored{1, 1, nan}), binary(binaryCols), `column "weight": the weight is NaN`)
	requireFailure(t, rows(scored{7, 1, 1}), binary(binaryCols), `column "label": the label is 7: want 1, and 0 or -1; or set Positive`)
	requireFailure(t, rows(scored{1, 1, 1}), binary(evaluate.BinaryOptions{LabelCol: "label", ScoreCol: "scores"}), `ScoreCol: `, `"score"`)
	requireFailure(t, rows(scored{1, 1, 1}), binary(evaluate.BinaryOptions{ScoreCol: "score"}), `LabelCol is empty`)
	requireFailure(t, rows(scored{1, 1, 1}), binary(evaluate.BinaryOptions{LabelCol: "label", ScoreCol: "score", CurvePoints: -1}), `CurvePoints is -1`)
	requireFailure(t, rows(scored{1, 1, 1}), binary(evaluate.BinaryOptions{LabelCol: "label", ScoreCol: "score", Threshold: nan}), `Threshold is NaN`)
	for _, err := range []error{
		second(evaluate.MeasureBinary([]bool{true}, nil, nil, evaluate.BinaryOptions{})),
		second(evaluate.MeasureBinary([]bool{true}, []float64{nan}, nil, evaluate.BinaryOptions{})),
		second(evaluate.MeasureBinary([]bool{true}, []float64{1}, []float64{-1}, evaluate.BinaryOptions{})),
		second(evaluate.MeasureBinary([]bool{true}, []float64{1}, []float64{1, 2}, evaluate.BinaryOptions{})),
		second(evaluate.MeasureBinary([]float64{nan}, []float64{1}, nil, evaluate.BinaryOptions{Positive: "x"})),
		second(evaluate.MeasureBinary([]string{"x"}, []float64{1}, nil, evaluate.BinaryOptions{})),
		second(evaluate.MeasureBinary([]bool{true}, []float64{1}, nil, evaluate.BinaryOptions{CurvePoints: 1})),
	} {
		require.Error(t, err)
	}
}

func second[T any](_ T, err error) error { return err }

func TestBinarySkipsRowsThatLackSomething(t *testing.T) {
	type row struct {
		Label  *int64
		Score  *float64
		Weight float64
	}
	one, zero := int64(1), int64(0)
	s := func(v float64) *float64 { return &v }
	rows := []row{{&one, s(0.9), 1}, {nil, s(0.5), 1}, {&zero, nil, 1}, {&zero, s(math.NaN()), 1}, {&zero, s(0.2), 1}, {&one, s(0.1), math.Inf(1)}}
	requireFailure(t, rows[:2], binary(binaryCols), `column "label" is null; set Skip to leave such rows out`)
	o := binaryCols
	o.Skip = true
	result := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(evaluate.Binary(operators.FromSlice(b, rows), o), "report")
	})
	r, err := evaluate.ReportOf[evaluate.BinaryReport](result, "report")
	require.NoError(t, err)
	require.Equal(t, []float64{1, 2}, []float64{r.AUC, r.Weight})
	require.Contains(t, result.Summary(), "rows skipped")
	rows[0].Weight = -1
	requireFailure(t, rows, binary(o), "a weight is 0 or more")
	rows[0].Weight = 1
	// One batch has several rows without a value.
	rows = append(append(rows, rows...), rows...)
	got := measured[evaluate.BinaryReport](t, rows, binary(o), engine.Shards(1), engine.Parallelism(1))
	require.Equal(t, []float64{1, 6, 3}, []float64{got.AUC, got.Weight, got.Positive})
}

// TestRowsLeftOutAreCountedOnce requires that a skipped row that is read several times is
// counted once, under the first column whose value is missing. An error about a row must give
// its number among all rows of the shard.
func TestRowsLeftOutAreCountedOnce(t *testing.T) {
	type row struct {
		Label, Prediction *float64
		X                 []float64
	}
	v := func(v float64) *float64 { return &v }
	x := []float64{1, 2}
	rows := []row{{v(1), v(0.5), x}, {nil, v(0.5), x}, {v(2), nil, x}, {nil, nil, x}, {v(4), v(1), x}}
	counted := func(of func(d *engine.Dataset) *engine.Dataset, want ...string) {
		t.Helper()
		text := trial.Run(t, func(b *engine.Builder) { engine.Collect(of(operators.FromSlice(b, rows)), "report") }, engine.Shards(1), engine.Parallelism(1)).Summary()
		require.Equal(t, 1, strings.Count(text, "rows skipped"), text)
		for _, w := range want {
			require.Equal(t, 1, strings.Count(text, w), text)
		}
	}
	counted(func(d *engine.Dataset) *engine.Dataset {
		return evaluate.Regression(d, evaluate.RegressionOptions{LabelCol: "label", PredictionCol: "prediction", Skip: true, Deviance: evaluate.PoissonDeviance})
	}, "rows skipped: 3", "rows without LabelCol: 2", "rows without PredictionCol: 1")
	counted(func(d *engine.Dataset) *engine.Dataset {
		return evaluate.Clustering(d, evaluate.ClusteringOptions{ClusterCol: "label", VectorCol: "x", Exact: true, Skip: true})
	}, "rows skipped: 2", "rows without ClusterCol: 2")
	_, err := trial.Try(t, func(b *engine.Builder) {
		binary := evaluate.Binary(operators.FromSlice(b, rows), evaluate.BinaryOptions{LabelCol: "label", ScoreCol: "prediction", Skip: true})
		engine.Collect(binary, "report")
	}, engine.Shards(1), engine.Parallelism(1))
	require.ErrorContains(t, err, `row 4 of the shard: column "label"`)
}

func TestScoresOutsideOfProbabilities(t *testing.T) {
	r := must(evaluate.MeasureBinary([]bool{true, false}, []float64{2, -3}, nil, evaluate.BinaryOptions{}))
	require.Equal(t, []string{"log_loss: a score is outside 0 to 1", "brier: a score is outside 0 to 1"}, r.Undefined)
	require.Equal(t, 1.0, r.AUC)
	r = must(evaluate.MeasureBinary([]bool{true, false}, []float64{0.25, -3}, nil, evaluate.BinaryOptions{Margins: true}))
	require.Equal(t, []float64{0, 1, 1}, []float64{r.Threshold, r.TruePositive, r.Accuracy})
	// Probabilities of exactly 0 and 1 are clipped.
	r = must(evaluate.MeasureBinary([]bool{true, false}, []float64{0, 1}, nil, evaluate.BinaryOptions{}))
	requireClose(t, 52*math.Ln2, r.LogLoss, "log-loss")
}

func TestReportsSurviveJSON(t *testing.T) {
	r := must(evaluate.MeasureBinary([]int{1, 1}, []float64{0.1, 3}, nil, evaluate.BinaryOptions{}))
	text, err := json.Marshal(r)
	require.NoError(t, err)
	require.Contains(t, string(text), `"auc":null`)
	require.Contains(t, string(text), `"score":"+Inf"`)
	var back evaluate.BinaryReport
	require.NoError(t, json.Unmarshal(text, &back))
	requireSame(t, r, &back)
	require.True(t, math.IsNaN(back.AUC))
	for _, bad := range []string{
		strings.Replace(string(text), `"auc"`, `"area"`, 1), strings.Replace(string(text), `"auc":null`, `"auc":"x"`, 1),
		"{", "null", `[1]`, strings.TrimSuffix(string(text), "}") + `,"more":1}`, strings.Replace(string(text), `"curve":[`, `"curve":[7,`, 1),
	} {
		require.Error(t, json.Unmarshal([]byte(bad), new(evaluate.BinaryReport)), bad)
	}
	// The numbers of the report are also columns of its dataset.
	result := trial.Run(t, func(b *engine.Builder) {
		rows := operators.FromSlice(b, scoredRows(binaryTruth, binaryScore, nil))
		engine.Collect(evaluate.Binary(rows, binaryCols), "report")
		engine.Collect(rows, "rows")
	})
	type numbers struct {
		AUC      float64 `column:"auc"`
		Positive float64 `column:"positive"`
	}
	values, err := engine.Rows[numbers](result, "report")
	require.NoError(t, err)
	require.Equal(t, []numbers{{0.7777777777777778, 6}}, values)
	_, err = evaluate.ReportOf[evaluate.MulticlassReport](result, "report")
	require.ErrorContains(t, err, "not the JSON of a MulticlassReport")
	_, err = evaluate.ReportOf[evaluate.BinaryReport](result, "rows")
	require.Error(t, err)
	_, err = evaluate.ReportOf[evaluate.BinaryReport](result, "nothing")
	require.Error(t, err)
}

func TestCurveRefusesOtherDatasets(t *testing.T) {
	requireFailure(t, scoredRows(binaryTruth, binaryScore, nil), evaluate.Curve, "the dataset is not a report of a BinaryReport")
}

// TestScoresAtTheThreshold requires that a row whose score equals the threshold is predicted
// negative, as by the classifiers of this module.
func TestScoresAtTheThreshold(t *testing.T) {
	o := binaryCols
	o.Threshold = 0.4
	var tp, fp float64
	for i, score := range binaryScore {
		switch {
		case score <= 0.4:
		case binaryTruth[i] == 1:
			tp++
		default:
			fp++
		}
	}
	r := measured[evaluate.BinaryReport](t, scoredRows(binaryTruth, binaryScore, nil), binary(o))
	require.Equal(t, []float64{tp, fp}, []float64{r.TruePositive, r.FalsePositive})
}
