package mlp

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/batch"
)

// version is that of the payload.
const version = 1

type payload struct {
	Task           Task       `json:"task"`
	Classes                   // label_type, classes
	Activation     Activation `json:"activation"`
	Dim            int        `json:"dim"`
	Columns        []int32    `json:"columns,omitempty"`
	Shift          []float64  `json:"shift"`
	Scale          []float64  `json:"scale"`
	Layers         []Layer    `json:"layers"`
	PredictionCol  string     `json:"prediction_column,omitempty"`
	ProbabilityCol string     `json:"probability_column,omitempty"`
}

// Encode returns the model's file, the same bytes for the same model. A model that does
// not hold together is an error.
func (m *Model) Encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return model.Encode(Kind, version, m.columns, m.Summary, payload{
		m.Task, m.Classes, m.Activation, m.Dim, m.Columns, m.Shift, m.Scale, m.Layers, m.PredictionCol, m.ProbabilityCol,
	})
}

// Decode reads what Encode wrote.
func Decode(file []byte) (*Model, error) {
	var s Summary
	var p payload
	f, err := model.DecodeParts(file, Kind, version, &s, &p)
	if err != nil {
		return nil, err
	}
	m := &Model{
		Task: p.Task, Classes: p.Classes, Activation: p.Activation, Dim: p.Dim, Columns: p.Columns, Shift: p.Shift, Scale: p.Scale,
		Layers: p.Layers, PredictionCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol, Summary: s, columns: f.Inputs,
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("model is damaged: %w", err)
	}
	return m, nil
}

// check tells what does not hold together.
func (m *Model) check() error {
	d, outputs := m.Dim, outputs(m.Task, len(m.Classes.Values))
	if m.Columns != nil {
		d = len(m.Columns)
	}
	switch {
	case m.Task < Regression || m.Task > Classification:
		return fmt.Errorf("%v is none of the package's constants", m.Task)
	case m.Activation < ReLU || m.Activation > Logistic:
		return fmt.Errorf("%v is none of the package's constants", m.Activation)
	case m.Task == Classification && len(m.Classes.Values) < 2:
		return fmt.Errorf("there are %d classes, want 2 or more", len(m.Classes.Values))
	case m.Task == Regression && (m.Classes.Type != "" || len(m.Classes.Values) > 0):
		return errors.New("a regression has no classes")
	case m.Dim < 1 || m.Dim > batch.MaxDim:
		return fmt.Errorf("dim is %d: want 1 to %d", m.Dim, batch.MaxDim)
	case m.Columns != nil && !signature.Ascending(m.Columns, m.Dim):
		return fmt.Errorf("the columns do not ascend below dim %d", m.Dim)
	case len(m.Shift) != d || len(m.Scale) != d:
		return fmt.Errorf("there are %d shifts and %d scales of %d features", len(m.Shift), len(m.Scale), d)
	case len(m.Layers) == 0 || len(m.Layers[len(m.Layers)-1].Biases) != outputs:
		return fmt.Errorf("the last layer has not %d outputs, as it must", outputs)
	}
	for j, v := range m.Shift {
		if !finite(v) || !finite(m.Scale[j]) || m.Columns != nil && v != 0 {
			return fmt.Errorf("feature %d has shift %v and scale %v", j, v, m.Scale[j])
		}
	}
	if m.Task == Classification {
		if _, err := m.Classes.Cells(); err != nil {
			return err
		}
	}
	if err := m.columns.Check(m.Dim); err != nil {
		return err
	}
	return m.checkLayers(d)
}

// checkLayers checks that layers fit each other, and that their values are numbers.
func (m *Model) checkLayers(inputs int) error {
	for l, layer := range m.Layers {
		units := len(layer.Biases)
		if units == 0 || len(layer.Weights) != inputs {
			return fmt.Errorf("layer %d has weights of %d inputs and %d units, want %d inputs", l, len(layer.Weights), units, inputs)
		}
		for i, row := range append(layer.Weights[:inputs:inputs], layer.Biases) {
			if len(row) != units {
				return fmt.Errorf("layer %d: input %d has %d weights for %d units", l, i, len(row), units)
			}
			for _, v := range row {
				if !finite(v) {
					return fmt.Errorf("layer %d: a weight of input %d is %v", l, i, v)
				}
			}
		}
		inputs = units
	}
	return nil
}
