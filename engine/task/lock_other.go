//go:build !unix

package task

import (
	"errors"
	"os"
)

// tryLock returns true: an open file is the lock, as it cannot be renamed on these systems.
func tryLock(*os.File) bool { return true }

// lockEndedRun renames another run's lock file, which succeeds when nobody has it open any more.
// release removes it or renames it back.
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

// releaseLock closes the file, which must precede its removal here.
func releaseLock(f *os.File) error {
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
