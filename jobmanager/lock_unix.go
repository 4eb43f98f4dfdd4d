//go:build unix

package jobmanager

import (
	"errors"
	"os"
	"syscall"
)

// lockFile tries to lock a file by the lock that bbolt uses, and reports whether it has
// succeeded.
func lockFile(f *os.File) (bool, error) {
	err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) || errors.Is(err, syscall.EINTR) {
		return false, nil
	}
	return err == nil, err
}
