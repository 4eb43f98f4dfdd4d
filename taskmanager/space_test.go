//go:build linux

package taskmanager

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAFullDisk requires that a task manager whose disk is too full says so in its registration
// and in every heartbeat.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	b := manage(t, newFakeJobManager(t), func(c *Config) { c.MinFree = 1 << 60 })
	b.await(t, "heartbeats", func() bool { return b.beats >= 3 })
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Contains(t, b.registers[0].Ailing, "(--min-free)")
	require.Contains(t, b.ailing, "(--min-free)")
}

// TestAnEmptyDisk requires that a task manager whose disk has enough space does not report a
// full disk.
func TestAnEmptyDisk(t *testing.T) {
	t.Parallel()
	b := manage(t, newFakeJobManager(t), func(c *Config) { c.MinFree = 1 })
	b.await(t, "heartbeats", func() bool { return b.beats >= 3 })
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(t, b.registers[0].Ailing)
	require.Empty(t, b.ailing)
}
