//go:build unix

package task

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// tryLock locks a lock file until the file is closed or the process ends. It returns false if
// another process has locked or removed the file.
func tryLock(f *os.File) bool {
	return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil && samePath(f, f.Name())
}

// lockEndedRun locks another run's lock file, which succeeds only if that run has ended. release
// first removes the file if remove is true, and then releases the lock.
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

// samePath reports whether path still refers to the open file f.
func samePath(f *os.File, path string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Stat(path)
	return err == nil && os.SameFile(a, b)
}
