package mlp

import (
	"cmp"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// version is the version of the payload.
const version = 1

type payload struct {
	Task    Task `json:"task"`
	Classes      // JSON fields label_type and classes
	*Model
}

// Encode returns the content of the model's file. The same model gives the same bytes. It
// returns an error if the model is not valid.
func (m *Model) Encode() ([]byte, error) {
	return model.EncodeWhole(m.check(), Kind, version, m.columns, m.Summary, payload{m.Task, m.Classes, m})
}

// Decode decodes what Encode returned. It returns an error that names the cause if the file is
// truncated, altered, of another kind or of a newer version.
func Decode(file []byte) (*Model, error) {
	m := &Model{}
	p := payload{Model: m}
	f, err := model.DecodeParts(file, Kind, version, &m.Summary, &p)
	if err != nil {
		return nil, err
	}
	m.Task, m.Classes, m.columns = p.Task, p.Classes, f.Inputs
	return model.Whole(m, m.check())
}

// check returns an error if the model is not valid.
func (m *Model) check() error {
	d, err := m.columns.CheckDim(m.Dim, m.Columns)
	outputs := outputs(m.Task, len(m.Classes.Values))
	switch err := cmp.Or(m.Task.Check(m.Classes, true), err); {
	case err != nil:
		return err
	case m.Activation < ReLU || m.Activation > Logistic:
		return fmt.Errorf("%v is not one of the package's constants", m.Activation)
	case len(m.Shift) != d || len(m.Scale) != d:
		return fmt.Errorf("there are %d shifts and %d scales of %d features", len(m.Shift), len(m.Scale), d)
	case len(m.Layers) == 0 || len(m.Layers[len(m.Layers)-1].Biases) != outputs:
		return fmt.Errorf("the last layer must have %d outputs", outputs)
	}
	for j, v := range m.Shift {
		if !kernel.Finite(v) || !kernel.Finite(m.Scale[j]) || m.Columns != nil && v != 0 {
			return fmt.Errorf("feature %d has shift %v and scale %v", j, v, m.Scale[j])
		}
	}
	return m.checkLayers(d)
}

// checkLayers checks that the sizes of the layers agree, and that their values are finite.
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
				if !kernel.Finite(v) {
					return fmt.Errorf("layer %d: a weight of input %d is %v", l, i, v)
				}
			}
		}
		inputs = units
	}
	return nil
}
