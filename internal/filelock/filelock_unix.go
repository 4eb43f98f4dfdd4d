//go:build unix

package filelock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// Make makes the lock file path, or opens a file that was left there, and locks it until Release
// is called or the process ends. The error is ErrHeld if the file is locked already.
func Make(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(ErrHeld, f.Close())
		}
		if err != nil {
			return nil, errors.Join(&os.PathError{Op: "lock", Path: path, Err: err}, f.Close())
		}
		// The previous holder of the lock may have removed the file in the meantime.
		if a, err := f.Stat(); err == nil {
			if b, err := os.Stat(path); err == nil && os.SameFile(a, b) {
				return f, nil
			}
		}
		f.Close()
	}
}

// Release removes a lock file with the function remove and then releases the lock, so that no
// process can lock a file that is about to be removed.
func Release(f *os.File, remove func(path string) error) error {
	return errors.Join(remove(f.Name()), f.Close())
}
