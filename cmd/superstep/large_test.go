//go:build soak

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOneAlgorithmThatIsTooLargeLeavesTheOthers requires that --simulate prints the results of
// the other algorithms if one algorithm is too large to simulate. The test is slow, since the
// simulator detects this only after some time.
func TestOneAlgorithmThatIsTooLargeLeavesTheOthers(t *testing.T) {
	code, out, errOut := command(t, "bench", "collective", "--simulate", "-p", "3001", "-c", "scan", "-b", "8", "-e", "8")
	require.Zero(t, code, errOut)
	require.Contains(t, errOut, "scan by direct of 8: ")
	require.Contains(t, errOut, "too large to price")
	require.Contains(t, out, "recursive-doubling")
	require.NotContains(t, out, "direct")
}
