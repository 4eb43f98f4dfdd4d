package trial

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/tree"
)

// SameTrees requires that two ensembles have the same bits. If they differ, it shows the first
// tree that differs.
func SameTrees(t testing.TB, want, got *tree.Ensemble, about ...any) {
	t.Helper()
	a, b := treesOf(t, want), treesOf(t, got)
	for i := range min(len(a), len(b)) {
		require.Equal(t, a[i], b[i], about...)
	}
	require.Len(t, b, len(a), about...)
}

// treesOf returns the JSON text of an ensemble, split between trees.
func treesOf(t testing.TB, e *tree.Ensemble) []string {
	t.Helper()
	text, err := e.AppendJSON(nil)
	require.NoError(t, err)
	return strings.Split(string(text), "},{")
}

// Margins computes the margins of a row by walking the trees from node to node, by the
// definitions of package tree.
func Margins(e *tree.Ensemble, row []float64) []float64 {
	sums, counts := make([]float64, e.Outputs), make([]float64, e.Outputs)
	for i := range e.Trees {
		t := &e.Trees[i]
		leaf := t.Leaf(row, e.Single)
		if t.Values == nil {
			sums[t.Output] += float64(t.Weight * t.Nodes[leaf].Value)
			counts[t.Output]++
			continue
		}
		for o := range sums {
			sums[o] += float64(t.Weight * t.Values[int(leaf)*e.Outputs+o])
			counts[o]++
		}
	}
	for o := range sums {
		if e.Average && counts[o] > 0 {
			sums[o] /= counts[o]
		}
		sums[o] += e.Base[o]
	}
	return sums
}

// AllMargins returns the margins of rows, one row after another.
func AllMargins(e *tree.Ensemble, rows [][]float64) []float64 {
	var all []float64
	for _, row := range rows {
		all = append(all, Margins(e, row)...)
	}
	return all
}

// RequireNear requires that numbers agree within the tolerance, relative to the larger of their
// size and 1.
func RequireNear(t testing.TB, tolerance float64, want, got []float64, what string) {
	t.Helper()
	require.Len(t, got, len(want), what)
	for i := range want {
		require.LessOrEqual(t, math.Abs(got[i]-want[i]), tolerance*max(1, math.Abs(want[i])),
			"%s: number %d is %v, not %v", what, i, got[i], want[i])
	}
}
