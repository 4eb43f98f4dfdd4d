//go:build unix

package operators

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// lockFile makes a file and locks it until unlockFile is called or the process ends.
func lockFile(path string) (*os.File, error) {
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o666)
		if err != nil {
			return nil, err
		}
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errors.Join(errInUse(path), f.Close())
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

// unlockFile removes the file and then releases its lock, so that no process can lock a file
// that is about to be removed.
func unlockFile(d outputDisk, f *os.File) error { return errors.Join(d.Remove(f.Name()), f.Close()) }

// fileID returns the inode number, which no other file of the file system has at the same time,
// or 0 if it is unknown.
func fileID(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}

// syncDir makes the entries of a directory durable.
func syncDir(dir string) error {
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
