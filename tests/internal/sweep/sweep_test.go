package sweep

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDifferencesNeedTwoRuns requires that a run cannot pass because it is compared with no
// other run.
func TestDifferencesNeedTwoRuns(t *testing.T) {
	one, other := Digest{Parallelism: 2, Piece: "rows", Sum: "a"}, Digest{Parallelism: 3, Piece: "rows", Sum: "a"}
	require.Empty(t, Differences([]Digest{one, other}, false, ""))
	for _, dependsOnParallelism := range []bool{false, true} {
		require.Panics(t, func() { Differences([]Digest{one}, dependsOnParallelism, "") })
	}
	require.Panics(t, func() { Differences([]Digest{one, other}, true, "") })
	require.Panics(t, func() { Differences([]Digest{one, one}, false, "") }, "a run must not be compared with itself")
}
