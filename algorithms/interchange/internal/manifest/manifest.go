// Package manifest encodes the facts about a model that files of other formats cannot
// represent, so that an import gives the same model.
package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
)

// maxDepth bounds the nesting of pipelines.
const maxDepth = 8

// Manifest is the content of a model's file. Numbers that are in other parts of the foreign
// file are replaced by references to these parts. The manifest of a pipeline has the manifests
// of its stages instead.
type Manifest struct {
	Kind    string          `json:"kind"`
	Single  bool            `json:"single,omitempty"` // set only in the outermost manifest, by onnx.ExportSingle
	Version int             `json:"version,omitempty"`
	Inputs  []model.Input   `json:"inputs,omitempty"`
	Summary json.RawMessage `json:"summary,omitempty"`
	Payload any             `json:"payload,omitempty"`
	Stages  []Manifest      `json:"stages,omitempty"`
}

// Of returns the manifest of a model. For each model in it that is not a pipeline, Of checks
// the model and calls add, where name is the text with which errors about the model begin. It
// then calls refer, which replaces numbers in the model's payload by references.
func Of(m model.Model, add func(m model.Model, name string) error, refer func(payload any) error) (Manifest, error) {
	return of(m, m.Kind(), add, refer)
}

func of(m model.Model, name string, add func(m model.Model, name string) error, refer func(payload any) error) (Manifest, error) {
	if p, ok := m.(*pipeline.Model); ok {
		about := Manifest{Kind: p.Kind()}
		for i, s := range p.Stages() {
			one, err := of(s, fmt.Sprintf("%s/%d-%s", name, i, s.Kind()), add, refer)
			if err != nil {
				return Manifest{}, err
			}
			about.Stages = append(about.Stages, one)
		}
		return about, nil
	}
	text, err := m.Encode() // Encode also checks the model
	if err != nil {
		return Manifest{}, err
	}
	if err := add(m, name); err != nil {
		return Manifest{}, fmt.Errorf("%s: %w", name, err)
	}
	f, err := model.Decode(text, m.Kind(), math.MaxInt)
	if err != nil {
		return Manifest{}, err
	}
	about := Manifest{Kind: f.Kind, Version: f.Version, Inputs: f.Inputs, Summary: f.Summary}
	d := json.NewDecoder(strings.NewReader(string(f.Payload)))
	d.UseNumber()
	if err := d.Decode(&about.Payload); err != nil {
		return Manifest{}, err
	}
	return about, refer(about.Payload)
}

// Decode returns the manifest in text. It refuses unknown members.
func Decode(text string) (about Manifest, err error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	d.DisallowUnknownFields()
	if err := d.Decode(&about); err != nil {
		return about, err
	}
	if _, err := d.Token(); err != io.EOF {
		return about, errors.New("something follows the object")
	}
	return about, nil
}

// Model returns the model of the manifest. For each model that is not a pipeline, it calls
// resolve, which returns the payload with numbers in place of the references.
func (about Manifest) Model(resolve func(payload any) (any, error)) (model.Model, error) {
	return about.model(resolve, 0)
}

func (about Manifest) model(resolve func(payload any) (any, error), depth int) (model.Model, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("pipelines are nested more than %d deep", maxDepth)
	}
	if about.Kind == pipeline.Kind {
		var stages []model.Model
		for i, s := range about.Stages {
			one, err := s.model(resolve, depth+1)
			if err != nil {
				return nil, fmt.Errorf("stage %d: %w", i, err)
			}
			stages = append(stages, one)
		}
		return pipeline.NewModel(stages...)
	}
	if about.Version < 1 {
		return nil, fmt.Errorf("model of kind %q: the version is %d", about.Kind, about.Version)
	}
	payload, err := resolve(about.Payload)
	if err != nil {
		return nil, fmt.Errorf("model of kind %q: %w", about.Kind, err)
	}
	text, err := model.Encode(about.Kind, about.Version, about.Inputs, about.Summary, payload)
	if err != nil {
		return nil, fmt.Errorf("model of kind %q: %w", about.Kind, err)
	}
	return pipeline.DecodeAny(text)
}
