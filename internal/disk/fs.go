package disk

import (
	"errors"
	"io"
	"io/fs"
	"os"
)

// FS creates, opens, renames and removes files. It is safe for concurrent use.
type FS interface {
	// OpenFile, CreateTemp, Remove and Rename do what the functions of package os do.
	OpenFile(path string, flag int, perm os.FileMode) (File, error)
	CreateTemp(dir, pattern string) (File, error)
	Remove(path string) error
	Rename(from, to string) error
}

// File is an open file. ReadAt is safe for concurrent use; the other methods are not.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.Closer
	// Name returns the path with which the file was opened.
	Name() string
	// Sync makes the operating system write all data to the storage device.
	Sync() error
}

// OS returns the machine's own file system.
func OS() FS { return osFS{} }

type osFS struct{}

func (osFS) OpenFile(path string, flag int, perm os.FileMode) (File, error) {
	return opened(os.OpenFile(path, flag, perm))
}

func (osFS) CreateTemp(dir, pattern string) (File, error) {
	return opened(os.CreateTemp(dir, pattern))
}

func (osFS) Remove(path string) error { return os.Remove(path) }

func (osFS) Rename(from, to string) error { return os.Rename(from, to) }

// opened returns f as a File. If err is not nil, the File is nil, not a File with a nil *os.File.
func opened(f *os.File, err error) (File, error) {
	if err != nil {
		return nil, err
	}
	return f, nil
}

// RemoveIfThere removes a file. It does not fail if the file does not exist.
func RemoveIfThere(on FS, path string) error {
	if err := on.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
