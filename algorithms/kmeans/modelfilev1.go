package kmeans

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/zeebo/xxh3"
)

// Before models of all kinds had a common format, version 1 of this one was one JSON
// object of its own:
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
//	  "checksum": "xxh3:16 hex digits"      see fileV1.checksum
//	}
//
// Such files are still read.

// fileV1 is the JSON object.
type fileV1 struct {
	Format     string      `json:"format"`
	Version    int         `json:"version"`
	Input      inputV1     `json:"input"`
	Distance   Distance    `json:"distance"`
	Centers    [][]float64 `json:"centers"`
	Sizes      []float64   `json:"sizes"`
	Inertia    float64     `json:"inertia"`
	Iterations int         `json:"iterations"`
	Converged  bool        `json:"converged"`
	History    []Superstep `json:"history"`
	Checksum   string      `json:"checksum"`
}

type inputV1 struct {
	Column string `json:"column"`
	Dim    int    `json:"dim"`
}

// checksum is the xxh3 hash, with 64 bits, of the object written without spaces
// and with an empty checksum: white space may change, anything else may not.
func (f fileV1) checksum() (string, error) {
	f.Checksum = ""
	text, err := json.Marshal(f)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("xxh3:%016x", xxh3.Hash(text)), nil
}

// isV1 reports whether a text is an object of the format of version 1.
func isV1(text []byte) bool {
	var head struct {
		Format string `json:"format"`
	}
	return json.Unmarshal(text, &head) == nil && head.Format == "superstep/kmeans"
}

// decodeV1 reads a model of version 1.
func decodeV1(text []byte) (*Model, error) {
	var f fileV1
	strict := json.NewDecoder(bytes.NewReader(text))
	strict.DisallowUnknownFields()
	if err := strict.Decode(&f); err != nil {
		return nil, fmt.Errorf("model is damaged: %w", err)
	}
	if f.Version != 1 {
		return nil, fmt.Errorf("model is damaged: version %d was never of this format", f.Version)
	}
	m := &Model{
		Centers: f.Centers, Sizes: f.Sizes, Inertia: f.Inertia, Iterations: f.Iterations, Converged: f.Converged,
		Distance: f.Distance, Dim: f.Input.Dim, VectorCol: f.Input.Column, VectorType: fmt.Sprintf("vector[%d]", f.Input.Dim), History: f.History,
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("model is damaged: %w", err)
	}
	want, err := f.checksum()
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if f.Checksum != want {
		return nil, fmt.Errorf("model is damaged: the checksum of what was read is %s, the model says %s", want, strconv.Quote(f.Checksum))
	}
	return m, nil
}
