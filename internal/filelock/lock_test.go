//go:build unix

package filelock

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// files returns the paths of a lock.
func files(t *testing.T) (path, turn string) {
	dir := t.TempDir()
	return filepath.Join(dir, "lock"), filepath.Join(dir, "turn")
}

// names returns the names of the files beside a lock.
func names(t *testing.T, path string) (all []string) {
	entries, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func nothing() error { return nil }

// TestTake requires that a later attempt of the same job takes a lock over, and nobody else, and that
// the attempt before then neither has the lock nor removes it.
func TestTake(t *testing.T) {
	path, turn := files(t)
	first, err := Take(path, turn, Owner{"job", 1})
	require.NoError(t, err)
	require.NoError(t, first.Do(nothing))
	require.Equal(t, []string{"lock"}, names(t, path))
	for _, o := range []Owner{{}, {"other", 2}, {"job", 1}} {
		_, err = Take(path, turn, o)
		require.ErrorIs(t, err, ErrHeld, "%+v", o)
	}
	_, err = Hold(path, turn, Owner{"job", 2})
	require.ErrorIs(t, err, ErrHeld, "Hold takes nothing over")

	third, err := Take(path, turn, Owner{"job", 3})
	require.NoError(t, err)
	require.ErrorIs(t, first.Check(), ErrTaken)
	require.ErrorIs(t, first.Do(nothing), ErrTaken)
	for _, take := range []func(path, turn string, o Owner) (*Lock, error){Take, Hold} {
		_, err = take(path, turn, Owner{"job", 2})
		require.ErrorIs(t, err, ErrTaken)
	}
	require.NoError(t, first.Release(os.Remove))
	_, err = Take(path, turn, Owner{"other", 4})
	require.ErrorIs(t, err, ErrHeld, "the former attempt must not have removed the lock")
	require.NoError(t, third.Do(nothing))
	require.NoError(t, third.Release(os.Remove))
	require.Empty(t, names(t, path))
}

// TestTakeFromTheDead requires that everybody gets the lock of a process that has ended, except an
// earlier attempt of its job, and whatever the file says.
func TestTakeFromTheDead(t *testing.T) {
	path, turn := files(t)
	for _, text := range []string{"", "attempt 2 of job other\n", "attempt x of job job\n", "attempt 9 of job job", "attempt 09 of job job\n", string(make([]byte, 2<<10))} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.NoError(t, os.WriteFile(turn, nil, 0o600))
		l, err := Hold(path, turn, Owner{"job", 1})
		require.NoError(t, err, "%q", text)
		require.NoError(t, l.Check())
		require.NoError(t, l.Release(os.Remove))
		require.Empty(t, names(t, path))
	}
	l, err := Take(path, turn, Owner{"job", 2})
	require.NoError(t, err)
	require.NoError(t, l.Abandon())
	_, err = Take(path, turn, Owner{"job", 1})
	require.ErrorIs(t, err, ErrTaken)
	for _, o := range []Owner{{"job", 2}, {"job", 3}, {}} {
		l, err := Hold(path, turn, o)
		require.NoError(t, err, "%+v", o)
		require.NoError(t, l.Abandon())
	}
	_, err = Take(path, turn, Owner{"a job", 1})
	require.ErrorContains(t, err, "the lock cannot be held")
}

// TestRemovedLock requires that a lock whose file was removed is lost, and that this is told apart from a lock
// that another attempt has.
func TestRemovedLock(t *testing.T) {
	path, turn := files(t)
	first, err := Take(path, turn, Owner{"job", 1})
	require.NoError(t, err)
	require.NoError(t, os.Remove(path))
	require.ErrorIs(t, first.Do(nothing), ErrGone)
	require.ErrorIs(t, first.Check(), ErrTaken)
	next, err := Take(path, turn, Owner{"job", 2})
	require.NoError(t, err)
	require.NotErrorIs(t, first.Check(), ErrGone)
	require.ErrorIs(t, first.Check(), ErrTaken)
	require.NoError(t, first.Release(os.Remove))
	require.NoError(t, next.Release(os.Remove))
	require.Empty(t, names(t, path))
}

// TestDoIsNotDisturbed requires that a lock is not taken over while a function runs within Do.
func TestDoIsNotDisturbed(t *testing.T) {
	path, turn := files(t)
	first, err := Take(path, turn, Owner{"job", 1})
	require.NoError(t, err)
	within, taken := make(chan struct{}), make(chan error, 1)
	var next *Lock
	go func() {
		<-within
		var err error
		next, err = Take(path, turn, Owner{"job", 2})
		taken <- err
	}()
	require.NoError(t, first.Do(func() error {
		close(within)
		for range 100 { // the other process keeps asking for its turn
			require.NoError(t, first.Check())
		}
		require.Empty(t, taken)
		return nil
	}))
	require.NoError(t, <-taken)
	require.ErrorIs(t, first.Do(nothing), ErrTaken)
	require.NoError(t, next.Release(os.Remove))
	require.NoError(t, first.Release(os.Remove))
	require.Empty(t, names(t, path))
}

// TestWithoutLocks requires that a former attempt notices that it has lost the lock on a file system
// without locks between machines, where both hold the same file.
func TestWithoutLocks(t *testing.T) {
	path, turn := files(t)
	first, err := Take(path, turn, Owner{"job", 1})
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(first.file.Fd()), unix.LOCK_UN))
	next, err := Take(path, turn, Owner{"job", 2})
	require.NoError(t, err)
	require.ErrorIs(t, first.Do(nothing), ErrTaken)
	require.NoError(t, first.Release(os.Remove))
	require.NoError(t, next.Do(nothing))
	require.NoError(t, next.Release(os.Remove))
	require.Empty(t, names(t, path))
}
