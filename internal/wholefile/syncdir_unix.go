//go:build unix

package wholefile

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// SyncDir makes the entries of a directory durable: files that were created, renamed or removed
// in it.
func SyncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		err = nil // some file systems do not support the syncing of directories
	}
	return errors.Join(err, d.Close())
}
