//go:build !race

// This file is not built with the race detector, because the comparison runs each contestant in
// a process of its own. Other tests run the same code in the test process, where the race
// detector can observe it.

package main

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTable requires that the whole comparison runs on few rows, without scikit-learn, and
// prints its table.
func TestTable(t *testing.T) {
	var out bytes.Buffer
	o := options{Problem: []string{"dense"}, Methods: []string{"Newton"}, Threads: []int{1, 2}, Rounds: 2, Scale: 0.002, Seed: 1, Dir: t.TempDir()}
	require.NoError(t, compare(&o, &out, io.Discard))
	require.Contains(t, out.String(), "dense: 1000 rows × 50 features")
	require.Contains(t, out.String(), "Newton")
	require.Regexp(t, `COST: ours, Newton, 1 takes [0-9.]+ times`, out.String())
	out.Reset()
	o.Problem, o.Higgs = []string{stochasticProblem}, "../../algorithms/objective/testdata/higgs.tsv.gz"
	require.NoError(t, compare(&o, &out, io.Discard))
	require.Contains(t, out.String(), "sgd: 7000 rows × 28 features, optimum 0.63823443")
	require.Contains(t, out.String(), "ours, constant")
	o.Python, o.Problem = "python3", []string{"dense"}
	for name, count := range map[string]int{"dense": 6, "lasso": 3} {
		all, err := o.lines(problem{Name: name, Lasso: name == "lasso"})
		require.NoError(t, err)
		require.Len(t, all, count)
	}
	o.Python, o.Methods = "", []string{"Simplex"}
	require.ErrorContains(t, compare(&o, &out, io.Discard), `no method "Simplex"`)
	o.Threads = []int{1, 0}
	require.ErrorContains(t, compare(&o, &out, io.Discard), "threads of at least 1")
	o.Rounds = 0
	require.Error(t, compare(&o, &out, io.Discard))
}
