package kmeans

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// A model file has the common format of package model. Its kind is "kmeans", its only input is
// the vector column, and its summary and payload have these members:
//
//	"summary": {
//	  "inertia": 12.5,
//	  "iterations": 2,                      updates of the centres, or batches
//	  "converged": true,
//	  "history": {                          one value per superstep over all rows
//	    "inertia": [20, 14, 12.5], "movement": [1.5, 0.2, 0]
//	  }
//	},
//	"payload": {
//	  "distance": "euclidean",              or "cosine"
//	  "dim": 2,                             components of points and centres
//	  "centers": [[0.5, 1], [7, 2.25]],     one array of dim numbers per cluster
//	  "sizes": [10, 20],                    weight of each cluster
//	  "prediction_column": "group",         if the name is not "cluster"
//	  "distance_column": "far"              if the name is not "distance"
//	}

const (
	modelKind    = "kmeans"
	modelVersion = 2
)

// modelSummary is the member "summary".
type modelSummary struct {
	Inertia    float64      `json:"inertia"`
	Iterations int          `json:"iterations"`
	Converged  bool         `json:"converged"`
	History    modelHistory `json:"history"`
}

// modelHistory is the history as one list for each field.
type modelHistory struct {
	Inertia  []float64 `json:"inertia"`
	Movement []float64 `json:"movement"`
}

func historyColumns(history []Superstep) modelHistory {
	h := modelHistory{make([]float64, len(history)), make([]float64, len(history))}
	for i, s := range history {
		h.Inertia[i], h.Movement[i] = s.Inertia, s.Movement
	}
	return h
}

// rows returns the history as one entry for each superstep.
func (h modelHistory) rows() ([]Superstep, error) {
	if len(h.Inertia) != len(h.Movement) {
		return nil, fmt.Errorf("history has %d inertias and %d movements", len(h.Inertia), len(h.Movement))
	}
	var history []Superstep
	for i, v := range h.Inertia {
		history = append(history, Superstep{Inertia: v, Movement: h.Movement[i]})
	}
	return history, nil
}

// modelPayload is the member "payload".
type modelPayload struct {
	Distance      Distance    `json:"distance"`
	Dim           int         `json:"dim"`
	Centers       [][]float64 `json:"centers"`
	Sizes         []float64   `json:"sizes"`
	PredictionCol string      `json:"prediction_column,omitempty"`
	DistanceCol   string      `json:"distance_column,omitempty"`
}

// Encode returns the content of the model's file. The same model gives the same bytes. It
// returns an error if the model is not valid, or contains a NaN or an infinity.
func (m *Model) Encode() ([]byte, error) {
	return model.EncodeWhole(m.check(), modelKind, modelVersion, m.Inputs(),
		modelSummary{m.Inertia, m.Iterations, m.Converged, historyColumns(m.History)},
		modelPayload{m.Distance, m.Dim, m.Centers, m.Sizes, m.PredictionCol, m.DistanceCol})
}

// check returns an error about the first contradiction between parts of the model, or about the
// first number that is out of range.
func (m *Model) check() error {
	k := len(m.Centers)
	switch {
	case m.Distance != Euclidean && m.Distance != Cosine:
		return fmt.Errorf("unknown distance %v", m.Distance)
	case m.Dim < 1:
		return fmt.Errorf("dim is %d: want at least 1", m.Dim)
	case k == 0:
		return errors.New("there are no centers")
	case len(m.Sizes) != k:
		return fmt.Errorf("there are %d sizes for %d centers", len(m.Sizes), k)
	case m.Iterations < 0:
		return fmt.Errorf("iterations is %d", m.Iterations)
	case len(m.History) > m.Iterations+1:
		return fmt.Errorf("there are %d entries in history for %d iterations: want at most one more than iterations", len(m.History), m.Iterations)
	case !(m.Inertia >= 0) || !kernel.Finite(m.Inertia):
		return fmt.Errorf("inertia is %v", m.Inertia)
	case clusterName(m.PredictionCol) == distanceName(m.DistanceCol):
		return fmt.Errorf("the columns of clusters and distances are both %q", clusterName(m.PredictionCol))
	}
	for a, c := range m.Centers {
		if len(c) != m.Dim {
			return fmt.Errorf("center %d has %d components, dim is %d", a, len(c), m.Dim)
		}
		if j := kernel.NonFinite(c); j >= 0 {
			return fmt.Errorf("component %d of center %d is %v", j, a, c[j])
		}
		if !(m.Sizes[a] >= 0) || !kernel.Finite(m.Sizes[a]) {
			return fmt.Errorf("size %d is %v", a, m.Sizes[a])
		}
	}
	for i, h := range m.History {
		if !(h.Inertia >= 0) || !kernel.Finite(h.Inertia) || !(h.Movement >= 0) || !kernel.Finite(h.Movement) {
			return fmt.Errorf("entry %d of history is %v", i, h)
		}
	}
	return nil
}

// Decode returns the model in a file that Encode wrote, in this version of the format or an
// earlier one. It returns an error if text is truncated or altered, or has another kind or a
// newer version.
func Decode(text []byte) (*Model, error) {
	var summary modelSummary
	var payload modelPayload
	f, err := model.DecodeParts(text, modelKind, modelVersion, &summary, &payload)
	if err != nil {
		return nil, err
	}
	switch {
	case f.Version == 1:
		return nil, errors.New("model is damaged: there was no version 1")
	case len(f.Inputs) != 1:
		return nil, fmt.Errorf("model is damaged: it has %d inputs, want one", len(f.Inputs))
	}
	history, err := summary.History.rows()
	if err != nil {
		return nil, fmt.Errorf("model is damaged: %w", err)
	}
	m := &Model{
		Centers: payload.Centers, Sizes: payload.Sizes, Inertia: summary.Inertia, Iterations: summary.Iterations, Converged: summary.Converged,
		Distance: payload.Distance, Dim: payload.Dim, VectorCol: f.Inputs[0].Column, VectorType: f.Inputs[0].Type,
		PredictionCol: payload.PredictionCol, DistanceCol: payload.DistanceCol, History: history,
	}
	return model.Whole(m, m.check())
}

// Save writes the model to the file path. An existing file is replaced atomically: after a
// failure it still has the old contents.
func (m *Model) Save(path string) error { return model.Save(path, m) }

// Load reads a model that Save wrote.
func Load(path string) (*Model, error) { return model.Load(path, Decode) }
