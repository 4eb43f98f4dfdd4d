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
// larger than MaxFile is refused before it is read.
func ReadFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("load model: %w", err)
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if err == nil && len(text) > MaxFile {
		err = errors.New("it is too large to be a model")
	}
	if err != nil {
		return nil, fmt.Errorf("load model %s: %w", path, err)
	}
	return text, nil
}
