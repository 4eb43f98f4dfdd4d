package forest

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/internal/batch"
)

// version is the version of the payload.
const version = 1

type payload struct {
	Task           Task           `json:"task"`
	Classes                       // fields label_type and classes
	Dim            int            `json:"dim"`
	AbsentIsZero   bool           `json:"absent_is_zero"`
	Trees          *tree.Ensemble `json:"trees"` // null here; model.Apart writes the trees
	PredictionCol  string         `json:"prediction_column,omitempty"`
	ProbabilityCol string         `json:"probability_column,omitempty"`
}

type summary struct {
	Summary
	OutOfBag *OutOfBag `json:"out_of_bag,omitempty"`
}

// Encode returns the content of the model's file. The same model gives the same bytes. It
// returns an error if the model is not valid.
func (m *Model) Encode() ([]byte, error) { return m.encode(m.check(), m.Trees) }

// encode returns the file of a model. The appender trees writes the list of trees.
func (m *Model) encode(problem error, trees model.Appender) ([]byte, error) {
	p := payload{m.Task, m.Classes, m.Dim, m.AbsentIsZero, nil, m.PredictionCol, m.ProbabilityCol}
	return model.EncodeWhole(problem, Kind, version, m.inputs, summary{m.Summary, m.OutOfBag}, model.Apart{Value: p, Member: "trees", Writer: trees})
}

// Decode decodes what Encode returned. It returns an error that names the cause if the file is
// truncated, altered, of another kind or of a newer version.
func Decode(file []byte) (*Model, error) {
	var s summary
	var p payload
	trees := new(tree.Ensemble)
	f, err := model.DecodeParts(file, Kind, version, &s, model.Apart{Value: &p, Member: "trees", Reader: trees})
	if err != nil {
		return nil, err
	}
	m := &Model{
		Task: p.Task, Classes: p.Classes, Dim: p.Dim, Trees: trees, AbsentIsZero: p.AbsentIsZero, OutOfBag: s.OutOfBag,
		PredictionCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol, Summary: s.Summary, inputs: f.Inputs,
	}
	return model.Whole(m, m.check())
}

// check returns an error about the first contradiction between parts of the model.
func (m *Model) check() error {
	outputs := 1
	switch {
	case m.Task < Regression || m.Task > Classification:
		return fmt.Errorf("%v is not one of the package's constants", m.Task)
	case m.Task == Regression && (m.Classes.Type != "" || len(m.Classes.Values) > 0):
		return errors.New("a regression has no classes")
	case m.Dim < 1 || m.Dim > batch.MaxDim:
		return fmt.Errorf("dim is %d: want 1 to %d", m.Dim, batch.MaxDim)
	case m.Trees == nil || len(m.Trees.Trees) == 0:
		return errors.New("there are no trees")
	case len(m.Trees.Features) != m.Dim:
		return fmt.Errorf("the trees have %d features, dim is %d", len(m.Trees.Features), m.Dim)
	}
	if m.Task == Classification {
		if err := m.Classes.Check(1); err != nil {
			return err
		}
		if _, err := m.Classes.Cells(); err != nil {
			return err
		}
		outputs = len(m.Classes.Values)
	}
	if m.Trees.Outputs != outputs || !m.Trees.Average || !m.Trees.Single {
		return fmt.Errorf("the trees have %d outputs (averaged: %v, of float32: %v): want %d, averaged, of float32", m.Trees.Outputs, m.Trees.Average, m.Trees.Single, outputs)
	}
	for i := range m.Trees.Trees {
		if t := &m.Trees.Trees[i]; (t.Values != nil) != (m.Task == Classification) {
			return fmt.Errorf("tree %d does not have the values of a %v", i, m.Task)
		}
	}
	if err := m.Trees.Validate(); err != nil {
		return err
	}
	return m.inputs.CheckCoded(m.Dim, m.Trees.Categories)
}
