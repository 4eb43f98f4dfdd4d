package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fakeVariable is the environment variable that makes this program act as the command
// superstep, or as Java with Alink. Its value is the number that the fake Alink predicts: a
// distance for k-means, and the probability of the true class for the other problems. If the
// value is "none", the fake Alink saves no model.
const fakeVariable = "SUPERSTEP_BENCH_ALINK_TEST"

func TestMain(m *testing.M) {
	if prediction := os.Getenv(fakeVariable); prediction != "" {
		if err := fakeTrainer(prediction, os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// fakeTrainer acts as the command superstep or as Alink, depending on args. If args request a
// training, it saves prediction as the model. If args request predictions, it writes prediction
// for every row. The fake superstep always uses 0.8 as prediction.
func fakeTrainer(prediction string, args []string) error {
	csv, model, output := "", "", ""
	if at := slices.Index(args, alinkProgram); at >= 0 {
		args = args[at+1:]
		csv, model, output = args[2], args[4], args[6]
	} else {
		after := func(flag string) string {
			at := slices.Index(args, flag)
			return args[(at+1)%len(args)]
		}
		csv, model, output = after("--input"), after("--model"), after("--output")
		prediction = "0.8"
	}
	if args[0] == "train" {
		if prediction == "none" {
			return nil
		}
		return os.WriteFile(model, []byte(prediction), 0o600)
	}
	rows, err := os.ReadFile(csv)
	if err != nil {
		return err
	}
	header, lines, _ := strings.Cut(string(rows), "\n")
	var out strings.Builder
	ours, labelled := slices.Contains(args, "--keep"), strings.HasSuffix(header, labelColumn)
	if ours {
		fmt.Fprintln(&out, map[bool]string{true: "label,prediction,probability_0,probability_1", false: "x0,cluster,distance"}[labelled])
	}
	for line := range strings.Lines(lines) {
		label, other := line[len(line)-2:len(line)-1], "0"
		if label == "0" {
			other = "1"
		}
		p, err := strconv.ParseFloat(prediction, 64)
		if err != nil {
			return err
		}
		of := map[string]string{label: prediction, other: fmt.Sprintf("%.1f", 1-p)}
		switch {
		case labelled && ours:
			fmt.Fprintf(&out, "%s,0,%s,%s\n", label, of["0"], of["1"])
		case labelled:
			fmt.Fprintf(&out, "%s,\"{\"\"0\"\":%s,\"\"1\"\":%s}\"\n", label, of["0"], of["1"])
		case ours:
			fmt.Fprintf(&out, "0.5,3,%s\n", prediction)
		default:
			fmt.Fprintln(&out, prediction)
		}
	}
	return os.WriteFile(output, []byte(out.String()), 0o600)
}

// fakeOptions returns the options of a comparison of the fake superstep with the fake Alink,
// which predicts prediction.
func fakeOptions(t *testing.T, prediction string) *options {
	t.Helper()
	t.Setenv(fakeVariable, prediction)
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "classes"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "classes", alinkProgram+".class"), nil, 0o600))
	return &options{
		Alink: dir, Java: os.Args[0], Superstep: os.Args[0], Problems: []string{"kmeans", "gbdt"},
		Rows: 100, Rounds: 2, Threads: []int{1, 2}, Seed: 1, Dir: t.TempDir(),
	}
}

