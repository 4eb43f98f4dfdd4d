//go:build !race

package builtin_test

import (
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMissingText requires that missing text is an error in training, like a missing number,
// and that it does not become a category.
func TestMissingText(t *testing.T) {
	w := newTestDir(t)
	w.write("t.csv", "c,y\n"+strings.Repeat(",1\nx,0\nz,0\nz,1\n", 10))
	const train = "train logistic --input t.csv --label y --l2 0.1 --encode --parallelism 1 --if-exists replace --model m.json "
	w.fails(1, train, `t.csv:2: column "c": it is null; --missing fill puts a value in its place, --missing skip leaves such rows out`)
	w.fails(1, "train kmeans --k 2 --input t.csv --encode --parallelism 1 --model k.json --features c", `t.csv:2: column "c": it is null`)

	// Predict writes a row without a value, but gives it no prediction.
	w.write("full.csv", "c,y\n"+strings.Repeat("x,0\nx,0\nx,1\nz,0\nz,1\nz,1\nz,1\nz,1\n", 10))
	w.ok(strings.Replace(train, "t.csv", "full.csv", 1))
	code, out, errOut := w.run("predict --model m.json --input t.csv --output p.csv")
	require.Zero(t, code, errOut)
	require.Equal(t, "predictions of 40 rows written to p.csv\n", out)
	require.Contains(t, errOut, `warning: 10 rows have no value in column "c": they are without a prediction`+"\n")
	for _, row := range w.table("p.csv") {
		require.Equal(t, row["c"] == "", row["prediction"] == "")
	}

	// A category that did not occur in training counts as the average of the training rows, of
	// which 3/8 have x and 5/8 have z. This must hold for either choice of the category without
	// a component.
	w.write("new.csv", "c\nx\nz\nOslo\n")
	w.ok("predict --model m.json --input new.csv --output p.csv --if-exists replace")
	rows := w.table("p.csv")
	var logits []float64
	for _, row := range rows {
		p, err := strconv.ParseFloat(row["probability_1"], 64)
		require.NoError(t, err)
		logits = append(logits, logit(p))
	}
	require.InDelta(t, 3.0/8*logits[0]+5.0/8*logits[1], logits[2], 1e-9)
	require.Greater(t, logits[1]-logits[2], 0.1, "an unseen category must not count as the last category")
}

// TestSpellingsOfMissingValues requires that the usual spellings of missing values do not turn a
// column of numbers into text, even if they come after the rows from which types are inferred.
// Warnings must report which cells were read as missing values, and which cell made a column
// text.
func TestSpellingsOfMissingValues(t *testing.T) {
	w := newTestDir(t)
	warned := func(line string) string {
		code, _, errOut := w.run(line)
		require.Zero(t, code, errOut)
		return errOut
	}
	many := "a,b,y\n" + strings.Repeat("1,2,0\n3,1,1\n2,3,1\n4,1,0\n", 3000)
	w.write("late.csv", many+"NA,2,1\n3,?,1\n4,n/a,0\n1,NA,0\n")
	const flags = " --label y --model m.json --if-exists replace --input "
	w.fails(1, "train logistic --parallelism 1"+flags+"late.csv", `late.csv:12002: column "a" is null`)
	errOut := warned("train logistic --missing fill" + flags + "late.csv")
	require.Contains(t, errOut, `warning: cells read as missing values: 1 of "?" in column "b", 1 of "N/A" in column "b", 1 of "NA" in column "a", 1 of "NA" in column "b"`+"\n")
	errOut = warned("train gbdt --objective logistic --rounds 2 --features a" + flags + "late.csv")
	require.Contains(t, errOut, `warning: cells read as missing values: 1 of "NA" in column "a"`+"\n")

	// Predict reads the usual spellings as missing values, too.
	w.write("rows.csv", "a,b\n1,2\nnull,2\n3,\nNaN,1\n")
	errOut = warned("predict --model m.json --input rows.csv --output p.csv")
	require.Contains(t, errOut, `warning: 2 rows have no value in column "a"`)
	require.NotContains(t, errOut, `column "b"`, "a column that the model does not read must not be reported")
	require.Len(t, w.table("p.csv"), 4)

	// The list in --null replaces the usual spellings, in columns of text too.
	w.write("dash.csv", strings.ReplaceAll(many, "4,1,0", "4,-,0")+"NA,2,1\n")
	w.fails(1, "train logistic"+flags+"dash.csv", `column "b" of dash.csv is text: name the columns`)
	w.fails(1, "train logistic --missing fill --null -"+flags+"dash.csv", `dash.csv:12002: column "a": cannot read "NA" as int64`)
	w.ok("train logistic --missing fill --null -,NA" + flags + "dash.csv")
	w.write("text.csv", "c,y\n"+strings.Repeat("?,1\nx,0\nNA,0\nz,1\n,0\n", 10))
	w.ok("train logistic --encode --missing skip --null ? --l2 1" + flags + "text.csv")
	require.Contains(t, w.read("m.json"), `[["NA","x","z"]]`)

	// A single cell that is not a number makes a column text, and messages name the cell.
	w.write("odd.csv", strings.Replace(many, "3,1,1\n2,3,1\n", "3,1,1\nabc,3,1\n", 1))
	const why = `column "a" is text as 1 of 10000 values is no number, the first at odd.csv:4: "abc"`
	w.fails(1, "train logistic"+flags+"odd.csv", why+": where that stands for a missing value, say so with --null; otherwise name")
	require.Contains(t, warned("train gbdt --objective logistic --rounds 2"+flags+"odd.csv"), "warning: "+why+"\n")
	w.ok("train logistic --missing fill --null abc" + flags + "odd.csv")
	w.write("odd2.csv", many+"1,2,1\nabc,2,0\n")
	w.fails(1, "train logistic --parallelism 1"+flags+"odd2.csv", `odd2.csv:12003: column "a": cannot read "abc" as int64: it is not a whole number; the type was inferred from the first 10000 rows`)
}

// TestSurveyOfRows requires that predict and evaluate report missing values, and values that
// did not occur in training.
func TestSurveyOfRows(t *testing.T) {
	w := newTestDir(t)
	w.write("t.csv", "c,n,y\n"+strings.Repeat("x,1,0\nx,2,1\nz,2,1\n,,1\nz,1,0\n", 4))
	w.write("new.csv", "c,n,y\nx,1,0\nOslo,,1\nRome,NA,1\nz,2,0\n,nan,1\n")
	for _, x := range []struct{ train, absent, unseen string }{
		{"logistic --l2 1 --encode --missing fill", "it is filled in as in training", "they count as the average of those it has"},
		{"kmeans --k 2 --features c,n --encode --missing fill", "it is filled in as in training", "they count as none of those it has"},
		{"gbdt --objective logistic --rounds 2 --min-child-weight 0", "", "they go where missing values go"},
		{"forest --task classification --trees 3", "", "they go where missing values go"},
	} {
		w.ok("train " + x.train + " --input t.csv --label y --model m.json --if-exists replace")
		for _, line := range []string{"predict --output p.csv --if-exists replace", "evaluate --label y"} {
			for _, p := range []string{"1", "4"} {
				code, _, errOut := w.run(line + " --model m.json --input new.csv --parallelism " + p)
				require.Zero(t, code, errOut)
				require.Contains(t, errOut, `warning: 2 rows have a value in column "c" that training has not seen, such as "Oslo": `+x.unseen+"\n", x.train)
				want := `warning: 3 rows have no value in column "n"`
				if x.absent != "" {
					want += ": " + x.absent
				}
				require.Contains(t, errOut, want+"\n", x.train)
			}
		}
	}
	w.ok("train logistic --l2 1 --encode --missing skip --input t.csv --label y --model m.json --if-exists replace")
	code, out, errOut := w.run("predict --model m.json --input new.csv --output p.csv --if-exists replace")
	require.Zero(t, code, errOut)
	require.Equal(t, "predictions of 5 rows written to p.csv\n", out)
	require.Contains(t, errOut, `such as "Oslo": they count as the average of those it has`)
	require.Contains(t, errOut, `3 rows have no value in column "n": they are without a prediction`)
	require.Contains(t, errOut, `1 row has no value in column "c": it is without a prediction`)
}

// TestSurveyOfNumberedCategories requires the same as TestSurveyOfRows for categories that are
// numbers, with boosted trees and with forests.
func TestSurveyOfNumberedCategories(t *testing.T) {
	w := newTestDir(t)
	w.write("t.csv", "k,y\n"+strings.Repeat("0,1\n1,2\n3,5\n65535,4\n", 20))
	w.write("more.csv", "k,y\n"+strings.Repeat("0,1\n9,7\n", 20))
	w.write("new.csv", "k,y\n0,1\n9,1\n65535,4\n-1,1\n,2\n1,2\n2,2\n70000,1\n")
	unseen := func(want string) {
		t.Helper()
		for _, line := range []string{"predict --output p.csv --if-exists replace", "evaluate --label y"} {
			code, _, errOut := w.run(line + " --model m.json --input new.csv")
			require.Zero(t, code, errOut)
			require.Contains(t, errOut, "warning: "+want+": they go where missing values go\n")
			require.Contains(t, errOut, `warning: 1 row has no value in column "k"`+"\n")
		}
	}
	for _, trees := range []string{"gbdt --objective squared --rounds 3", "forest --task regression --trees 3"} {
		w.ok("train " + trees + " --categories k --input t.csv --label y --model m.json --if-exists replace")
		unseen(`4 rows have a value in column "k" that training has not seen, such as 9`)
		require.Regexp(t, `"seen":\[\{"feature":0,"codes":\[0,1,3,65535\]\}\]`, w.read("m.json"))
		missing := ""
		for _, row := range w.table("p.csv") {
			if row["k"] == "" {
				missing = row["prediction"]
			}
		}
		for _, row := range w.table("p.csv") {
			if row["k"] == "9" || row["k"] == "-1" || row["k"] == "2" {
				require.Equal(t, missing, row["prediction"])
			}
		}
	}
}

func logit(p float64) float64 { return math.Log(p / (1 - p)) }
