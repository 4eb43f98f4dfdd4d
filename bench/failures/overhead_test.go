package main

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProcessorTicks(t *testing.T) {
	ticks, err := processorTicks([]byte("7 (a) b (c)) S 1 2 3 4 5 6 7 8 9 10 100 20 3 4 20 0 1 0\n"))
	require.NoError(t, err)
	require.Equal(t, uint64(127), ticks)
	for _, line := range []string{"", "7 (a) S 1", "7 (a) S 1 2 3 4 5 6 7 8 9 10 x 20 3 4 20"} {
		_, err := processorTicks([]byte(line))
		require.Error(t, err, line)
	}
}

// TestRatios compares with a confidence interval by the table of Student's distribution: t(0.975, 3) = 3.1824.
func TestRatios(t *testing.T) {
	mean, lo, hi := ratios([]float64{2, 8, 2, 8}, []float64{1, 1, 2, 2})
	// The logarithms are those of 2, 8, 1 and 4: 1, 3, 0 and 2 times log 2, with deviation sqrt(5/3).
	require.InDelta(t, math.Pow(2, 1.5), mean, 1e-12)
	half := 3.18245 * math.Sqrt(5./3) / 2
	require.InDelta(t, math.Pow(2, 1.5-half), lo, 1e-4)
	require.InDelta(t, math.Pow(2, 1.5+half), hi, 1e-3)
}