// TestTurns requires that contestants take turns in an order that changes every round, and that
// the table has a line for each contestant and number of threads.
func TestTurns(t *testing.T) {
	o := fakeOptions(t, "0.8")
	require.NoError(t, o.Validate())
	var out, progress bytes.Buffer
	require.NoError(t, compare(o, &out, &progress))
	for _, want := range []string{
		"kmeans: 100 rows × 16 features, 20 updates of 10 centres, from a CSV file to a saved model; medians of 2 rounds",
		"gbdt: 100 rows × 28 features, 20 trees of depth 6,", "superstep, 1", "Alink, 2",
	} {
		require.Contains(t, out.String(), want)
	}
	require.Equal(t, `kmeans, round 1 of 2: superstep, 1
kmeans, round 1 of 2: Alink, 1
kmeans, round 1 of 2: superstep, 2
kmeans, round 1 of 2: Alink, 2
kmeans, round 2 of 2: Alink, 2
kmeans, round 2 of 2: superstep, 2
kmeans, round 2 of 2: Alink, 1
kmeans, round 2 of 2: superstep, 1
`, progress.String()[:strings.Index(progress.String(), "gbdt")])
	left, err := os.ReadDir(o.Dir)
	require.NoError(t, err)
	require.Empty(t, left)

	out.Reset()
	o.JSON = true
	require.NoError(t, compare(o, &out, io.Discard))
	var tables []struct {
		Problem string
		Rows    int
		Figures []string
		Lines   []line
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &tables))
	require.Len(t, tables, 2)
	require.Equal(t, "gbdt", tables[1].Problem)
	require.Equal(t, 100, tables[1].Rows)
	require.Equal(t, []string{"log-loss", "AUC"}, tables[1].Figures)
	require.InDelta(t, 64, tables[0].Lines[3].Quality[0], 1e-9) // 100 times 0.8²
	require.InDeltaSlice(t, []float64{0.22314355131, 1}, tables[1].Lines[1].Quality, 1e-9)
	for _, l := range tables[1].Lines {
		require.Len(t, l.Rounds, 2)
		require.Positive(t, l.Median.Wall)
		require.Positive(t, l.Ratio.Wall)
	}
	require.Equal(t, 1.0, tables[1].Lines[2].Ratio.Wall)
}

// TestUnlike requires that compare fails and prints no times if the models differ in quality.
func TestUnlike(t *testing.T) {
	o := fakeOptions(t, "0.9")
	var out bytes.Buffer
	require.EqualError(t, compare(o, &out, io.Discard), "kmeans: contestants did not find the same, so that their times say nothing: "+
		"the inertia of Alink, 1 is 81, that of superstep, 1 64; the inertia of Alink, 2 is 81, that of superstep, 1 64")
	o.Problems = o.Problems[1:]
	require.ErrorContains(t, compare(o, &out, io.Discard), "gbdt: contestants did not find the same, so that their times say nothing: "+
		"the log-loss of Alink, 1 is 0.105361, that of superstep, 1 0.223144")
	require.Empty(t, out.String())
}

func TestFailures(t *testing.T) {
	o := fakeOptions(t, "none")
	require.ErrorContains(t, compare(o, io.Discard, io.Discard), "kmeans: Alink, 1: there is no model in ")
	o.Java = filepath.Join(o.Dir, "java")
	require.ErrorIs(t, compare(o, io.Discard, io.Discard), os.ErrNotExist)
	o.Alink = o.Dir
	require.ErrorContains(t, compare(o, io.Discard, io.Discard), "install it as the program's documentation says")
	for name, change := range map[string]func(*options){
		"rows": func(o *options) { o.Rows = 99 }, "rounds": func(o *options) { o.Rounds = 0 },
		"no threads": func(o *options) { o.Threads = nil }, "threads": func(o *options) { o.Threads = []int{2, 0} },
	} {
		bad := *o
		change(&bad)
		require.Error(t, bad.Validate(), name)
	}
}

// TestPredictions requires that readPredictions refuses text that has no valid predictions.
func TestPredictions(t *testing.T) {
	for text, want := range map[string]string{
		"":                                    "EOF",
		"x0,cluster\n1,2\n":                   `there are no predictions in columns ["x0" "cluster"]`,
		"x0,distance\n1,far\n":                "invalid syntax",
		"label,detail\n1,\"{\"\"0\"\":1}\"\n": "invalid syntax",
		"label,detail\n1,0.5\n":               "cannot unmarshal",
		"distance\n1,2\n":                     "wrong number of fields",
	} {
		_, err := readPredictions(strings.NewReader(text), nil)
		require.ErrorContains(t, err, want, text)
	}
}
