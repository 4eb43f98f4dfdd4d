package kmeans

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/zeebo/xxh3"
)

// A model is written as one JSON object:
//
//	{
//	  "format": "superstep/kmeans",         what it is
//	  "version": 1,                         of this layout
//	  "input": {                            what a point is
//	    "column": "features", "dim": 2      the vector column and its components
//	  },
//	  "distance": "euclidean",              or "cosine"
//	  "centers": [[0.5, 1], [7, 2.25]],     one array of dim numbers per cluster
//	  "sizes": [10, 20],                    weight of each cluster
//	  "inertia": 12.5,
//	  "iterations": 2,                      updates of the centres
//	  "converged": true,
//	  "history": [                          one per superstep: iterations + 1
//	    {"inertia": 20, "movement": 1.5}, …
//	  ],
//	  "checksum": "xxh3:16 hex digits"      see checksum
//	}
//
// Numbers are the shortest decimals that read back to the same float64.

const (
	modelFormat  = "superstep/kmeans"
	modelVersion = 1
)

// modelFile is the JSON object.
type modelFile struct {
	Format     string      `json:"format"`
	Version    int         `json:"version"`
	Input      modelInput  `json:"input"`
	Distance   Distance    `json:"distance"`
	Centers    [][]float64 `json:"centers"`
	Sizes      []float64   `json:"sizes"`
	Inertia    float64     `json:"inertia"`
	Iterations int         `json:"iterations"`
	Converged  bool        `json:"converged"`
	History    []Superstep `json:"history"`
	Checksum   string      `json:"checksum"`
}

type modelInput struct {
	Column string `json:"column"`
	Dim    int    `json:"dim"`
}

// checksum is the xxh3 hash, with 64 bits, of the object written without spaces
// and with an empty checksum: white space may change, anything else may not.
func (f modelFile) checksum() (string, error) {
	f.Checksum = ""
	text, err := json.Marshal(f)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("xxh3:%016x", xxh3.Hash(text)), nil
}

// Encode returns the model as JSON, the same bytes for the same model. A model
// that does not hold together, or holds a NaN or an infinity, is an error.
func (m *Model) Encode() ([]byte, error) {
	f := modelFile{
		Format: modelFormat, Version: modelVersion, Input: modelInput{m.VectorCol, m.Dim}, Distance: m.Distance,
		Centers: m.Centers, Sizes: m.Sizes, Inertia: m.Inertia,
		Iterations: m.Iterations, Converged: m.Converged, History: m.History,
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	var err error
	if f.Checksum, err = f.checksum(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return json.Marshal(f)
}

// check tells what does not hold together.
func (f *modelFile) check() error {
	k := len(f.Centers)
	switch {
	case f.Distance != Euclidean && f.Distance != Cosine:
		return fmt.Errorf("unknown distance %v", f.Distance)
	case f.Input.Dim < 1:
		return fmt.Errorf("dim is %d: want at least 1", f.Input.Dim)
	case k == 0:
		return errors.New("there are no centers")
	case len(f.Sizes) != k:
		return fmt.Errorf("there are %d sizes for %d centers", len(f.Sizes), k)
	case f.Iterations < 0:
		return fmt.Errorf("iterations is %d", f.Iterations)
	case len(f.History) > f.Iterations+1:
		return fmt.Errorf("there are %d entries in history for %d iterations: want at most one more than iterations", len(f.History), f.Iterations)
	case !(f.Inertia >= 0) || !finite(f.Inertia):
		return fmt.Errorf("inertia is %v", f.Inertia)
	}
	for a, c := range f.Centers {
		if len(c) != f.Input.Dim {
			return fmt.Errorf("center %d has %d components, dim is %d", a, len(c), f.Input.Dim)
		}
		for j, v := range c {
			if !finite(v) {
				return fmt.Errorf("component %d of center %d is %v", j, a, v)
			}
		}
		if !(f.Sizes[a] >= 0) || !finite(f.Sizes[a]) {
			return fmt.Errorf("size %d is %v", a, f.Sizes[a])
		}
	}
	for i, h := range f.History {
		if !(h.Inertia >= 0) || !finite(h.Inertia) || !(h.Movement >= 0) || !finite(h.Movement) {
			return fmt.Errorf("entry %d of history is %v", i, h)
		}
	}
	return nil
}

// Decode reads what Encode wrote. Input that is truncated, altered, of another
// format or of a newer version is an error that says so.
func Decode(text []byte) (*Model, error) {
	var head struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(text, &head); err != nil {
		return nil, jsonError(text, err)
	}
	switch {
	case head.Format != modelFormat:
		return nil, fmt.Errorf("not a k-means model: format is %q, want %q", head.Format, modelFormat)
	case head.Version > modelVersion:
		return nil, fmt.Errorf("model of version %d: this program reads up to version %d and must be updated to read it", head.Version, modelVersion)
	case head.Version < 1:
		return nil, fmt.Errorf("model of version %d: versions begin at 1", head.Version)
	}
	var f modelFile
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&f); err != nil {
		return nil, jsonError(text, err)
	}
	if err := f.check(); err != nil {
		return nil, fmt.Errorf("model is damaged: %w", err)
	}
	want, err := f.checksum()
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if f.Checksum != want {
		return nil, fmt.Errorf("model is damaged: the checksum of what was read is %s, the model says %s", want, strconv.Quote(f.Checksum))
	}
	return &Model{
		Centers: f.Centers, Sizes: f.Sizes, Inertia: f.Inertia, Iterations: f.Iterations, Converged: f.Converged,
		Distance: f.Distance, Dim: f.Input.Dim, VectorCol: f.Input.Column, History: f.History,
	}, nil
}

// jsonError says whether input that is no JSON ends too early or too late.
func jsonError(text []byte, err error) error {
	var syntax *json.SyntaxError
	if len(bytes.TrimSpace(text)) == 0 {
		return errors.New("model is empty")
	}
	whole := json.NewDecoder(bytes.NewReader(text))
	if errors.As(err, &syntax) && whole.Decode(new(json.RawMessage)) == nil {
		end := whole.InputOffset()
		return fmt.Errorf("model is damaged: it ends after %d of %d bytes, and something else is behind it: %w", end, len(text), err)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.As(err, &syntax) && syntax.Offset >= int64(len(text)) {
		return fmt.Errorf("model is truncated after %d bytes: %w", len(text), err)
	}
	return fmt.Errorf("model is damaged: %w", err)
}

// Save writes the model to a file, as Encode gives it and a line end. It writes
// aside and renames, so that the file is either the old one or the whole new one.
func (m *Model) Save(path string) (err error) {
	text, err := m.Encode()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("save model: %w", err)
		}
	}()
	aside := filepath.Join(filepath.Dir(path), fmt.Sprintf(".%s.%d.partial", filepath.Base(path), os.Getpid()))
	file, err := os.OpenFile(aside, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return err
	}
	_, err = file.Write(append(text, '\n'))
	if err == nil {
		err = file.Sync()
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	if err == nil {
		err = os.Rename(aside, path)
	}
	if err != nil {
		os.Remove(aside)
	}
	return err
}

// Load reads a model that Save wrote.
func Load(path string) (*Model, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load model: %w", err)
	}
	m, err := Decode(text)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", path, err)
	}
	return m, nil
}
