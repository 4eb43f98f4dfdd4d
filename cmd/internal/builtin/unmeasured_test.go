//go:build !race

package builtin_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// warned runs a command line that must succeed. It returns the output and the warnings.
func (w *testDir) warned(line string) (out string, notes []string) {
	w.t.Helper()
	code, out, errOut := w.run(line)
	require.Zero(w.t, code, "%s: %s", line, errOut)
	for l := range strings.Lines(errOut) {
		if _, note, ok := strings.Cut(strings.TrimSpace(l), ": warning: "); ok {
			notes = append(notes, note)
		}
	}
	return out, notes
}

// TestFilesWithoutPredictions requires that, for every kind of evaluation, rows of a file
// without a label, a prediction or a weight are left out and reported.
func TestFilesWithoutPredictions(t *testing.T) {
	w := newTestDir(t)
	w.write("some.csv", "s,p,y,q,v\n0.5,1,1,a,1\n,,0,a,1\n0.2,0,,b,1\n0.9,1,1,a,\n0.1,0,0,b,1\n0.3,0,0,b,1\n")
	w.write("all.csv", "s,p,y,q,v\n0.5,1,1,a,1\n0.1,0,0,b,1\n0.3,0,0,b,1\n")
	const label, prediction, weight = "1 row without a label left out of the evaluation", "1 row without a prediction left out of the evaluation", "1 row without a weight left out of the evaluation"
	for _, flags := range []string{"binary --score s", "multiclass --prediction p", "regression --prediction s", "clustering --prediction p", "ranking --score s --group q"} {
		line := " --label y --weight v --kind " + flags
		want := w.ok("evaluate --input all.csv" + line)
		got, notes := w.warned("evaluate --input some.csv" + line)
		require.Equal(t, want, got, flags)
		require.Equal(t, []string{label, prediction, weight}, notes, flags)
	}
	w.write("none.csv", "s,y\n,1\n,0\n1,\n")
	w.fails(1, "evaluate --input none.csv --label y --kind regression --prediction s", "no row of none.csv has a label, a prediction and a weight above 0: there is nothing to measure")

	// The output of predict can be measured even if some rows have no prediction.
	w.write("t.csv", "x,y\n1,1\n2,3\n3,5\n4,4\n")
	w.ok("train linear --input t.csv --label y --model m.json")
	w.write("more.csv", "x,y\n1,1\n,2\n3,4\n")
	w.ok("predict --model m.json --input more.csv --output p.csv")
	_, notes := w.warned("evaluate --kind regression --input p.csv --label y --prediction prediction")
	require.Equal(t, []string{prediction}, notes)
}

// TestTestRowsWithoutALabel requires that every algorithm leaves rows of --test without a label
// or a weight out of the measures and reports them.
func TestTestRowsWithoutALabel(t *testing.T) {
	w := newTestDir(t)
	w.write("t.csv", "x,y,v\n1,0,1\n2,1,1\n3,0,1\n4,1,1\n5,1,2\n6,0,1\n")
	w.write("some.csv", "x,y,v\n1,0,1\n2,,1\n4,1,1\n3,1,\n")
	w.write("all.csv", "x,y,v\n1,0,1\n4,1,1\n")
	w.write("none.csv", "x,y,v\n1,,1\n")
	for _, algorithm := range []string{
		"logistic --l2 1", "linear", "naivebayes", "forest --task classification --trees 2",
		"gbdt --objective logistic --rounds 2 --min-child-weight 0 --early-stopping 1", "gbdt --objective squared --rounds 2 --min-child-weight 0",
	} {
		line := "train " + algorithm + " --input t.csv --label y --weight v --if-exists replace --model m.json --test "
		want := w.ok(line + "all.csv")
		got, notes := w.warned(line + "some.csv")
		require.Equal(t, strings.ReplaceAll(want, "all.csv", "some.csv"), got, algorithm)
		require.Contains(t, notes, "1 row of some.csv without a label left out of the evaluation", algorithm)
		require.Contains(t, notes, "1 row of some.csv without a weight left out of the evaluation", algorithm)
		require.NotContains(t, strings.Join(notes, "\n"), "left out of training", algorithm)
		told := "--test: no row of none.csv has a label"
		if strings.Contains(algorithm, "--early-stopping") {
			told = `the metric logloss on the set "test", which early stopping goes by, is defined in none of them`
		}
		w.fails(1, line+"none.csv", told)
	}
}

// TestUnknownInTestRows requires that train reports missing values in --test, and values that
// did not occur in training, in the same way as evaluate, because these values affect the
// measures.
func TestUnknownInTestRows(t *testing.T) {
	w := newTestDir(t)
	w.write("t.csv", "x,c,n,y\n"+strings.Repeat("1,a,1,0\n2,b,2,1\n3,a,1,1\n4,b,2,0\n5,b,2,1\n", 3))
	w.write("some.csv", "x,c,n,y\n1,a,1,0\n,b,2,1\n2,z,7,1\n3,z,1,0\n4,,2,1\n")
	for _, algorithm := range []string{
		"logistic --l2 1 --encode", "linear --encode --missing fill", "naivebayes --features x", "kmeans --k 2 --encode --features x,c",
		"gbdt --objective logistic --rounds 2 --min-child-weight 0 --categories n", "forest --task classification --trees 2",
	} {
		code, _, errOut := w.run("train " + algorithm + " --label y --input t.csv --model m.json --if-exists replace --test some.csv")
		require.Zero(t, code, errOut)
		_, told := w.warned("evaluate --model m.json --label y --input some.csv")
		seen := 0
		for _, note := range told {
			if !strings.Contains(note, "in column") {
				continue
			}
			seen++
			note = strings.NewReplacer("1 row has", "1 row of some.csv has", "2 rows have", "2 rows of some.csv have").Replace(note)
			require.Contains(t, errOut, ": warning: "+note+"\n", algorithm)
		}
		require.Positive(t, seen, algorithm)
		if strings.Contains(algorithm, "--encode") || strings.Contains(algorithm, "forest") {
			require.Contains(t, errOut, `2 rows of some.csv have a value in column "c" that training has not seen, such as "z"`)
		}
		_, notes := w.warned("train " + algorithm + " --label y --input t.csv --model m.json --if-exists replace")
		require.NotContains(t, strings.Join(notes, "\n"), "in column")
	}
}
