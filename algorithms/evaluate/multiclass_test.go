package evaluate_test

import (
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

type classified struct {
	Truth, Predicted string
	A, B, C          float64
	P                []float64 `column:"p,dim=3"`
	Weight           float64
}

var (
	multiTruth     = strings.Split("abcabcabbcda", "")
	multiPredicted = strings.Split("abbaccbbacaa", "")
	multiP         = [][]float64{
		{.7, .2, .1}, {.2, .5, .3}, {.1, .5, .4}, {.6, .3, .1}, {.2, .3, .5}, {.1, .1, .8},
		{.3, .4, .3}, {.25, .5, .25}, {.5, .3, .2}, {.2, .2, .6}, {.4, .4, .2}, {.9, .05, .05},
	}
	abc = []string{"a", "b", "c"}
)

func classifiedRows(truth, predicted []string, weight []float64) []classified {
	rows := make([]classified, len(truth))
	for i := range rows {
		p := multiP[i%len(multiP)]
		rows[i] = classified{truth[i], predicted[i], p[0], p[1], p[2], p, weight[i]}
	}
	return rows
}

func multiclass(o evaluate.MulticlassOptions) func(*engine.Dataset) *engine.Dataset {
	return func(d *engine.Dataset) *engine.Dataset { return evaluate.Multiclass(d, o) }
}

// TestMulticlassEqualsScikitLearn compares reports with scikit-learn's accuracy_score,
// cohen_kappa_score, confusion_matrix and precision_recall_fscore_support, all with
// sample_weight, and the last with zero_division=0.
func TestMulticlassEqualsScikitLearn(t *testing.T) {
	ones := slices.Repeat([]float64{1}, 12)
	for _, c := range []struct {
		weight                 []float64
		acc, kappa             float64
		macro, micro, weighted [3]float64
		confusion              [][]float64
	}{
		{ones, 0.5833333333333334, 0.3939393939393939,
			[3]float64{0.44166666666666665, 0.47916666666666663, 0.45833333333333326},
			[3]float64{0.5833333333333334, 0.5833333333333334, 0.5833333333333334},
			[3]float64{0.5333333333333333, 0.5833333333333334, 0.5555555555555555},
			[][]float64{{3, 1, 0, 0}, {1, 2, 1, 0}, {0, 1, 2, 0}, {1, 0, 0, 0}}},
		{binaryWeight, 0.5166666666666667, 0.2586280357903705,
			[3]float64{0.4044927536231884, 0.44175824175824174, 0.42134581105169344},
			[3]float64{0.5166666666666667, 0.5166666666666667, 0.5166666666666667},
			[3]float64{0.4907342995169082, 0.5166666666666667, 0.5023024361259656},
			[][]float64{{3.5, 3, 0, 0}, {2, 2.25, 1, 0}, {0, 0.5, 2, 0}, {0.75, 0, 0, 0}}},
	} {
		o := evaluate.MulticlassOptions{LabelCol: "truth", PredictionCol: "predicted", WeightCol: "weight"}
		r := measured[evaluate.MulticlassReport](t, classifiedRows(multiTruth, multiPredicted, c.weight), multiclass(o))
		local, err := evaluate.MeasureMulticlass(multiTruth, multiPredicted, nil, c.weight, o)
		require.NoError(t, err)
		requireSame(t, local, r)
		requireClose(t, c.acc, r.Accuracy, "accuracy")
		requireClose(t, c.kappa, r.Kappa, "kappa")
		for i, got := range [][3]float64{
			{r.PrecisionMacro, r.RecallMacro, r.F1Macro}, {r.PrecisionMicro, r.RecallMicro, r.F1Micro}, {r.PrecisionWeighted, r.RecallWeighted, r.F1Weighted},
		} {
			require.InDeltaSlice(t, [][3]float64{c.macro, c.micro, c.weighted}[i][:], got[:], 1e-12)
		}
		require.Equal(t, []string{"a", "b", "c", "d"}, r.Classes)
		require.Equal(t, c.confusion, r.Confusion)
		require.True(t, math.IsNaN(r.LogLoss) && math.IsNaN(r.TopKAccuracy))
		require.Empty(t, r.Undefined)
		require.Contains(t, r.String(), "truth \\ predicted")
	}
}

// TestMulticlassProbabilities compares LogLoss with scikit-learn's log_loss, and TopKAccuracy
// with a top-2 accuracy computed by hand.
func TestMulticlassProbabilities(t *testing.T) {
	truth := slices.Clone(multiTruth)
	truth[10] = "a"
	for _, c := range []struct {
		weight []float64
		loss   float64
	}{{slices.Repeat([]float64{1}, 12), 0.7114687080240633}, {binaryWeight, 0.7927349644922622}} {
		rows := classifiedRows(truth, multiPredicted, c.weight)
		o := evaluate.MulticlassOptions{LabelCol: "truth", ProbabilityCols: abc, Classes: abc, TopK: 1, WeightCol: "weight"}
		r := measured[evaluate.MulticlassReport](t, rows, multiclass(o))
		requireClose(t, c.loss, r.LogLoss, "log-loss")
		// The prediction is the class with the largest probability, so the top-1 accuracy
		// equals the accuracy.
		requireClose(t, r.Accuracy, r.TopKAccuracy, "top 1")
		o.ProbabilityCols = []string{"p"}
		requireSame(t, r, measured[evaluate.MulticlassReport](t, rows, multiclass(o)))
		local, err := evaluate.MeasureMulticlass(truth, nil, multiP, c.weight, o)
		require.NoError(t, err)
		requireSame(t, local, r)
		o.TopK = 2
		r = must(evaluate.MeasureMulticlass(truth, nil, multiP, c.weight, o))
		require.Equal(t, 1.0, r.TopKAccuracy)
	}
	// Among equal probabilities, a comes before b, and b before c.
	o := evaluate.MulticlassOptions{Classes: abc, TopK: 2}
	r := must(evaluate.MeasureMulticlass(abc, nil, [][]float64{{.2, .4, .4}, {.25, .5, .25}, {.25, .5, .25}}, nil, o))
	requireClose(t, 1.0/3, r.TopKAccuracy, "ties")
	// A label that is not in Classes has probability 0.
	r = must(evaluate.MeasureMulticlass([]string{"z"}, nil, [][]float64{{1, 0, 0}}, nil, o))
	requireClose(t, 52*math.Ln2, r.LogLoss, "unknown label")
	require.Equal(t, []string{"a", "z"}, r.Classes)
	r = must(evaluate.MeasureMulticlass([]string{"a"}, nil, [][]float64{{1.5, 0, 0}}, nil, o))
	require.Equal(t, []string{"kappa: labels and predictions are all of one class", "log_loss: a probability is outside 0 to 1"}, r.Undefined)
}

func TestMulticlassEqualsItsDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "n")
		label := rapid.IntRange(-2, 12)
		truth, predicted := rapid.SliceOfN(label, n, n).Draw(t, "truth"), rapid.SliceOfN(label, n, n).Draw(t, "predicted")
		r, err := evaluate.MeasureMulticlass(truth, predicted, nil, nil, evaluate.MulticlassOptions{})
		require.NoError(t, err)
		labels := slices.Compact(slices.Sorted(slices.Values(append(slices.Clone(truth), predicted...))))
		require.Len(t, r.Classes, len(labels))
		var right, f1 float64
		for k, l := range labels {
			var tp, fp, fn float64
			for i := range truth {
				switch {
				case truth[i] == l && predicted[i] == l:
					tp++
				case truth[i] == l:
					fn++
				case predicted[i] == l:
					fp++
				}
			}
			right += tp
			f1 += 2 * tp / (2*tp + fp + fn)
			require.Equal(t, tp, r.Confusion[k][k])
			require.Equal(t, tp+fn, r.PerClass[k].Weight)
			requireClose(t, tp/max(tp+fn, 1), r.PerClass[k].Recall, "recall")
			requireClose(t, tp/max(tp+fp, 1), r.PerClass[k].Precision, "precision")
		}
		requireClose(t, right/float64(n), r.Accuracy, "accuracy")
		requireClose(t, f1/float64(len(labels)), r.F1Macro, "f1")
	})
}

