//go:build soak

package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// It takes a while to find that an operation is too large to price.
func TestOneAlgorithmThatIsTooLargeLeavesTheOthers(t *testing.T) {
	code, out, errOut := command(t, "bench", "collective", "--simulate", "-p", "3001", "-c", "scan", "-b", "8", "-e", "8")
	require.Zero(t, code, errOut)
	require.Contains(t, errOut, "scan by direct of 8: ")
	require.Contains(t, errOut, "too large to price")
	require.Contains(t, out, "recursive-doubling")
	require.NotContains(t, out, "direct")
}
