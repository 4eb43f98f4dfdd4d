package model

import (
	"fmt"

	"github.com/superstep-ml/superstep/internal/wholefile"
)

// Save writes the text of a model's Encode and a line end to a file. It writes a temporary file
// and renames it, so that the file is either the old one or the whole new one.
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

// Load reads a file that Save wrote. decode is the Decode of its kind.
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

// ReadFile reads a file that Save wrote. The Decode of its kind reads the result; see KindOf. A
// file larger than MaxFile is refused before it is read.
func ReadFile(path string) ([]byte, error) {
	text, err := wholefile.Read(path, MaxFile)
	if err != nil {
		return nil, fmt.Errorf("load model: %w", err)
	}
	return text, nil
}