// TestMulticlassLabelsOfAnyType requires that the order of the labels depends on the type of
// the labels, not on the type of the predictions.
func TestMulticlassLabelsOfAnyType(t *testing.T) {
	type row struct {
		Label     float64
		Predicted int8
		Flag      bool
		Guess     bool
	}
	rows := []row{{10, 10, true, false}, {9, 10, false, false}, {-1, 9, true, true}, {math.Copysign(0, -1), 0, false, true}}
	r := measured[evaluate.MulticlassReport](t, rows, multiclass(evaluate.MulticlassOptions{LabelCol: "label", PredictionCol: "predicted"}))
	require.Equal(t, []string{"-1", "0", "9", "10"}, r.Classes)
	require.Equal(t, 0.5, r.Accuracy)
	requireSame(t, must(evaluate.MeasureMulticlass([]float64{10, 9, -1, math.Copysign(0, -1)}, []float64{10, 10, 9, 0}, nil, nil, evaluate.MulticlassOptions{})), r)
	r = measured[evaluate.MulticlassReport](t, rows, multiclass(evaluate.MulticlassOptions{LabelCol: "flag", PredictionCol: "guess"}))
	require.Equal(t, []string{"false", "true"}, r.Classes)
	big := must(evaluate.MeasureMulticlass([]uint64{math.MaxUint64, math.MaxUint64 - 1}, []uint64{3, 3}, nil, nil, evaluate.MulticlassOptions{}))
	require.Equal(t, []string{"3", "18446744073709551614", "18446744073709551615"}, big.Classes)
	floats := must(evaluate.MeasureMulticlass([]float64{math.Inf(-1), 1e300, 1e-9, math.Inf(1)}, []float64{0, 0, 0, 0}, nil, nil, evaluate.MulticlassOptions{}))
	require.Equal(t, []string{"-Inf", "0", "1e-09", "1e+300", "+Inf"}, floats.Classes)
	requireFailure(t, rows, multiclass(evaluate.MulticlassOptions{LabelCol: "label", PredictionCol: "guess"}), `column "label" is float64 but column "guess" is bool`)
}

