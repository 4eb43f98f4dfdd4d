//go:build !unix

package filelock

import (
	"errors"
	"os"
)

// Make makes the lock file path, which other processes cannot remove while it is open. This
// serves as the lock on systems other than Unix. The error is ErrHeld if the file is open already.
func Make(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, ErrHeld
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, os.ErrExist) {
		return nil, ErrHeld
	}
	return f, err
}

// Release closes a lock file and then removes it with the function remove, as these systems
// cannot remove an open file.
func Release(f *os.File, remove func(path string) error) error {
	return errors.Join(f.Close(), remove(f.Name()))
}
