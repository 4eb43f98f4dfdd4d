//go:build !race

// This file is left out under the race detector, which makes the start of each of the many
// processes slow. Other tests run the same code under the race detector.

package builtin_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestModelsThatCannotBeUsed requires that every command that reads a model fails with exit
// code 1 if the model file is damaged, and that predict also does if the rows do not fit the
// model.
func TestModelsThatCannotBeUsed(t *testing.T) {
	w := newTestDir(t)
	w.ok("train logistic --input iris.csv --label Species --l2 0.01 --model m.json")
	whole := w.read("m.json")
	w.write("short.json", whole[:len(whole)/2])
	w.write("altered.json", strings.Replace(whole, `"rows":150`, `"rows":151`, 1))
	w.write("newer.json", strings.Replace(whole, `"version":1`, `"version":9`, 1))
	w.write("other.json", strings.Replace(whole, `"kind":"logistic"`, `"kind":"jungle"`, 1))
	w.write("none.json", "hello")
	for name, want := range map[string]string{
		"short.json": "short.json", "altered.json": "checksum", "newer.json": "newer", "other.json": `"jungle"`,
		"none.json": "none.json", "absent.json": "no such file",
	} {
		for _, line := range []string{
			"inspect " + name, "inspect -o json " + name,
			"predict --model " + name + " --input iris.csv --output p.csv",
			"evaluate --model " + name + " --input iris.csv --label Species",
		} {
			w.fails(1, line, want)
		}
	}
	w.write("few.csv", "Sepal length,Sepal width,Petal lenght,Petal width\n1,2,3,4\n")
	w.write("text.csv", "Sepal length,Sepal width,Petal length,Petal width\n1,2,x,4\n")
	w.fails(1, "predict --model m.json --input few.csv --output p.csv", `no column "Petal length"; did you mean "Petal lenght"`)
	w.fails(1, "predict --model m.json --input text.csv --output p.csv", `"x"`)
	w.fails(1, "predict --model m.json --input heart_scale.libsvm --output p.csv", `no column "Sepal length"`)
	w.fails(1, "predict --model m.json --input iris.csv --output p.csv --keep Specis", `did you mean "Species"?`)
	w.fails(1, "predict --model m.json --input iris.csv --output iris.csv", "exists")
	w.fails(2, "predict --input iris.csv --output p.csv", "--model")
	require.NoFileExists(t, w.path("p.csv"))

	w.fails(2, "inspect m.json --plot c.png --plot-of coefficient", "coefficients")
	w.fails(2, "inspect m.json --rows -1", "--rows")
	w.ok("inspect m.json --plot c.png --plot-of coefficients")
	w.picture("c.png")
	require.Contains(t, w.ok("inspect m.json --rows 1"), "… and 4 more rows")
}

// TestPredictionsOfPredictions requires that predict and evaluate accept a file that predict
// wrote. The columns of the earlier predictions must be kept, and the new columns must get
// other names, unless --keep leaves the earlier columns out.
func TestPredictionsOfPredictions(t *testing.T) {
	w := newTestDir(t)
	w.ok("train logistic --input iris.csv --label Species --l2 0.01 --model m.json")
	w.ok("predict --model m.json --input iris.csv --output p.csv")
	const again = "predict --model m.json --input p.csv --output again.csv "
	w.ok(again)
	require.Equal(t, w.table("p.csv")[7]["prediction"], w.table("again.csv")[7]["prediction_1"])
	w.ok(again + "--if-exists replace --keep probability_Iris-setosa")
	require.Equal(t, w.table("p.csv")[7]["probability_Iris-setosa"], w.table("again.csv")[7]["probability_1_Iris-setosa"])
	w.ok(again + "--if-exists replace --keep Species")
	w.ok("predict --model m.json --input iris.csv --output first.csv --keep Species")
	require.Equal(t, w.read("first.csv"), w.read("again.csv"))
	require.Equal(t, w.ok("evaluate --model m.json --input iris.csv --label Species"), w.ok("evaluate --model m.json --input p.csv --label Species"))
	require.Regexp(t, `(?m)^accuracy +1$`, w.ok("evaluate --model m.json --input p.csv --label prediction"), "the label column has the predictions of the model, so all must be right")
}

