//go:build !unix

package task

import (
	"errors"
	"os"
)

// hold reports true: without advisory locks, having the file open is the lock,
// as an open file cannot be renamed here.
func hold(*os.File) bool { return true }

// leftOver takes another run's lock file away, which succeeds when nobody has it
// open any more. release removes it, or puts it back.
func leftOver(path string) (release func(remove bool) error, ok bool) {
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
