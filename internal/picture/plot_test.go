package picture

import (
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/plot"
)

func TestTicks(t *testing.T) {
	for _, axis := range [][2]float64{{0, 1}, {0.1, 2.5}, {-3, 4}, {1e-9, 3e-9}, {-7e12, 9e12}, {5, 6.1}, {0, 7.9}, {1e16, 1e16 + 4}} {
		marks := Ticks(axis[0], axis[1])
		require.GreaterOrEqual(t, len(marks), 3, "%v", axis)
		require.LessOrEqual(t, len(marks), 10, "%v", axis)
		for _, m := range marks {
			require.True(t, axis[0] <= m.Value && m.Value <= axis[1], "%v: %v", axis, m)
		}
	}
	require.Equal(t, []plot.Tick{{Value: 3, Label: "3"}}, Ticks(3, 3))
}