// TestTextWithOneValue requires that training accepts a text column with only one value, and
// that such a column does not change the predictions.
func TestTextWithOneValue(t *testing.T) {
	w := newTestDir(t)
	w.write("one.csv", "city,x,y\nOslo,1,0\nOslo,2,1\nOslo,3,0\nOslo,4,1\n")
	w.write("none.csv", "x,y\n1,0\n2,1\n3,0\n4,1\n")
	w.ok("train logistic --input one.csv --label y --encode --model one.json")
	w.ok("train logistic --input none.csv --label y --model none.json")
	for _, name := range []string{"one", "none"} {
		w.ok("predict --model " + name + ".json --input one.csv --output " + name + ".predicted.csv --keep y")
	}
	require.Equal(t, w.read("none.predicted.csv"), w.read("one.predicted.csv"))
	for _, format := range []string{"onnx", "pmml"} {
		w.fails(1, "export one.json --output one."+format, `column "city" has one value, and so no components`)
	}
	w.fails(1, "train logistic --input one.csv --label y --features city --encode --model x.json", `column "city encoded" has no components in any row`)
}

func TestWrongEvaluations(t *testing.T) {
	w := newTestDir(t)
	w.ok("train linear --input iris.csv --label 'Petal width' --features 'Petal length' --model m.json")
	const iris = "evaluate --input iris.csv "
	for _, x := range []struct {
		code       int
		line, want string
	}{
		{2, "evaluate --input iris.csv", "--kind is missing"},
		{2, iris + "--kind binary --label x", "--score is missing"},
		{2, iris + "--kind regression --label x", "--prediction is missing"},
		{2, iris + "--kind regression --prediction x", "--label is missing"},
		{2, iris + "--kind clustering --prediction x", "--label, --features or both"},
		{2, iris + "--kind regression --prediction x --label y --plot x.png", "--plot is for"},
		{2, iris + "--kind multiclass --prediction x --label y --plot x.png --plot-of roc", "does not go with"},
		{2, iris + "--kind ranking", "--group is missing"},
		{2, iris + "--kind ranking --group Species --label 'Petal width'", "--score is missing"},
		{2, iris + "--kind regression --prediction x --label y --at 3", "--at, --relevant and --flat are for --kind ranking"},
		{2, iris + "--model m.json --score x --label y", "does not go with"},
		{2, iris + "--model m.json --label y --positive a", "do not go with"},
		{1, iris + "--kind regression --prediction 'Petal lenght' --label 'Petal width'", `did you mean "Petal length"?`},
		{1, iris + "--kind regression --prediction Species --label 'Petal width'", "Species"},
		{1, iris + "--kind binary --score 'Petal width' --label Species", "--positive"},
		{1, iris + "--model m.json --kind multiclass --label Species", "is measured as regression"},
		{1, iris + "--model m.json", "--label is missing"},
		{1, iris + "--model m.json --label Species", "Species"},
	} {
		w.fails(x.code, x.line, x.want)
	}
	// For a model of two classes, a label that did not occur in training is an error.
	two, rest, _ := strings.Cut(w.read("iris.csv"), "Iris-virginica")
	two = two[:strings.LastIndex(two, "\n")+1]
	w.write("two.csv", two)
	w.ok("train logistic --input two.csv --label Species --l2 0.01 --model two.json")
	w.ok("evaluate --model two.json --input two.csv --label Species")
	require.NotEmpty(t, rest)
	w.fails(1, iris+"--model two.json --label Species", `"Iris-virginica"`)

	out := w.ok(iris + "--kind binary --score 'Petal width' --label Species --positive Iris-virginica --margins")
	require.Regexp(t, `(?m)^positive +50$`, out)
}

// TestLargeModels requires that predict can use a model that is too large to be sent with the
// arguments of a job. Each worker then reads the model file.
func TestLargeModels(t *testing.T) {
	w := newTestDir(t)
	w.ok("train naivebayes --input iris.csv --label Species --model m.json")
	w.write("large.json", w.read("m.json")+strings.Repeat(" ", 4<<20))
	w.ok("predict --model m.json --input iris.csv --output p.csv")
	w.ok("predict --model large.json --input iris.csv --output large.csv")
	require.Equal(t, w.read("p.csv"), w.read("large.csv"))
}
