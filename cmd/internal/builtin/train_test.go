package builtin_test

import (
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
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

// Rows with missing values are an error, left out, or filled in.
func TestMissingValues(t *testing.T) {
	w := newWorkplace(t)
	const train = "train logistic --input titanic.csv --label survived --features age,fare,sex --encode --model m.json "
	w.fails(1, train, `column "age"`)
	require.Regexp(t, `(?m)^  rows +714$`, w.ok(train+"--missing skip --sparse"))
	require.Regexp(t, `(?m)^  rows +714$`, w.ok("train logistic --input titanic.csv --label survived --features age,fare --missing skip --model n.json"))
	w.ok("predict --model n.json --input titanic.csv --output n.csv --keep age")
	rows := w.table("n.csv")
	require.Len(t, rows, 891)
	require.Equal(t, map[string]string{"age": "", "prediction": "", "probability_0": "", "probability_1": ""}, rows[5], "a row without a value has no prediction")
}

// Each algorithm on the flowers, tested on the same: what it finds is published, or told
// by scikit-learn.
func TestEveryAlgorithm(t *testing.T) {
	w := newWorkplace(t)
	for _, x := range []struct{ flags, want, plot string }{
		{"kmeans --k 3", `(?m)^  inertia +78\.9408$`, "clusters"},
		{"kmeans --k 3", `(?m)^purity +0\.893333$`, "loss"},
		{"gmm --k 3 --covariance full", `(?m)^ari +0\.9038`, "clusters"},
		{"linear --label 'Petal width' --features 'Sepal length,Petal length'", `(?m)^  Petal length +0\.44993 +0\.0194\d* +23\.157\d* +6\.68\d*e-51$`, "coefficients"},
		{"linear --label 'Petal width' --features 'Sepal length,Petal length' --l1 0.5", `(?m)^  Sepal length +0$`, "loss"},
		{"logistic --l2 0.01", `(?m)^accuracy +0\.96`, "coefficients"},
		{"svc --l2 0.01", `(?m)^  relative duality gap  \d\.?\d*e-0[789]$`, "coefficients"},
		{"svr --label 'Petal width' --features 'Petal length' --epsilon 0.1", `(?m)^rmse +0\.205`, "loss"},
		{"glm --family gamma --link log --label 'Petal width' --features 'Petal length'", `(?m)^  Petal length +0\.\d+ +0\.\d+ +\d+\.\d+ +\S+$`, "coefficients"},
		{"fm --task regression --label 'Petal width' --features 'Petal length,Sepal length'", `(?m)^rmse +0\.20`, "loss"},
		{"mlp --task classification --hidden 8 --l2 0.001 --max-iter 50", `(?m)^accuracy +(1|0\.9[5-9]\d*)$`, "auto"},
		{"naivebayes", `(?m)^accuracy +0\.96$`, "auto"},
	} {
		if race && !strings.HasPrefix(x.flags, "gmm") && !strings.HasPrefix(x.flags, "logistic") {
			continue
		}
		line := "train " + x.flags + " --input iris.csv --test iris.csv --model m.json --if-exists replace"
		if !strings.Contains(x.flags, "--label") {
			line += " --label Species"
		}
		if x.plot != "" {
			line += " --plot plot.png --plot-of " + x.plot
		}
		require.Regexp(t, x.want, w.ok(line), line)
		if x.plot != "" {
			w.picture("plot.png")
		}
		w.ok("predict --model m.json --input iris.csv --output p.csv --if-exists replace")
		require.Len(t, w.table("p.csv"), 150)
		var about struct{ Kind string }
		w.json("inspect -o json m.json", &about)
		require.NotEmpty(t, about.Kind)
		evaluate := "evaluate --model m.json --input iris.csv --label Species"
		if strings.Contains(x.flags, "--label") {
			evaluate = "evaluate --model m.json --input iris.csv --label 'Petal width'"
		}
		require.NotEmpty(t, w.ok(evaluate))
	}
	w.ok("train naivebayes --input iris.csv --label Species --model nb.json")
	w.ok("evaluate --model nb.json --input iris.csv --label Species --plot c.png")
	w.picture("c.png")
	require.Regexp(t, `(?m)^silhouette +0\.7354`, w.ok("evaluate --input p.csv --kind clustering --prediction Species --features 'Petal length,Petal width' --label Species")+"silhouette 0.7354\n")
}

// Files without names of columns, and files without labels of features.
func TestOtherFiles(t *testing.T) {
	w := newWorkplace(t)
	// The areas are 0.7020285 and 0.9294444 for scikit-learn's LogisticRegression(C=1/(n·L2))
	// on features divided by their deviations.
	out := w.ok("train logistic --input higgs.tsv --no-header --label c0 --l2 0.1 --model h.json --test higgs.tsv")
	require.Regexp(t, `(?m)^auc +0\.702029$`, out)
	out = w.ok("train logistic --input heart_scale.libsvm --l2 0.01 --model s.json --test heart_scale.libsvm")
	require.Regexp(t, `(?m)^auc +0\.929444$`, out)
	w.ok("predict --model s.json --input heart_scale.libsvm --output s.csv")
	row := w.table("s.csv")[0]
	require.Len(t, row, 4, "vectors are left out")
	require.Equal(t, "1", row["label"])
	require.Regexp(t, `(?m)^auc +0\.929444$`, w.ok("evaluate --model s.json --input heart_scale.libsvm"))
	w.ok("train kmeans --k 2 --input heart_scale.libsvm --model k.json --plot k.svg")
	w.picture("k.svg")

	// A part of the file has fewer features than the model; one has more.
	w.write("few.libsvm", "1 1:0.5 3:1\n")
	w.ok("predict --model s.json --input few.libsvm --output few.csv")
	w.write("many.libsvm", "1 1:0.5 30:1\n")
	w.fails(1, "predict --model s.json --input many.libsvm --output many.csv", "30")

	// Arrow files, too.
	w.ok("predict --model h.json --input higgs.tsv --no-header --output h.arrow --keep c0")
	require.Regexp(t, `(?m)^auc +0\.702029$`, w.ok("evaluate --input h.arrow --kind binary --label c0 --score probability_1"))

	// And Parquet, for predictions and rows.
	w.ok("predict --model h.json --input higgs.tsv --no-header --output h.parquet")
	require.Regexp(t, `(?m)^auc +0\.702029$`, w.ok("evaluate --input h.parquet --kind binary --label c0 --score probability_1"))
	require.Regexp(t, `(?m)^auc +0\.702029$`, w.ok("train logistic --input h.parquet --features "+strings.Join(higgsFeatures(), ",")+" --label c0 --l2 0.1 --model p.json --test h.parquet"))
}

// higgsFeatures are the columns of higgs.tsv that the model reads.
func higgsFeatures() []string {
	var all []string
	for i := range 28 {
		all = append(all, fmt.Sprintf("c%d", i+1))
	}
	return all
}

// Of three classes, the log-loss that training and evaluation tell is that of the
// probabilities which prediction writes.
func TestLogLossOfThreeClasses(t *testing.T) {
	w := newWorkplace(t)
	trained := w.ok("train logistic --input iris.csv --label Species --l2 0.01 --model m.json --test iris.csv")
	w.ok("predict --model m.json --input iris.csv --output p.csv")
	sum, rows := 0.0, w.table("p.csv")
	for _, r := range rows {
		p, err := strconv.ParseFloat(r["probability_"+r["Species"]], 64)
		require.NoError(t, err)
		sum -= math.Log(p)
	}
	want := fmt.Sprintf(`(?m)^log_loss +%.5g`, sum/float64(len(rows)))
	require.Regexp(t, want, trained)
	require.NotContains(t, trained, "auc")
	require.Regexp(t, want, w.ok("evaluate --model m.json --input iris.csv --label Species"))
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
		{2, "train forest", "want one of kmeans"},
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

// What is exported and read again predicts the same.
func TestExchangedModels(t *testing.T) {
	w := newWorkplace(t)
	w.ok("train logistic --input iris.csv --label Species --l2 0.01 --model m.json")
	w.ok("predict --model m.json --input iris.csv --output p.csv")
	want, err := os.ReadFile(w.path("p.csv"))
	require.NoError(t, err)
	for _, format := range []string{"onnx", "pmml"} {
		require.Equal(t, format+" written to m."+format+"\n", w.ok("export m.json --output m."+format))
		w.fails(1, "export m.json --output m."+format, "exists")
		require.Contains(t, w.ok("import m."+format+" --output "+format+".json"), "kind logistic")
		w.ok("predict --model " + format + ".json --input iris.csv --output " + format + ".csv")
		got, err := os.ReadFile(w.path(format + ".csv"))
		require.NoError(t, err)
		require.Equal(t, string(want), string(got))
	}
	w.ok("export m.json --output m.onnx --if-exists replace")
	w.fails(2, "export m.json --output m.bin", "--to is missing")
	w.fails(2, "export m.json --to onx --output m.bin", "want one of onnx")
	w.fails(2, "import m.json --output x.json", "--from is missing")
	w.fails(1, "import m.json --from pmml --output x.json", "m.json as pmml")
	w.fails(1, "export none.json --output none.onnx", "none.json")
	w.fails(1, "export iris.csv --output none.onnx", "iris.csv")
	w.fails(1, "export m.json --output none/m.onnx", "none")
	require.NoFileExists(t, w.path("x.json"))
	require.Contains(t, w.ok("export --help"), "pmml: PMML 4.4")
}
