//go:build unix

package task

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks a run's own lock file until the file is closed or the process ends. It returns
// false if a sweep has locked it first.
func tryLock(f *os.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && samePath(f, f.Name())
}

// lockEndedRun locks another run's lock file, which succeeds when that run has ended. release
// releases the lock, and before that removes the file if remove is true.
func lockEndedRun(path string) (release func(remove bool) error, ok bool) {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, false
	}
	if !tryLock(f) {
		f.Close()
		return nil, false
	}
	return func(remove bool) error {
		if remove {
			return releaseLock(f)
		}
		return f.Close()
	}, true
}

// releaseLock removes the file and then releases its lock, so that nobody can lock a file that
// is about to be removed.
func releaseLock(f *os.File) error {
	return errors.Join(os.Remove(f.Name()), f.Close())
}

// samePath reports whether path still leads to the open file f.
func samePath(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}
