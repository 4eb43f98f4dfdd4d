//go:build !race

package main

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTheChoiceIsExplained requires that --explain names the algorithm that then runs. It does
// not run under the race detector, because its ranks are processes that measure the network
// between them, which is slow there. Tests of package collective run the same code under the
// race detector.
func TestTheChoiceIsExplained(t *testing.T) {
	code, out, errOut := command(t, "bench", "collective", "-p", "2", "-b", "8", "-e", "8", "-n", "2", "--explain", "--calibrate")
	require.Zero(t, code, errOut)
	require.Contains(t, out, "allreduce of 6 bytes among 2 ranks", "the decision for sizes of 5 to 8 bytes is made for 6 bytes, in the middle")
	require.Contains(t, out, `on network "fitted")`)
	require.Contains(t, out, "raw TCP between ranks 0 and 1")

	// The algorithm that --explain names must also be the algorithm that runs if the size is
	// close to a size at which the choice changes.
	code, out, errOut = command(t, "bench", "collective", "-p", "2", "-b", "1M", "-e", "1M", "-n", "1", "--explain", "--no-raw")
	require.Zero(t, code, errOut)
	said := regexp.MustCompile(`allreduce of 786432 bytes among 2 ranks: ([a-z-]+)`).FindStringSubmatch(out)
	ran := regexp.MustCompile(`(?m)^allreduce +([a-z-]+) +1M`).FindStringSubmatch(out)
	require.NotNil(t, said, out)
	require.NotNil(t, ran, out)
	require.Equal(t, said[1], ran[1])
}
