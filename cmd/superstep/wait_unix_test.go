//go:build unix

package main

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPlainTCP requires that the operations over plain TCP between two processes transfer the
// right bytes with each way to wait, and that the bandwidth is computed from the median time.
func TestPlainTCP(t *testing.T) {
	for pattern, legs := range map[string]float64{"exchange": 1, "ping-pong": 2} {
		code, out, errOut := command(t, "bench", "collective", "-c", pattern, "-p", "2", "-b", "1", "-e", "65537", "-f", "65537", "-n", "5", "--json", "--no-raw")
		require.Zero(t, code, errOut)
		var ways []string
		for _, l := range lines(t, out) {
			ways = append(ways, fmt.Sprint(l.Config, " ", l.Bytes))
			require.Equal(t, pattern, l.Collective)
			require.Zero(t, l.Errors)
			require.Equal(t, 5, l.Iterations)
			require.Positive(t, l.Min)
			require.LessOrEqual(t, l.Min, l.P50)
			require.LessOrEqual(t, l.P50, l.P99)
			require.InEpsilon(t, legs*float64(l.Bytes)/l.P50/1e3, l.BusBW, 1e-9)
		}
		require.Equal(t, []string{"netpoll 1", "netpoll 65537", "blocking 1", "blocking 65537", "polling 1", "polling 65537"}, ways)
	}
}
