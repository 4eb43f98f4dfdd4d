package builtin_test

import (
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
)

// The coefficients and the area are those of scikit-learn 1.9.1's LogisticRegression
// without a penalty on the same features: medians for missing numbers, S for the two
// missing ports, components for female, C and Q.
func TestTitanicByTheCommandLine(t *testing.T) {
	w := newWorkplace(t)
	const flags = "--label survived --features age,fare,pclass,sex,embarked --encode --missing fill"
	out := w.ok("train logistic --input titanic.csv " + flags + " --model m.json --test titanic.csv --inference --plot roc.png --parallelism 2")
	require.Regexp(t, `(?m)^  age +-0\.03336\d* +0\.0074403\d* `, out)
	require.Regexp(t, `(?m)^  sex=female +2\.5856\d* `, out)
	require.Regexp(t, `(?m)^  embarked=C +0\.50522\d* `, out)
	require.Regexp(t, `(?m)^  intercept +1\.98296 `, out)
	require.Regexp(t, `(?m)^auc +0\.851713$`, out)
	require.Contains(t, out, "model written to m.json")
	w.picture("roc.png")

	// The same file at another parallelism.
	w.ok("train logistic --input titanic.csv " + flags + " --model again.json --inference --parallelism 5")
	require.Equal(t, w.read("m.json"), w.read("again.json"))

	// What inspect shows, predict gives and evaluate measures is the same model's.
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
	require.Equal(t, "22", rows[0]["age"], "cells of the input are as they were")
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

func TestWrongTrainings(t *testing.T) {
	w := newWorkplace(t)
	w.write("short.csv", "a,b,label\n")
	w.write("day.csv", "d,y\n2020-01-01T00:00:00Z,1\n")
	w.write("there.png", "")
	const model = " --model m.json"
	for _, x := range []struct {
		code       int
		line, want string
	}{
		{2, "train", `expected "<what> ..."`},
		{2, "train kmean --k 3", "did you mean kmeans?"},
		{2, "train woods", "want one of kmeans"},
		{2, "train kmeans --input iris.csv" + model, "K is 0"},
		{2, "train kmeans --input iris.csv --k 0" + model, "K is 0"},
		{2, "train logistic --input iris.csv" + model, "--label is missing"},
		{2, "train logistic --input iris.csv --label Species --l2 -1" + model, "L2"},
		{2, "train linear --input iris.csv --label Species --l3 1" + model, "--l3"},
		{2, "train linear --input iris.csv --label y --plot x.gif" + model, ".png"},
		{2, "train linear --input iris.csv --label y --plot none/x.png" + model, "there is no directory none"},
		{2, "train linear --input iris.csv --label y --plot x.png --plot-of roc" + model, "--plot-of roc is for"},
		{2, "train naivebayes --input iris.csv --label y --plot x.png --plot-of loss" + model, "no iterations"},
		{2, "train kmeans --k 2 --input iris.csv --plot x.png --plot-of coefficients" + model, "the model has none"},
		{2, "train linear --input iris.csv --label y --plot-of loss" + model, "only with --plot"},
		{2, "train linear --input iris.csv --label y --features y,a" + model, "which is the label"},
		{2, "train linear --input iris.csv --label y --sparse" + model, "only with --encode"},
		{2, "train linear --input iris.csv --label y --delimiter ab" + model, "--delimiter"},
		{2, "train kmeans --input heart_scale.libsvm --k 2 --features x" + model, "does not go with LibSVM"},
		{1, "train logistic --input none.csv --label y" + model, "none.csv"},
		{1, "train logistic --input iris.csv --label Specis" + model, `did you mean "Species"?`},
		{1, "train logistic --input iris.csv --label Species --features 'Petal lenght'" + model, `did you mean "Petal length"?`},
		{1, "train linear --input iris.csv --label 'Petal width'" + model, `column "Species" of iris.csv is text`},
		{1, "train linear --input iris.csv --label Species" + model, "Species"},
		{1, "train logistic --input iris.csv --label Species --inference" + model, "3 classes"},
		{1, "train logistic --input short.csv --label label --features a,b" + model, ""},
		{1, "train linear --input titanic.csv --label fare --features pclass --test iris.csv" + model, `no column "pclass"`},
		{1, "train linear --input titanic.csv --label fare --features pclass --plot there.png" + model, "there.png exists"},
		{1, "train linear --input titanic.csv --label fare --features pclass --model none/m.json", "none"},
		{1, "train logistic --input titanic.csv --label pclass --features fare --plot x.png --plot-of roc" + model, "not two classes"},
	} {
		w.fails(x.code, x.line, x.want)
		if x.want != "not two classes" {
			require.NoFileExists(t, w.path("m.json"), x.line)
		}
	}
	w.fails(1, "train linear --input titanic.csv --label fare --features pclass"+model, "exists")
	for _, command := range []string{"train logistic", "predict", "evaluate", "inspect", "train"} {
		require.Contains(t, w.ok(command+" --help"), "Usage:", command)
	}
	require.Contains(t, w.ok("train --help"), "naivebayes: classes by naive Bayes")
}
