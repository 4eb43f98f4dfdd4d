package builtin

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/onnx"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/algorithms/pmml"
)

// exchange is a format of model files that other programs read or write.
type exchange struct {
	name   string
	about  string
	ending string // of file names
	write  func(m model.Model) ([]byte, error)
	read   func(file []byte) (model.Model, error)
}

// exchanges are the formats.
var exchanges = []exchange{
	{"onnx", "ONNX-ML, for runtimes of other languages; what export wrote can be read again", ".onnx", onnx.Export, onnx.Import},
	{"pmml", "PMML 4.4; what export wrote can be read again", ".pmml", pmml.Export, pmml.Import},
}

// Formats says which formats of models there are, a line each.
func Formats() []string {
	var lines []string
	for _, e := range exchanges {
		lines = append(lines, e.name+": "+e.about)
	}
	return lines
}

// formatOf returns the format of a name, or, if that is empty, the one of a file's ending.
func formatOf(flag, name, path string) (exchange, error) {
	var all []string
	for _, e := range exchanges {
		if name == e.name || name == "" && strings.EqualFold(filepath.Ext(path), e.ending) {
			return e, nil
		}
		all = append(all, e.name)
	}
	if name == "" {
		return exchange{}, fmt.Errorf("%s is missing, and the name of %s tells no format: want one of %s", flag, path, strings.Join(all, ", "))
	}
	return exchange{}, fmt.Errorf("%s is %q: want one of %s", flag, name, strings.Join(all, ", "))
}

// Export writes the model in a file in another format, to a new file unless it is to
// replace one. ok is false where the arguments cannot be meant.
func Export(w io.Writer, path, format, output string, replace bool) (ok bool, err error) {
	e, err := formatOf("--to", format, output)
	if err != nil {
		return false, err
	}
	file, err := model.ReadFile(path)
	if err != nil {
		return true, err
	}
	m, err := pipeline.DecodeAny(file)
	if err != nil {
		return true, fmt.Errorf("%s: %w", path, err)
	}
	made, err := e.write(m)
	if err != nil {
		return true, fmt.Errorf("%s as %s: %w", path, e.name, err)
	}
	if err := writeNew(output, made, replace); err != nil {
		return true, err
	}
	_, err = fmt.Fprintf(w, "%s written to %s\n", e.name, output)
	return true, err
}

// Import reads a model in another format and writes its file, to a new one unless it is to
// replace one. ok is false where the arguments cannot be meant.
func Import(w io.Writer, path, format, output string, replace bool) (ok bool, err error) {
	e, err := formatOf("--from", format, path)
	if err != nil {
		return false, err
	}
	file, err := model.ReadFile(path)
	if err != nil {
		return true, err
	}
	m, err := e.read(file)
	if err != nil {
		return true, fmt.Errorf("%s as %s: %w", path, e.name, err)
	}
	made, err := m.Encode()
	if err != nil {
		return true, err
	}
	if err := writeNew(output, slices.Concat(made, []byte("\n")), replace); err != nil {
		return true, err
	}
	_, err = fmt.Fprintf(w, "model of kind %s written to %s\n", m.Kind(), output)
	return true, err
}

// writeNew writes a file aside and gives it its name, so that it is there whole or not at
// all. A file that is there stays, unless it is to be replaced.
func writeNew(path string, text []byte, replace bool) (err error) {
	if _, err := os.Lstat(path); err == nil && !replace {
		return fmt.Errorf("output %s exists: choose another path, or replace it with --if-exists replace", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}
