package wholefile

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write puts data in the place of a file, or leaves what is there: it writes beside the
// file, has the disk hold it, and renames. A new file can be read by all, one that takes
// another's place by whom that could be. Errors are of type *fs.PathError and name the path.
func Write(path string, data []byte) error { return WriteFrom(path, bytes.NewReader(data)) }

// WriteFrom is Write of what a source writes, none of it if that fails.
func WriteFrom(path string, source io.WriterTo) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.partial")
	if err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: cause(err)}
	}
	_, err = source.WriteTo(file)
	if err == nil {
		mode := os.FileMode(0o644) // temporary files are their maker's alone
		if old, wrong := os.Stat(path); wrong == nil {
			mode = old.Mode().Perm()
		}
		err = file.Chmod(mode)
	}
	if err == nil {
		err = file.Sync()
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		os.Remove(file.Name())
		return &fs.PathError{Op: "write", Path: path, Err: cause(err)}
	}
	return nil
}

// cause is an error about a file without the file's name, which is one for the time being.
func cause(err error) error {
	switch of := err.(type) {
	case *fs.PathError:
		return of.Err
	case *os.LinkError:
		return of.Err
	}
	return err
}
