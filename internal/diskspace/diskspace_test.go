package diskspace

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGauge fills a disk and empties it: between the limit and twice that it is as it was.
func TestGauge(t *testing.T) {
	const mib = 1 << 20
	var n int64
	var failed error
	g := &Gauge{Least: 100 * mib, Free: func() (int64, error) { return n, failed }}
	for _, c := range []struct {
		free int64
		full bool
	}{{200, false}, {150, false}, {100, false}, {99, true}, {100, true}, {150, true}, {199, true}, {200, false}, {199, false}, {0, true}} {
		n = c.free * mib
		require.Equal(t, c.full, g.Full() != "", "%d MiB", c.free)
	}
	require.Equal(t, "its disk has 0 MiB free, 100 MiB are the least (--min-free), and work goes on at 200 MiB", g.Full())
	failed = errors.New("no such folder")
	require.Empty(t, g.Full())
	failed, g.Least = nil, 0
	require.Empty(t, g.Full(), "0 is no limit")
	if runtime.GOOS == "linux" {
		require.Empty(t, New(t.TempDir(), 1).Full())
		require.NotEmpty(t, New(t.TempDir(), 1<<60).Full())
	}
}
