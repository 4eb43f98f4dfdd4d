package mapped

import (
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"

	"github.com/superstep-ml/superstep/internal/disk"
)

// mapNew maps a new file in dir, and removes its name unless it is to stay. The size of the file is n rounded up to whole
// pages. Its space on the disk is reserved, so that mapNew fails if the disk is full. Without that,
// a later write to the memory would kill the process (SIGBUS).
func mapNew(on disk.FS, dir string, n int64, named bool) (m *mapping, err error) {
	page := int64(unix.Getpagesize())
	n = (n + page - 1) / page * page
	f, err := on.CreateTemp(dir, "rows-*")
	if err != nil {
		return nil, err
	}
	m = &mapping{name: f.Name()}
	defer func() {
		err = errors.Join(err, f.Close())
		if named && err == nil {
			m.on = on
		} else {
			err = errors.Join(err, disk.RemoveIfThere(on, m.name)) // without its name, the file exists until it is unmapped
		}
		if err != nil && m.data != nil {
			unmap(m.data)
		}
	}()
	file, ok := f.(interface{ Fd() uintptr })
	if !ok {
		return m, ErrUnsupported
	}
	fd := int(file.Fd())
	if err = reserve(fd, n); errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		err = writeZeros(f, n)
	}
	if err != nil {
		return m, fmt.Errorf("%d bytes for the file %s: %w", n, m.name, err)
	}
	if m.data, err = unix.Mmap(fd, 0, int(n), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return m, fmt.Errorf("map %d bytes of the file %s: %w", n, m.name, err)
	}
	return m, nil
}

// mapOld maps a file that another process has made by mapNew, with the given size.
func mapOld(on disk.FS, path string, size int64) (m *mapping, err error) {
	f, err := on.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	file, ok := f.(interface {
		Fd() uintptr
		Stat() (os.FileInfo, error)
	})
	if !ok {
		return nil, ErrUnsupported
	}
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() != size || size < 1 {
		return nil, fmt.Errorf("the file %s has %d bytes, and %d were written", path, info.Size(), size)
	}
	data, err := unix.Mmap(int(file.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of the file %s: %w", size, path, err)
	}
	return &mapping{name: path, on: on, data: data}, nil
}

// reserve reserves n bytes on the disk for the file with descriptor fd.
func reserve(fd int, n int64) error {
	for {
		if err := unix.Fallocate(fd, 0, 0, n); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// writeZeros writes n zero bytes. It is used on file systems that do not support reserve.
func writeZeros(w io.Writer, n int64) error {
	zeros := make([]byte, min(n, 1<<20))
	for n > 0 {
		wrote, err := w.Write(zeros[:min(n, int64(len(zeros)))])
		if err != nil {
			return err
		}
		n -= int64(wrote)
	}
	return nil
}

// unmap unmaps b. It ignores the error, which is possible only for memory that is not mapped.
func unmap(b []byte) { _ = unix.Munmap(b) }
