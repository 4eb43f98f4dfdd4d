//go:build !race

package builtin_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTextWhereNumbersAreNeeded requires that the error about a text column of labels, weights
// or other numbers names the cell that made the column text, with its line.
func TestTextWhereNumbersAreNeeded(t *testing.T) {
	w := newTestDir(t)
	w.write("l.csv", "a,y,q,b\n1,1,a,1\n2,2,a,2\n3,\"1,234\",b,3\n"+strings.Repeat("4,4,b,1\n5,5,c,3\n", 4))
	w.write("names.csv", "a,y\n1,one\n2,two\n3,three\n")
	const cell = `column "y" is text as 1 of 11 values is no number, the first at l.csv:4: "1,234"`
	const cure = ": where that stands for a missing value, say so with --null"
	for _, trainer := range []string{
		"linear", "svr", "glm", "glm --family poisson", "fm --task regression", "mlp --task regression", "forest --task regression", "gbdt --objective squared",
		"gbdt --objective lambdamart --group q --features a",
	} {
		line := "train " + trainer + " --label y --model m.json --input "
		w.fails(1, line+"l.csv", "--label: "+cell+cure)
		if !strings.Contains(trainer, "lambdamart") {
			told := w.fails(1, line+"names.csv", `--label: column "y" of names.csv is text, and must be numbers: algorithms that predict classes take text`)
			require.NotContains(t, told, "--encode")
		}
	}
	for _, trainer := range []string{"logistic", "naivebayes", "svc", "forest --task classification", "gbdt --objective logistic"} {
		w.fails(1, "train "+trainer+" --label q --features b --weight y --model m.json --input l.csv", "--weight: "+cell+cure)
	}
	w.fails(1, "train kmeans --k 2 --features a --weight y --model m.json --input l.csv", "--weight: "+cell+cure)
	w.fails(1, "train gmm --k 2 --features a --weight y --model m.json --input l.csv", "--weight: "+cell+cure)
	for flag, trainer := range map[string]string{"--offset": "glm", "--margins": "gbdt --objective squared", "--label-upper": "gbdt --objective aft"} {
		w.fails(1, "train "+trainer+" --label a --features b --model m.json --input l.csv "+flag+" y", flag+": "+cell)
	}

	for flags, flag := range map[string]string{
		"regression --label y --prediction a": "--label", "regression --label a --prediction y": "--prediction", "ranking --group q --label y --score a": "--label",
		"ranking --group q --label a --score y": "--score", "binary --label a --score y": "--score", "multiclass --label q --prediction a --weight y": "--weight",
		"clustering --prediction a --features y": "--features",
	} {
		w.fails(1, "evaluate --input l.csv --kind "+flags, flag+": "+cell+cure)
	}
	w.write("t.csv", "a,y\n1,1\n2,2\n3,4\n")
	w.ok("train linear --input t.csv --label y --model m.json")
	w.fails(1, "evaluate --model m.json --input l.csv --label y", "--label: "+cell+cure)
	w.fails(1, "evaluate --model m.json --input l.csv --label a --weight y", "--weight: "+cell+cure)

	w.write("long.csv", "a,y\n1,12345678901234567891\n2,2\n3,4\n")
	w.fails(1, "train linear --input long.csv --label y --model m.json", "the first at long.csv:2: \"12345678901234567891\": have it read as numbers, which are rounded, with --types y=float64")
}

// TestColumnsWithoutAValue requires that a column without any value is an error that names the
// column and the flag that helps.
func TestColumnsWithoutAValue(t *testing.T) {
	w := newTestDir(t)
	w.write("m.csv", "k,a,y\n,1,2\n,2,4\n,3,6\n,4,8\n")
	const feature = `column "k" of m.csv has no value in any row: leave it out, naming the columns to predict from with --features`
	for _, flags := range []string{"", "--missing fill", "--missing skip", "--encode", "--encode --missing fill", "--encode --missing skip", "--features a,k", "--types k=float64 --missing fill", "--types k=utf8 --encode"} {
		told := w.fails(1, "train linear --label y --input m.csv --model m.json "+flags, feature)
		require.NotContains(t, told, "have text made features")
	}
	w.fails(1, "train kmeans --k 2 --label y --input m.csv --model m.json", feature)
	w.ok("train linear --label y --input m.csv --features a --model m.json")
	const column = `column "k" of m.csv has no value in any row`
	w.fails(1, "train linear --label k --features a --input m.csv --model m.json", "--label: "+column)
	w.fails(1, "train logistic --label k --features a --input m.csv --model m.json", "--label: "+column)
	w.fails(1, "train linear --label y --weight k --input m.csv --model m.json", "--weight: "+column)
	w.fails(1, "evaluate --kind regression --label y --prediction k --input m.csv", "--prediction: "+column)
	w.fails(1, "evaluate --kind multiclass --label k --prediction a --input m.csv", "--label: "+column)
	// A column also has a value if its only value comes after the rows from which types are
	// inferred.
	w.write("late.csv", "k,a,y\n"+strings.Repeat(",1,2\n,2,5\n", 9)+"x,1,2\nz,3,4\n")
	w.fails(1, "train linear --label y --input late.csv --infer-rows 4 --model m.json --if-exists replace", `column "k" of late.csv is text: name the columns of numbers`)
}
