package main

import (
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/bench/internal/rawrows"
)

// TestMain runs a contestant where this process is one.
func TestMain(m *testing.M) {
	if isChild() {
		return
	}
	os.Exit(m.Run())
}

// TestContestantsAgree: all methods of ours come to one optimum, on small rows.
func TestContestantsAgree(t *testing.T) {
	for name, s := range map[string]shape{"dense": {Layout: rawrows.Layout{Rows: 400, Features: 5}}, "sparse": {Layout: rawrows.Layout{Rows: 400, Features: 60, PerRow: 4}}} {
		dir := t.TempDir()
		require.NoError(t, generate(dir, s, 3), name)
		var all []*line
		for _, method := range []optim.Method{optim.Auto, optim.Newton, optim.LBFGS} {
			for _, p := range []int{1, 2} {
				got, err := task{Dir: dir, Shape: s, L2: 1 / float64(s.Rows), Parallel: p, Method: method}.run()
				require.NoError(t, err)
				all = append(all, &line{Rounds: []outcome{got}})
			}
		}
		least := optimum(all)
		require.Less(t, least, math.Ln2)
		for _, l := range all {
			seconds, steps, ok := l.Rounds[0].until(least)
			require.True(t, ok)
			require.Positive(t, seconds)
			require.Positive(t, steps)
		}
	}
}

// TestRows: the file holds ascending columns, and both labels.
func TestRows(t *testing.T) {
	s := shape{Layout: rawrows.Layout{Rows: 300, Features: 40, PerRow: 6}}
	dir := t.TempDir()
	require.NoError(t, generate(dir, s, 1))
	labels, err := os.ReadFile(dir + "/" + rawrows.LabelsFile)
	require.NoError(t, err)
	require.Len(t, labels, 300*8)
	indices, err := os.ReadFile(dir + "/" + rawrows.IndicesFile)
	require.NoError(t, err)
	require.Len(t, indices, 300*6*4)
	for i := range 300 {
		last := -1
		for p := range 6 {
			at := int(indices[(6*i+p)*4]) // below 256
			require.Greater(t, at, last)
			require.Less(t, at, 40)
			last = at
		}
	}
	require.InDelta(t, 0.1, s.scale(0), 1e-12)
	require.InDelta(t, 3, s.scale(39), 1e-12)
}
