//go:build !unix

package task

import (
	"errors"
	"os"
)

// tryLock returns true. On these systems an open file cannot be renamed, so that it is locked by
// being open.
func tryLock(*os.File) bool { return true }

// lockEndedRun renames another run's lock file, which succeeds only if no process has it open.
// release removes the file if remove is true, and otherwise renames it back.
func lockEndedRun(path string) (release func(remove bool) error, ok bool) {
	taken := path + "-swept"
	if err := os.Rename(path, taken); err != nil {
		return nil, false
	}
	return func(remove bool) error {
		if remove {
			return os.Remove(taken)
		}
		return os.Rename(taken, path)
	}, true
}

// releaseLock closes the file and removes it, in this order, as these systems require.
func releaseLock(f *os.File) error {
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
