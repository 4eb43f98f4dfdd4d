package operators

import (
	"errors"
	"io/fs"
	"os"

	"github.com/superstep-ml/superstep/internal/wholefile"
)

// outputDisk has the file system calls by which outputs are moved to their targets: all calls
// that change files and directories which another process may read, and all calls that make
// such changes durable. Tests implement it by a disk that fails or ends the process at a chosen
// call, or that checks the order of calls.
type outputDisk interface {
	// Create creates or truncates a file. Sync makes the content of a file durable.
	Create(path string) (*os.File, error)
	Sync(f *os.File) error
	// SyncDir makes the entries of a directory durable.
	SyncDir(dir string) error
	Mkdir(path string) error
	// Rename moves a file and replaces the file that exists at the new path, if any. RenameNew
	// moves a file and fails if anything exists at the new path.
	Rename(from, to string) error
	RenameNew(from, to string) error
	// Exchange swaps two files or directories atomically. Some file systems do not support it.
	Exchange(a, b string) error
	// Link makes a hard link: a second name of a file.
	Link(from, to string) error
	Remove(path string) error
	RemoveAll(path string) error
}

// osDisk is the outputDisk of the operating system.
type osDisk struct{}

func (osDisk) Create(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
}

func (osDisk) Sync(f *os.File) error           { return f.Sync() }
func (osDisk) SyncDir(dir string) error        { return wholefile.SyncDir(dir) }
func (osDisk) Mkdir(path string) error         { return os.Mkdir(path, 0o777) }
func (osDisk) Rename(from, to string) error    { return os.Rename(from, to) }
func (osDisk) RenameNew(from, to string) error { return renameNew(from, to) }
func (osDisk) Exchange(a, b string) error      { return exchange(a, b) }
func (osDisk) Link(from, to string) error      { return os.Link(from, to) }
func (osDisk) Remove(path string) error        { return os.Remove(path) }
func (osDisk) RemoveAll(path string) error     { return os.RemoveAll(path) }

// removeIfThere removes a file if it exists.
func removeIfThere(d outputDisk, path string) error {
	if err := d.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// exists reports whether a file or directory exists at path.
func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
