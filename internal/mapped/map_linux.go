package mapped

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/superstep-ml/superstep/internal/disk"
)

// newPart maps a new file of about n bytes in dir, which has its room on the disk and no name
// any more: a disk that is full is an error here, and not the end of the process where memory
// is written later.
func newPart(on disk.FS, dir string, n int64) (p part, err error) {
	page := int64(unix.Getpagesize())
	n = (n + page - 1) / page * page
	f, err := on.CreateTemp(dir, "rows-*")
	if err != nil {
		return p, err
	}
	p.name = f.Name()
	defer func() {
		err = errors.Join(err, f.Close(), disk.RemoveIfThere(on, p.name)) // the mapping keeps the file
		if err != nil && p.data != nil {
			unmap(p.data)
		}
	}()
	file, ok := f.(interface{ Fd() uintptr })
	if !ok {
		return p, ErrUnsupported
	}
	fd := int(file.Fd())
	if err := reserve(fd, n); err != nil {
		return p, fmt.Errorf("%d bytes for the file %s: %w", n, p.name, err)
	}
	if p.data, err = unix.Mmap(fd, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return p, fmt.Errorf("map %d bytes of the file %s: %w", n, p.name, err)
	}
	return p, nil
}

// reserve gives a file n bytes that the disk has. A file system that cannot promise them is
// one whose files are not to be mapped.
func reserve(fd int, n int64) error {
	for {
		switch err := unix.Fallocate(fd, 0, 0, n); {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EOPNOTSUPP), errors.Is(err, unix.ENOSYS):
			return ErrUnsupported
		default:
			return err
		}
	}
}

// unmap fails only for memory that was not mapped.
func unmap(b []byte) { _ = unix.Munmap(b) }
