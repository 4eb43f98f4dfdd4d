package model

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/superstep-ml/superstep/internal/wholefile"
)

// Save writes a model to a file, as Encode gives it and a line end. It writes aside and
// renames, so that the file is either the old one or the whole new one.
func Save(path string, m Model) error {
	text, err := m.Encode()
	if err != nil {
		return err
	}
	if err := wholefile.Write(path, append(text, '\n')); err != nil {
		return fmt.Errorf("save model: %w", err)
	}
	return nil
}

// Load reads a file that Save wrote by the Decode of its kind.
func Load[M any](path string, decode func(file []byte) (M, error)) (m M, err error) {
	file, err := ReadFile(path)
	if err != nil {
		return m, err
	}
	if m, err = decode(file); err != nil {
		var none M
		return none, fmt.Errorf("load %s: %w", path, err)
	}
	return m, nil
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
