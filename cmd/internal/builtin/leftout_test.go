//go:build !race

package builtin_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// categoriesIn returns the categories in the one-hot encoder of a model file, one list per
// column.
func (w *testDir) categoriesIn(model string) [][]string {
	w.t.Helper()
	var file struct {
		Payload struct {
			Stages []struct {
				Kind    string
				Payload struct{ Values [][]string }
			}
		}
	}
	require.NoError(w.t, json.Unmarshal([]byte(w.read(model)), &file))
	for _, s := range file.Payload.Stages {
		if s.Kind == "one-hot-encoder" {
			return s.Payload.Values
		}
	}
	return nil
}

// TestNothingIsLearnedFromRowsLeftOut requires that a model has the same categories as a model
// trained on a file without the rows that are left out. For the algorithm linear, it also
// requires that the predictions are equal.
func TestNothingIsLearnedFromRowsLeftOut(t *testing.T) {
	w := newTestDir(t)
	const good = "a,1,1,1\na,2,2.1,1\na,3,3,1\na,4,4.2,1\nb,1,11,1\nb,2,12.2,1\nb,3,13,1\nb,4,14.1,1\n"
	w.write("good.csv", "c,x,y,w\n"+good)
	w.write("new.csv", "c,x\na,2\nz,2\n")
	predicted := func(model string) []map[string]string {
		code, _, errOut := w.run("predict --if-exists replace --input new.csv --output p.csv --model " + model)
		require.Zero(t, code, errOut)
		require.Contains(t, errOut, `1 row has a value in column "c" that training has not seen, such as "z": it counts as the average`)
		return w.table("p.csv")
	}
	const flags = " --label y --weight w --if-exists replace --model "
	for _, algorithm := range []string{"linear", "kmeans --k 2 --features c,x", "gbdt --objective squared --rounds 3", "svr"} {
		w.ok("train " + algorithm + " --encode --input good.csv" + flags + "good.json")
		for what, rows := range map[string]string{"feature": "z,,50,1\n", "number": "z,NaN,50,1\n", "infinity": "z,inf,50,1\n", "label": "z,3,,1\n", "weight": "z,3,50,\n", "no weight": "z,3,50,0\n"} {
			if what == "label" && strings.HasPrefix(algorithm, "kmeans") {
				continue // clustering needs no label
			}
			w.write("some.csv", "c,x,y,w\n"+rows+good+rows)
			code, _, errOut := w.run("train " + algorithm + " --encode --missing skip --input some.csv" + flags + "some.json")
			require.Zero(t, code, errOut)
			switch what {
			case "no weight":
			case "infinity":
				require.Contains(t, errOut, "warning: 2 rows with infinite values left out of training\n", what)
			default:
				require.Contains(t, errOut, "warning: 2 rows with missing values left out of training\n", what)
			}
			require.NotContains(t, errOut, "determined by others", what)
			require.Equal(t, [][]string{{"a", "b"}}, w.categoriesIn("some.json"), "%s: %s", algorithm, what)
			if algorithm == "linear" {
				want, got := predicted("good.json"), predicted("some.json")
				for i := range want {
					require.InDelta(t, number(t, want[i]["prediction"]), number(t, got[i]["prediction"]), 1e-9, what)
				}
			}
		}
	}
	// With --missing fill, categories that occur only in rows of weight 0 are not learned
	// either.
	w.write("some.csv", "c,x,y,w\nz,900,3,0\nz,900,3,0\n,900,4,0\n"+good)
	w.ok("train linear --encode --missing fill --input some.csv" + flags + "some.json")
	require.Equal(t, [][]string{{"a", "b"}}, w.categoriesIn("some.json"))
}

// TestMissingFeaturesOfTrees requires that --missing skip and --missing refuse have an effect
// for trees, which accept missing values by default.
func TestMissingFeaturesOfTrees(t *testing.T) {
	w := newTestDir(t)
	w.write("some.csv", "a,b,c,y\n1,2,x,0\n2,3,z,1\n,3,x,1\n3,,x,1\n4,5,,1\n4,4,x,0\n5,NaN,x,1\n7,inf,z,1\n")
	w.write("full.csv", "a,b,c,y\n1,2,x,0\n2,3,z,1\n4,4,x,0\n7,inf,z,1\n")
	for _, trees := range []string{"gbdt --objective logistic --rounds 2 --min-child-weight 0", "forest --task classification --trees 3"} {
		train := "train " + trees + " --label y --if-exists replace --parallelism 1 --shards 1 --input "
		code, _, errOut := w.run(train + "some.csv --missing skip --model skipped.json")
		require.Zero(t, code, errOut)
		require.Contains(t, errOut, "warning: 4 rows with missing values left out of training\n")
		w.ok(train + "full.csv --model full.json")
		w.ok(train + "some.csv --model all.json")
		require.Equal(t, w.read("full.json"), w.read("skipped.json"), trees)
		require.NotEqual(t, w.read("all.json"), w.read("skipped.json"), trees)
		w.fails(1, train+"some.csv --missing refuse --model none.json", `some.csv:4: column "a": it is null; --missing fill puts a value in its place, --missing skip leaves such rows out`)
		w.ok(train + "full.csv --missing refuse --model full.json")
	}

	// NaN in a vector is a missing component. Absent components of sparse rows are not missing.
	w.write("some.libsvm", "0 1:1 3:3\n1 1:2 3:nan\n1 2:5\n0 1:2\n")
	train := "train gbdt --objective logistic --rounds 1 --input some.libsvm --parallelism 1 --if-exists replace --model m.json"
	told := w.fails(1, train+" --missing refuse", `some.libsvm:2: column "features": component 2 is NaN; --missing skip leaves such rows out`)
	require.NotContains(t, told, "--missing fill")
	_, _, told = w.run(train + " --missing skip")
	require.Contains(t, told, "warning: 1 row with missing values left out of training\n")

	// A missing weight is an error, also if a stage before the algorithm uses weights.
	w.write("w.csv", "c,w,y\na,1,1\nb,,2\na,2,1\n")
	for _, how := range []string{"--encode", "--encode --missing fill"} {
		w.fails(1, "train linear --input w.csv --label y --weight w --parallelism 1 --model m.json --if-exists replace "+how, "--missing skip leaves such rows out")
	}
}

