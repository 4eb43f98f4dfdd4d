package builtin_test

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTitanicByTheCommandLine requires the same coefficients and AUC as LogisticRegression of
// scikit-learn 1.9.1 without a penalty on the same features. Missing numbers are replaced with
// medians, and the two missing ports with S. The categories female, C and Q have one component
// each.
func TestTitanicByTheCommandLine(t *testing.T) {
	w := newTestDir(t)
	const flags = "--label survived --features age,fare,pclass,sex,embarked --encode --missing fill"
	out := w.ok("train logistic --input titanic.csv " + flags + " --model m.json --test titanic.csv --inference --plot roc.png --parallelism 2")
	require.Regexp(t, `(?m)^  age +-0\.03336\d* +0\.0074403\d* `, out)
	require.Regexp(t, `(?m)^  sex=female +2\.5856\d* `, out)
	require.Regexp(t, `(?m)^  embarked=C +0\.50522\d* `, out)
	require.Regexp(t, `(?m)^  intercept +1\.98296 `, out)
	require.Regexp(t, `(?m)^auc +0\.851713$`, out)
	require.Contains(t, out, "model written to m.json")
	w.picture("roc.png")

	// The model file does not depend on the parallelism.
	w.ok("train logistic --input titanic.csv " + flags + " --model again.json --inference --parallelism 5")
	require.Equal(t, w.read("m.json"), w.read("again.json"))

	// The outputs of inspect, predict and evaluate agree with each other and with the training.
	text := w.ok("inspect m.json")
	require.Contains(t, text, "1. imputer")
	require.Regexp(t, `(?m)^  age +28$`, text)
	require.Regexp(t, `(?m)^  sex=female +2\.5856\d* `, text)
	w.ok("predict --model m.json --input titanic.csv --output p.csv")
	rows := w.table("p.csv")
	require.Len(t, rows, 891)
	right := 0
	for _, r := range rows {
		p, err := strconv.ParseFloat(r["probability_1"], 64)
		require.NoError(t, err)
		require.Equal(t, p > 0.5, r["prediction"] == "1")
		if r["prediction"] == r["survived"] {
			right++
		}
	}
	require.Equal(t, "22", rows[0]["age"], "predict must not change cells of the input")
	require.Empty(t, rows[5]["age"])
	require.Equal(t, "male", rows[0]["sex"])
	require.Equal(t, 704, right)
	var of struct{ AUC, Accuracy float64 }
	w.json("evaluate --model m.json --input titanic.csv --label survived --output json --plot lift.svg --plot-of lift", &of)
	require.InDelta(t, 0.8517133757283312, of.AUC, 1e-6)
	require.InDelta(t, 704.0/891, of.Accuracy, 1e-12)
	w.picture("lift.svg")
	var same struct{ AUC, Accuracy float64 }
	w.json("evaluate --input p.csv --kind binary --label survived --score probability_1 --output json --plot pr.png --plot-of pr", &same)
	require.Equal(t, of, same)
	w.picture("pr.png")
	require.Regexp(t, `(?m)^accuracy +0\.790123$`, w.ok("evaluate --input p.csv --kind multiclass --label survived --prediction prediction"))
	require.Regexp(t, `(?m)^rmse +0\.3767`, w.ok("evaluate --input p.csv --kind regression --label survived --prediction probability_1"))
}

// TestThresholds requires that evaluate measures the predictions that a model makes with its own
// threshold. A probability equal to the threshold must count as negative.
func TestThresholds(t *testing.T) {
	w := newTestDir(t)
	w.write("rows.csv", "x,y\n-2,0\n-1,0\n-1,1\n0,0\n0,1\n1,0\n1,1\n2,1\n")
	for _, flags := range []string{"", " --threshold 0.25", " --threshold 0.75"} {
		w.ok("train logistic --input rows.csv --label y --model m.json --l2 0.1 --if-exists replace" + flags)
		w.ok("predict --model m.json --input rows.csv --output p.csv --if-exists replace")
		var predicted, right, middle float64
		for _, r := range w.table("p.csv") {
			if r["prediction"] == "1" {
				predicted++
			}
			if r["prediction"] == r["y"] {
				right++
			}
			if r["probability_1"] == "0.5" {
				middle++
			}
		}
		require.Equal(t, 2.0, middle)
		var of struct {
			TP       float64 `json:"true_positive"`
			FP       float64 `json:"false_positive"`
			Accuracy float64
		}
		w.json("evaluate --model m.json --input rows.csv --label y --output json", &of)
		require.Equal(t, []float64{predicted, right / 8}, []float64{of.TP + of.FP, of.Accuracy}, flags)
		require.Contains(t, w.ok("train logistic --input rows.csv --label y --model m2.json --l2 0.1 --if-exists replace --test rows.csv"+flags),
			fmt.Sprintf("\ntrue_positive   %v\n", of.TP))
	}
}
