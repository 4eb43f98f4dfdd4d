package kernel_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/kernel"
)

func TestSoftmaxTo(t *testing.T) {
	margins, got := []float64{1000, -1000, 1000 - math.Ln2}, make([]float64, 3)
	top, sum := kernel.SoftmaxTo(got, margins)
	require.Equal(t, 1000.0, top)
	require.InDelta(t, 1.5, sum, 1e-12)
	require.InDeltaSlice(t, []float64{2. / 3, 0, 1. / 3}, got, 1e-12)
	kernel.SoftmaxTo(margins, margins)
	require.Equal(t, got, margins)
	_, sum = kernel.SoftmaxTo(got, []float64{0, math.NaN(), 1})
	require.True(t, math.IsNaN(sum))
	for _, p := range got {
		require.True(t, math.IsNaN(p))
	}
}
