package builtin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/alecthomas/kong"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
)

// maxCarried is the size in bytes of the largest model file that is sent to workers with the
// arguments of a job.
const maxCarried = 4 << 20

// ModelFile is the value of a flag that names a model file on the machine where the command runs. A
// file of up to 4 MiB is sent to the workers with the arguments of the job. For a larger file, the
// workers get its path and its hash, and read the file themselves: it must exist at the same path on
// their machines, with the same content.
type ModelFile struct {
	Path    string // absolute path
	File    []byte // content of the file; nil if the workers read the file
	Hash    string // hash of the content
	Problem string // why the file could not be read, or ""

	Reading model.Reading // format details of the files that the model was trained on
}

// Decode implements kong.MapperValue. It reads the file. If that fails, the job reports the error
// later, because the command line itself is correct.
func (m *ModelFile) Decode(ctx *kong.DecodeContext) error {
	var path string
	if err := ctx.Scan.PopValueInto("file", &path); err != nil {
		return err
	}
	at, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	*m = readModel(at)
	return nil
}

// readModel reads the file of a model for the arguments of a job.
func readModel(path string) ModelFile {
	m := ModelFile{Path: path}
	file, err := model.ReadFile(path)
	if err != nil {
		m.Problem = err.Error()
		return m
	}
	m.Hash = hashOf(file)
	if len(file) <= maxCarried {
		m.File = file
	}
	m.Reading, _ = model.ReadingOf(file) // decoding the model reports errors
	return m
}

func hashOf(file []byte) string {
	sum := sha256.Sum256(file)
	return hex.EncodeToString(sum[:])
}

// given reports whether the flag is given.
func (m ModelFile) given() bool { return m.Path != "" }

// model decodes and returns the model, which may be of any kind.
func (m ModelFile) model() (model.Model, error) {
	if m.Problem != "" {
		return nil, errors.New(m.Problem)
	}
	file := m.File
	if file == nil {
		var err error
		if file, err = model.ReadFile(m.Path); err != nil {
			return nil, fmt.Errorf("the model is larger than %d MiB, so that every worker reads it: %w", maxCarried>>20, err)
		}
		if hashOf(file) != m.Hash {
			return nil, fmt.Errorf("%s here is another file than where the command runs: a model larger than %d MiB must be the same for every worker", m.Path, maxCarried>>20)
		}
	}
	made, err := pipeline.DecodeAny(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", m.Path, err)
	}
	return made, nil
}
