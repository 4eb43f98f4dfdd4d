//go:build !unix

package operators

import (
	"errors"
	"io/fs"
	"os"
)

// lockFile makes a file that others cannot remove while it is open. That is the only locking on
// these systems.
func lockFile(path string) (*os.File, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errInUse(path)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, os.ErrExist) {
		return nil, errInUse(path)
	}
	return f, err
}

// unlockFile closes the file, which must precede its removal here.
func unlockFile(d outputDisk, f *os.File) error { return errors.Join(f.Close(), d.Remove(f.Name())) }

// fileID returns 0, unknown. Only exchange needs it, which these systems do not have.
func fileID(fs.FileInfo) uint64 { return 0 }

// syncDir does nothing: directories cannot be synchronised here.
func syncDir(string) error { return nil }
