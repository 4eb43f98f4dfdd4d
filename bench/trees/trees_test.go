package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/bench/internal/rawrows"
	"github.com/superstep-ml/superstep/bench/internal/rounds"
)

// TestMain lets the test binary act as a contestant.
func TestMain(m *testing.M) {
	rounds.Main("trees", func() error {
		os.Exit(m.Run())
		return nil
	}, tasks...)
}

// TestContestants requires that models learn the pattern in dense and in sparse rows, and that
// one thread and two threads give the same result.
func TestContestants(t *testing.T) {
	for _, p := range []problem{
		{"dense", rawrows.Layout{Rows: 4000, Features: 28}, byDepth},
		{"sparse", rawrows.Layout{Rows: 4000, Features: 60, PerRow: 20}, byLeaf},
		{"forest", rawrows.Layout{Rows: 4000, Features: 28}, inForest},
	} {
		dir := t.TempDir()
		require.NoError(t, prepare(dir, p.Layout, 3), p.Name)
		trees := 10
		if p.Policy == inForest {
			trees = 40 // with fewer trees, wrong predictions of 0 or 1 dominate the log-loss
		}
		var first outcome
		for threads := 1; threads <= 2; threads++ {
			got, err := task{Dir: dir, Layout: p.Layout, Threads: threads, Trees: trees, Policy: p.Policy}.run()
			require.NoError(t, err, p.Name)
			require.Greater(t, got.AUC, 0.65, p.Name)
			require.Less(t, got.LogLoss, 0.75, p.Name)
			require.Positive(t, got.Train)
			require.Positive(t, got.Predict)
			if threads == 1 {
				first = got
			}
			require.Equal(t, first.AUC, got.AUC, p.Name)
		}
	}
}

// TestTable requires that a comparison runs on few rows, without other libraries, and prints
// its table.
func TestTable(t *testing.T) {
	var out bytes.Buffer
	o := options{Problem: []string{"forest"}, Rounds: 2, Trees: 3, Threads: []int{1}, Scale: 0.005, Seed: 1, Dir: t.TempDir()}
	require.NoError(t, compare(&o, &out, io.Discard))
	require.Contains(t, out.String(), "forest: 500 rows × 28 features, 3 trees")
	left, err := filepath.Glob(filepath.Join(o.Dir, "*"))
	require.NoError(t, err)
	require.Empty(t, left)

	out.Reset()
	o.JSON = true
	require.NoError(t, compare(&o, &out, io.Discard))
	var all []comparison
	require.NoError(t, json.Unmarshal(out.Bytes(), &all))
	require.Len(t, all, 1)
	require.Equal(t, "forest", all[0].Name)
	require.Equal(t, 500, all[0].Layout.Rows)
	require.Len(t, all[0].Lines, 1)
	require.Len(t, all[0].Lines[0].Rounds, 2)
	require.Positive(t, all[0].Lines[0].Rounds[1].Train)
	o.JSON = false

	o.Python, o.Threads = "python3", []int{1, 2}
	require.Len(t, o.lines(problems[0]), 6)
	require.Len(t, o.lines(problems[4]), 4)
	o.Spark = true
	require.Len(t, o.lines(problems[0]), 8)
	require.Len(t, o.lines(problems[2]), 6)
	o.Beyond = 2.5
	require.Len(t, o.lines(problems[5]), 4)
	require.Equal(t, int64(80_000_000), o.budget(problems[5].Layout))
	require.Equal(t, 3, o.pieces())
	require.ErrorContains(t, compare(&o, &out, io.Discard), "--beyond is for trees that grow by depth")
	o.Beyond = 0.5
	require.ErrorContains(t, compare(&o, &out, io.Discard), "at least as large as memory")
	o.Beyond, o.Rounds = 0, 0
	require.Error(t, compare(&o, &out, io.Discard))
	o.Rounds, o.Threads = 1, nil
	require.Error(t, compare(&o, &out, io.Discard))
}
