package rounds

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOrder(t *testing.T) {
	all := []string{"a", "b", "c"}
	for round, want := range []string{"abc", "cba", "bca", "acb", "cab", "bac", "abc"} {
		got := Order(all, round)
		require.Equal(t, want, got[0]+got[1]+got[2], "round %d", round)
	}
	require.Equal(t, []string{"a", "b", "c"}, all)
}

func TestMedian(t *testing.T) {
	all := []float64{5, 1, 3}
	require.Equal(t, 3.0, Median(all))
	require.Equal(t, []float64{5, 1, 3}, all)
	require.Equal(t, 2.0, Median([]float64{9, 2, 1, 4}))
	require.True(t, math.IsNaN(Median(nil)))
	// The rounds' ratios are 4, 1 and 2: their median is not the ratio of the medians.
	require.Equal(t, 2.0, MedianRatio([]float64{8, 5, 6}, []float64{2, 5, 3}))
}
