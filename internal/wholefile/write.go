package wholefile

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Write replaces the content of the file at path with data. If it fails, the old file remains.
// Write writes a temporary file in the same directory, syncs it to disk and renames it to path.
// A new file is readable by all users; a replaced file keeps its permissions. Errors are of
// type *fs.PathError and name path.
func Write(path string, data []byte) error { return WriteFrom(path, bytes.NewReader(data)) }

// WriteFrom does the same as Write, with the data that source writes. If source fails, the old
// file remains.
func WriteFrom(path string, source io.WriterTo) error {
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.partial")
	if err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: cause(err)}
	}
	_, err = source.WriteTo(file)
	if err == nil {
		mode := os.FileMode(0o644) // set explicitly, as a temporary file is accessible only to its owner
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

// cause removes the file name from an error, because it is the name of the temporary file.
func cause(err error) error {
	switch of := err.(type) {
	case *fs.PathError:
		return of.Err
	case *os.LinkError:
		return of.Err
	}
	return err
}
