package jobmanager

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNotReadyOnAFullDisk fills the disk of the work directory as far as a job manager can
// see, and makes room again.
func TestNotReadyOnAFullDisk(t *testing.T) {
	m := start(t, func(c *Config) { c.MinFree = 100 << 20 })
	free := int64(100 << 20)
	m.space.Free = func() (int64, error) { return free, nil }
	require.NoError(t, m.Ready())
	free--
	require.ErrorContains(t, m.Ready(), "its disk has 99 MiB free, 100 MiB are the least (--min-free)")
	free = 200 << 20
	require.NoError(t, m.Ready())
}
