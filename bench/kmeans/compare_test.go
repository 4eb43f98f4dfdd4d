//go:build !race

// This file is not built with the race detector, because the comparison runs dozens of
// processes, one for each contestant. Other tests run the same code in the test process, where
// the race detector can observe it.

package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCompare requires that the command runs on few rows, with each contestant in a process of
// its own, and prints its tables.
func TestCompare(t *testing.T) {
	o := options{Rows: 4000, Features: 4, Clusters: 3, Components: 2, Iterations: 3, Noise: []float64{0.3, 1}, Rounds: 2, Seed: 1, Dir: t.TempDir()}
	require.NoError(t, o.Validate())
	var out, progress strings.Builder
	_, err := compare(&o, &out, &progress)
	require.NoError(t, err)
	for _, want := range []string{"4000 rows × 4 features (0 MB), k = 3, 4 passes, noise 0.3", "noise 1", "loop, 1 goroutine", "engine, 2 subtasks", "budgets of the engine"} {
		require.Contains(t, out.String(), want)
	}
	require.Equal(t, 2*2*4, strings.Count(progress.String(), "\n"))

	o.JSON = true
	out.Reset()
	_, err = compare(&o, &out, &progress)
	require.NoError(t, err)
	o.JSON, o.Noise, o.Uniform, o.Single = false, []float64{0.4}, true, true
	o.Shapes = []string{"3000x5x4"}
	var more strings.Builder
	_, err = compare(&o, &more, &progress)
	require.NoError(t, err)
	for _, want := range []string{"3000 rows × 5 features (0 MB), k = 4, 4 passes, noise 0.4", "4 passes, uniform", "engine float32, 2 subtasks"} {
		require.Contains(t, more.String(), want)
	}
	o.Noise, o.Uniform, o.Single, o.Shapes = []float64{0.3, 1}, false, false, nil
	var tables []table
	require.NoError(t, json.Unmarshal([]byte(out.String()), &tables))
	require.Len(t, tables, 2)
	require.Len(t, tables[1].Lines, 4)
	require.Len(t, tables[1].Lines[3].Rounds, 2)
	left, err := os.ReadDir(o.Dir)
	require.NoError(t, err)
	require.Empty(t, left)

	o.Iterations = 5000
	_, err = compare(&o, &out, &progress)
	require.ErrorContains(t, err, "engine, 1 subtask: exit status 1")
}
