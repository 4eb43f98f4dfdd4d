package kernel

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOrderKeysKeepTheOrder(t *testing.T) {
	numbers := []float64{math.Inf(-1), -math.MaxFloat64, -1, -5e-324, 0, 5e-324, 1, 1.5, math.MaxFloat64, math.Inf(1)}
	for i, v := range numbers {
		require.Equal(t, v, OrderValue(OrderKey(v)))
		if i > 0 {
			require.Less(t, OrderKey(numbers[i-1]), OrderKey(v))
		}
	}
	require.Equal(t, OrderKey(0), OrderKey(math.Copysign(0, -1)))
}
