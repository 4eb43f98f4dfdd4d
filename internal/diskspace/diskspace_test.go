package diskspace

import (
	"errors"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestGauge fills and empties a disk. While between Least and 5/4 of Least bytes are free, the
// disk must keep its previous state.
func TestGauge(t *testing.T) {
	const mib = 1 << 20
	var n int64
	var failed error
	g := &Gauge{Least: 100 * mib, Free: func() (int64, error) { return n, failed }}
	for _, c := range []struct {
		free int64
		full bool
	}{{200, false}, {120, false}, {100, false}, {99, true}, {100, true}, {124, true}, {125, false}, {124, false}, {0, true}} {
		n = c.free * mib
		require.Equal(t, c.full, g.Full() != "", "the state of the disk must be as listed with %d MiB free", c.free)
	}
	require.Equal(t, "its disk has 0 B free, 100 MiB are the least (--min-free), and work is taken again at 125 MiB", g.Full())
	require.Equal(t, Reading{Free: 0, Full: g.Full()}, g.Read())
	failed = errors.New("no such folder")
	require.Equal(t, Reading{Free: -1}, g.Read())
	failed, g.Least, n = nil, 3<<19, 1<<20+1<<9
	require.Equal(t, "its disk has 1.0 MiB free, 1.5 MiB are the least (--min-free), and work is taken again at 1.8 MiB", g.Full())
	g.Least = 0
	require.Empty(t, g.Full(), "a disk must never count as full if Least is 0")
	require.Equal(t, Reading{Free: n}, g.Read())
	if runtime.GOOS == "linux" {
		require.Empty(t, New(t.TempDir(), 1).Full())
		require.NotEmpty(t, New(t.TempDir(), 1<<60).Full())
	}
}

// TestSmallDisk requires that Least of 256 MiB suits a volume of 1 GiB with 600 MiB permanently in
// use: the volume counts as full with 250 MiB free, and no longer once the other 424 MiB are free.
func TestSmallDisk(t *testing.T) {
	n := int64(250 << 20)
	g := &Gauge{Least: 256 << 20, Free: func() (int64, error) { return n, nil }}
	require.Equal(t, "its disk has 250 MiB free, 256 MiB are the least (--min-free), and work is taken again at 320 MiB", g.Full())
	n = 424 << 20
	require.Empty(t, g.Full())
}
