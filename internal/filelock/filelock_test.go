package filelock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/filelock"
)

func TestMake(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	for range 2 { // a lock that was released can be made again
		f, err := filelock.Make(path)
		require.NoError(t, err)
		_, err = filelock.Make(path)
		require.ErrorIs(t, err, filelock.ErrHeld)
		require.NoError(t, filelock.Release(f, os.Remove))
		require.NoFileExists(t, path)
	}
	require.NoError(t, os.WriteFile(path, []byte("left by a process that was killed"), 0o600))
	f, err := filelock.Make(path)
	require.NoError(t, err)
	require.NoError(t, filelock.Release(f, os.Remove))
	_, err = filelock.Make(filepath.Join(path, "nowhere"))
	require.ErrorIs(t, err, os.ErrNotExist)
}
