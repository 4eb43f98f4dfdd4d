package model

import (
	"fmt"

	"github.com/superstep-ml/superstep/internal/wholefile"
)

// Save writes the file of a model, which Encode returns, to path, with a line end after it. It
// writes a temporary file and renames it. So a file at path is replaced atomically: after a
// failure, path still has the old contents.
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

// Load returns the model in a file that Save wrote. decode is the function Decode of the
// model's kind.
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

// ReadFile returns the contents of a file that Save wrote. The function Decode of the model's
// kind decodes them; see KindOf. For a file larger than MaxFile, ReadFile returns an error
// without reading the file.
func ReadFile(path string) ([]byte, error) {
	text, err := wholefile.Read(path, MaxFile)
	if err != nil {
		return nil, fmt.Errorf("load model: %w", err)
	}
	return text, nil
}
