//go:build !race

package builtin_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestModelsRememberHowFilesAreWritten requires that predict and evaluate use the --null of the
// training, with a warning, unless --null is given.
func TestModelsRememberHowFilesAreWritten(t *testing.T) {
	w := newTestDir(t)
	var rows strings.Builder
	rows.WriteString("x,c,y\n")
	for i := range 60 {
		x, c, y := i%10, `"a"`, 2*(i%10)
		if i%5 == 0 {
			c, y = `"NA"`, y+4
		}
		if i%7 == 0 {
			x = -999
		}
		fmt.Fprintf(&rows, "%d,%s,%d\n", x, c, y)
	}
	w.write("t.csv", rows.String())
	w.write("q.csv", "x,c\n1,a\n-999,a\n1,\"NA\"\n")
	out := func(line string) (predictions []string, errOut string) {
		t.Helper()
		code, _, errOut := w.run(line + " --if-exists replace")
		require.Zero(t, code, errOut)
		for _, row := range w.table("p.csv") {
			predictions = append(predictions, row["prediction"])
		}
		return predictions, errOut
	}
	const note = "warning: --null is -999,NA, as in the training of the model"
	w.ok("train linear --input t.csv --label y --encode --missing skip --null=-999,NA --model m.json --shards 1")
	require.Contains(t, w.read("m.json"), `,"reading":{"nulls":["-999","NA"]},"checksum"`)
	given, told := out("predict --model m.json --input q.csv --null=-999,NA --output p.csv")
	require.NotEmpty(t, given[0])
	require.Equal(t, []string{"", ""}, given[1:])
	require.NotContains(t, told, note)
	remembered, told := out("predict --model m.json --input q.csv --output p.csv")
	require.Equal(t, given, remembered)
	require.Equal(t, 1, strings.Count(told, note), told)
	other, told := out("predict --model m.json --input q.csv --null=none --output p.csv")
	require.NotEqual(t, given, other)
	require.NotContains(t, told, note)

	const measure = "evaluate --model m.json --input t.csv --label y"
	require.Equal(t, w.ok(measure+" --null=-999,NA"), w.ok(measure))
	code, _, told := w.run(measure)
	require.Zero(t, code)
	require.Contains(t, told, note)
	require.Contains(t, w.ok("inspect m.json"), "missing values  -999, NA\n")
	require.Contains(t, w.ok("inspect m.json --output json"), `"nulls": [`)
}

// TestModelsRememberWhereIndicesBegin requires that evaluate uses the --zero-based of training.
func TestModelsRememberWhereIndicesBegin(t *testing.T) {
	w := newTestDir(t)
	w.write("zero.libsvm", strings.Repeat("1 0:2 2:1\n0 0:1 1:1\n1 1:5\n0 2:1\n", 9))
	w.write("one.libsvm", strings.Repeat("1 1:2 3:1\n0 1:1 2:1\n1 2:5\n0 3:1\n", 9))
	w.ok("train logistic --l2 1 --zero-based --input zero.libsvm --model m.json --shards 1")
	const measure = "evaluate --model m.json --input "
	want := w.ok(measure + "zero.libsvm --zero-based")
	code, got, told := w.run(measure + "zero.libsvm")
	require.Zero(t, code, told)
	require.Equal(t, want, got)
	require.Contains(t, told, "warning: indices count from 0, as in the training of the model")
	require.Equal(t, want, w.ok(measure+"one.libsvm --zero-based=false"))
	require.Contains(t, w.ok("inspect m.json"), "from 0\n")
	w.write("t.csv", "x,y\n1,2\n")
	w.fails(1, "train linear --label y --model n.json --input t.csv --zero-based=false", "--zero-based is for LibSVM files")
}