// TestRowsThatAreNotMeasured requires that evaluate and train report how many rows are not
// measured and which value these rows lack, and that each row is counted once.
func TestRowsThatAreNotMeasured(t *testing.T) {
	w := newTestDir(t)
	told := func(line string, want ...string) {
		t.Helper()
		code, _, errOut := w.run(line)
		require.Zero(t, code, errOut)
		var got []string
		for l := range strings.Lines(errOut) {
			if _, note, ok := strings.Cut(strings.TrimSpace(l), ": warning: "); ok && strings.Contains(note, "evaluation") {
				got = append(got, note)
			}
		}
		require.Equal(t, want, got, line)
	}
	w.write("t.csv", "x,y,c\n1,1,a\n2,3,b\n3,5,a\n4,4,b\n")
	w.write("some.csv", "x,y,c\n1,1,a\n2,,b\n3,5,\n,4,a\n,,b\n2,2,b\n")
	const label, none = "left out of the evaluation", "without a prediction left out of the evaluation"
	const flags = " --if-exists replace --model m.json --input t.csv"
	w.ok("train linear --features x --label y" + flags)
	told("evaluate --model m.json --label y --input some.csv", "2 rows without a label "+label, "1 row "+none)
	told("train linear --features x --label y --test some.csv"+flags, "2 rows of some.csv without a label "+label, "1 row of some.csv "+none)
	w.ok("train logistic --l2 1 --features x --label c" + flags)
	told("evaluate --model m.json --label c --input some.csv", "1 row without a label "+label, "2 rows "+none)
	told("evaluate --kind multiclass --model m.json --label c --input some.csv", "1 row without a label "+label, "2 rows "+none)
	told("train logistic --l2 1 --features x --label c --test some.csv"+flags, "1 row of some.csv without a label "+label, "2 rows of some.csv "+none)
	w.ok("train kmeans --k 2 --features x" + flags)
	code, _, errOut := w.run("train gbdt --objective squared --features x --label y --missing skip --input some.csv --test some.csv --if-exists replace --model g.json")
	require.Zero(t, code, errOut)
	require.Contains(t, errOut, "warning: 3 rows with missing values left out of training\n", "rows of --test must not be counted as rows of the training")
	require.Contains(t, errOut, "2 rows of some.csv without a label "+label)
	told("evaluate --model m.json --input some.csv", "2 rows "+none)
	told("evaluate --model m.json --label c --input some.csv", "1 row without a label "+label, "2 rows "+none)
	told("train kmeans --k 2 --features x --label c --missing skip --if-exists replace --model m.json --input some.csv", "1 row of some.csv without a label "+label)
}

// TestScoresAtTheThresholdOfModelsAndFiles requires that a score equal to the threshold counts
// as negative, whether a model computes the score or a file contains it.
func TestScoresAtTheThresholdOfModelsAndFiles(t *testing.T) {
	w := newTestDir(t)
	w.write("half.csv", "x,y\n1,0\n1,1\n1,0\n1,1\n")
	w.ok("train logistic --input half.csv --label y --model m.json --l2 1")
	w.ok("predict --model m.json --input half.csv --output p.csv")
	var fromModel, fromFile struct {
		TruePositive float64 `json:"true_positive"`
		TrueNegative float64 `json:"true_negative"`
	}
	for _, row := range w.table("p.csv") {
		require.Equal(t, []string{"0.5", "0"}, []string{row["probability_1"], row["prediction"]})
	}
	w.json("evaluate --model m.json --input half.csv --label y --output json", &fromModel)
	w.json("evaluate --kind binary --score probability_1 --input p.csv --label y --output json", &fromFile)
	require.Equal(t, []float64{0, 2}, []float64{fromModel.TruePositive, fromModel.TrueNegative})
	require.Equal(t, fromModel, fromFile)
}

// number returns the number in a cell of a table.
func number(t *testing.T, cell string) float64 {
	v, err := strconv.ParseFloat(cell, 64)
	require.NoError(t, err)
	return v
}
