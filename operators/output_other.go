//go:build !unix

package operators

import (
	"errors"
	"io/fs"
	"os"
)

// lockFile makes a file that other processes cannot remove while it is open. This serves as the
// lock on systems other than Unix.
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

// unlockFile closes the file before it removes it, as these systems cannot remove an open file.
func unlockFile(d outputDisk, f *os.File) error { return errors.Join(f.Close(), d.Remove(f.Name())) }

// fileID returns 0, which means that the ID is unknown. The ID is needed only after exchange,
// which these systems do not support.
func fileID(fs.FileInfo) uint64 { return 0 }

// syncDir does nothing, as these systems cannot synchronise directories.
func syncDir(string) error { return nil }
