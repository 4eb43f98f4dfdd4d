package rows

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCodes requires that codes keep the numbers that were assigned to them, with and without a
// map, and that codes that were not added have no number.
func TestCodes(t *testing.T) {
	all := []uint64{1 << 63, 0, math.MaxUint64, 7, 1, 1<<63 + 1, 1<<63 - 1, 6, 5, 1 << 32, 1<<32 - 1, 9}
	var c codes
	require.Equal(t, -1, c.find(0))
	for n, code := range all {
		require.Equal(t, n, c.add(code))
		for range 2 {
			for i, other := range all {
				if i > n {
					i = -1
				}
				require.Equal(t, i, c.find(other))
			}
		}
	}
}