func TestMulticlassSameBits(t *testing.T) {
	draws := sharding.NewRandom(3, "multi", 0, 0)
	rows := make([]classified, 300)
	weights := wildNumbers("multi", len(rows))
	for i := range rows {
		p := multiP[draws.IntN(12)]
		rows[i] = classified{multiTruth[draws.IntN(12)], multiPredicted[draws.IntN(12)], p[0], p[1], p[2], p, math.Abs(weights[i])}
	}
	o := evaluate.MulticlassOptions{LabelCol: "truth", PredictionCol: "predicted", ProbabilityCols: []string{"p"}, Classes: abc, WeightCol: "weight", TopK: 2}
	trial.SameBits(t, func(b *engine.Builder) {
		report := evaluate.Multiclass(operators.FromSlice(b, rows), o)
		engine.Collect(report, "report")
		engine.Collect(evaluate.Confusion(report), "confusion")
	})
}

func TestMulticlassOfLittleAndOfNothing(t *testing.T) {
	o := evaluate.MulticlassOptions{LabelCol: "truth", PredictionCol: "predicted", WeightCol: "weight"}
	r := measured[evaluate.MulticlassReport](t, []classified{}, multiclass(o))
	require.Equal(t, []string{"all: there are no rows of positive weight"}, r.Undefined)
	require.True(t, math.IsNaN(r.Accuracy) && math.IsNaN(r.F1Macro) && math.IsNaN(r.Kappa))
	requireSame(t, r, must(evaluate.MeasureMulticlass([]string{}, nil, nil, nil, o)))
	r = measured[evaluate.MulticlassReport](t, classifiedRows([]string{"a"}, []string{"a"}, []float64{2}), multiclass(o))
	require.Equal(t, []float64{1, 1, 2}, []float64{r.Accuracy, r.F1Macro, r.Weight})
	require.True(t, math.IsNaN(r.Kappa))
	r = must(evaluate.MeasureMulticlass([]string{"a"}, []string{"b"}, nil, []float64{0}, o))
	require.Equal(t, []string{"all: there are no rows of positive weight"}, r.Undefined)
}

func TestMulticlassRefusesWhatItCannotMeasure(t *testing.T) {
	rows := classifiedRows(multiTruth, multiPredicted, binaryWeight)
	for text, o := range map[string]evaluate.MulticlassOptions{
		"PredictionCol and ProbabilityCols are empty": {LabelCol: "truth"},
		"Classes are not":                                      {LabelCol: "truth", ProbabilityCols: abc},
		"ProbabilityCols are not":                              {LabelCol: "truth", PredictionCol: "predicted", Classes: abc},
		"3 ProbabilityCols for 2 Classes":                      {LabelCol: "truth", ProbabilityCols: abc, Classes: abc[:2]},
		`Classes has "a" twice`:                                {LabelCol: "truth", ProbabilityCols: abc, Classes: []string{"a", "b", "a"}},
		"TopK is -1":                                           {LabelCol: "truth", PredictionCol: "predicted", TopK: -1},
		"TopK is set, but there are no Classes":                {LabelCol: "truth", PredictionCol: "predicted", TopK: 1},
		`column "p" has 3 components, but there are 2 Classes`: {LabelCol: "truth", ProbabilityCols: []string{"p"}, Classes: abc[:2]},
		`column "p" is vector[3]`:                              {LabelCol: "p", PredictionCol: "predicted"},
		`column "truth" is utf8, not a number`:                 {LabelCol: "truth", ProbabilityCols: []string{"truth", "a"}, Classes: abc[:2]},
	} {
		requireFailure(t, rows, multiclass(o), text)
	}
	many := make([]int, 3000)
	for i := range many {
		many[i] = i
	}
	for _, err := range []error{
		second(evaluate.MeasureMulticlass(many, many, nil, nil, evaluate.MulticlassOptions{})),
		second(evaluate.MeasureMulticlass(abc, nil, nil, nil, evaluate.MulticlassOptions{})),
		second(evaluate.MeasureMulticlass(abc, abc[:1], nil, nil, evaluate.MulticlassOptions{})),
		second(evaluate.MeasureMulticlass(abc, nil, multiP[:2], nil, evaluate.MulticlassOptions{Classes: abc})),
		second(evaluate.MeasureMulticlass(abc, nil, multiP[:3], nil, evaluate.MulticlassOptions{})),
		second(evaluate.MeasureMulticlass(abc[:1], nil, [][]float64{{1, 0, math.NaN()}}, nil, evaluate.MulticlassOptions{Classes: abc})),
		second(evaluate.MeasureMulticlass([]float64{math.NaN()}, []float64{1}, nil, nil, evaluate.MulticlassOptions{})),
		second(evaluate.MeasureMulticlass(abc, abc, nil, nil, evaluate.MulticlassOptions{TopK: -1})),
	} {
		require.Error(t, err)
	}
}
