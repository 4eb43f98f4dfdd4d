//go:build linux

package taskmanager

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAFullDisk: a task manager says with its registration and with every heartbeat that
// it takes no work, for as long as its disk is too full.
func TestAFullDisk(t *testing.T) {
	t.Parallel()
	b := manage(t, newBoss(t), func(c *Config) { c.MinFree = 1 << 60 })
	b.await(t, "heartbeats", func() bool { return b.beats >= 3 })
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Contains(t, b.registers[0].Ailing, "(--min-free)")
	require.Contains(t, b.ailing, "(--min-free)")
}

// TestAnEmptyDisk: one with room says nothing of the kind.
func TestAnEmptyDisk(t *testing.T) {
	t.Parallel()
	b := manage(t, newBoss(t), func(c *Config) { c.MinFree = 1 })
	b.await(t, "heartbeats", func() bool { return b.beats >= 3 })
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(t, b.registers[0].Ailing)
	require.Empty(t, b.ailing)
}
