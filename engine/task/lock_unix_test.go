//go:build unix

package task

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestLockRemovedFile requires that tryLock fails for a file that was removed, as by a sweep.
func TestLockRemovedFile(t *testing.T) {
	f, err := os.CreateTemp(t.TempDir(), "lock")
	require.NoError(t, err)
	defer f.Close()
	require.True(t, tryLock(f))
	require.NoError(t, os.Remove(f.Name()))
	require.False(t, tryLock(f))
}
