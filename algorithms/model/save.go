package model

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Save writes a model to a file, as Encode gives it and a line end. It writes aside and
// renames, so that the file is either the old one or the whole new one.
func Save(path string, m Model) (err error) {
	text, err := m.Encode()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("save model: %w", err)
		}
	}()
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*.partial")
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	if err == nil {
		// Temporary files are their maker's alone; models are as readable as what replaces them,
		// or else by all.
		mode := os.FileMode(0o644)
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
	}
	return err
}

// ReadFile reads a file that Save wrote, for the Decode of its kind; see KindOf. A file
// larger than MaxFile is refused before it is read. A pipe, which tells no size, is read up
// to MaxFile.
func ReadFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("load model: %w", err)
	}
	defer file.Close()
	text, err := readAll(file)
	if err != nil {
		return nil, fmt.Errorf("load model %s: %w", path, err)
	}
	return text, nil
}

// readAll reads a file into memory that is allocated once, if it tells its size.
func readAll(file *os.File) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	switch {
	case info.IsDir():
		return nil, errors.New("it is a directory: want a model's file")
	case !info.Mode().IsRegular() || size == 0: // files that the system makes up say 0, too
		text, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
		if err == nil && len(text) > MaxFile {
			err = fmt.Errorf("it has more than %d bytes: a model's file has at most as many", MaxFile)
		}
		return text, err
	case size > MaxFile:
		return nil, fmt.Errorf("it has %d bytes: a model's file has at most %d", size, MaxFile)
	}
	text := make([]byte, size)
	n, err := io.ReadFull(file, text)
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("it ended after %d of %d bytes: it changed while it was read", n, size)
	}
	return text, err
}
