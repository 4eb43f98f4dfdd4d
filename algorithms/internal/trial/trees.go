package trial

import (
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
