package gbdt

import (
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/internal/batch"
)

// version is the version of the payload's format.
const version = 1

type payload struct {
	Objective      Objective          `json:"objective"`
	Parameters     map[string]float64 `json:"parameters,omitempty"`
	CustomName     string             `json:"custom_name,omitempty"`
	Link           Link               `json:"link"`
	Classes                           // fields label_type and classes
	Dim            int                `json:"dim"`
	Columns        []int32            `json:"columns,omitzero"`
	AbsentIsZero   bool               `json:"absent_is_zero,omitempty"`
	PredictionCol  string             `json:"prediction_column,omitempty"`
	ProbabilityCol string             `json:"probability_column,omitempty"`
	Ensemble       *tree.Ensemble     `json:"ensemble"` // null here; model.Apart writes the ensemble
}

// Encode returns the content of the model's file. The same model gives the same bytes. It
// returns an error if the model is not valid.
func (m *Model) Encode() ([]byte, error) {
	p := payload{m.Objective, m.Parameters, m.CustomName, m.Link, m.Classes, m.Dim, m.Columns, m.AbsentIsZero, m.PredictionCol, m.ProbabilityCol, nil}
	return model.EncodeWhole(m.check(), Kind, version, m.inputs, m.Summary, model.Apart{Value: p, Member: "ensemble", Writer: m.Ensemble})
}

// Decode decodes what Encode returned. It returns an error that names the cause if the file is
// truncated, altered, of another kind or of a newer version.
func Decode(file []byte) (*Model, error) {
	m, p := &Model{Ensemble: new(tree.Ensemble)}, payload{}
	f, err := model.DecodeParts(file, Kind, version, &m.Summary, model.Apart{Value: &p, Member: "ensemble", Reader: m.Ensemble})
	if err != nil {
		return nil, err
	}
	m.Objective, m.Parameters, m.CustomName, m.Link, m.Classes = p.Objective, p.Parameters, p.CustomName, p.Link, p.Classes
	m.Dim, m.Columns, m.AbsentIsZero, m.inputs = p.Dim, p.Columns, p.AbsentIsZero, f.Inputs
	m.PredictionCol, m.ProbabilityCol = p.PredictionCol, p.ProbabilityCol
	return model.Whole(m, m.check())
}

// check returns an error about the parts of the model that are inconsistent.
func (m *Model) check() error {
	if err := m.Ensemble.Validate(); err != nil {
		return err
	}
	if err := m.checkClasses(); err != nil {
		return err
	}
	e, count := m.Ensemble, m.Dim
	if m.Columns != nil {
		count = len(m.Columns)
	}
	switch {
	case m.Dim < 1 || m.Dim > batch.MaxDim:
		return fmt.Errorf("dim is %d: want 1 to %d", m.Dim, batch.MaxDim)
	case m.Columns != nil && !signature.Ascending(m.Columns, m.Dim):
		return fmt.Errorf("the columns do not ascend below dim %d", m.Dim)
	case len(e.Features) != count:
		return fmt.Errorf("the trees are over %d features of %d", len(e.Features), count)
	case e.Average:
		return errors.New("the trees are averaged")
	case len(e.Trees)%e.Outputs != 0:
		return fmt.Errorf("there are %d trees for %d outputs", len(e.Trees), e.Outputs)
	}
	for i := range e.Trees {
		if t := &e.Trees[i]; t.Values != nil || int(t.Output) != i%e.Outputs {
			return fmt.Errorf("tree %d is not one of output %d", i, i%e.Outputs)
		}
	}
	return m.inputs.CheckCoded(m.Dim, m.categories())
}

// checkClasses checks that objective, link, classes and outputs are consistent.
func (m *Model) checkClasses() error {
	k, outputs := len(m.Classes.Values), m.Ensemble.Outputs
	links := map[Objective]Link{Logistic: Sigmoid, Softmax: Shares, Poisson: Exponential, Gamma: Exponential, Tweedie: Exponential, AFT: Exponential}
	switch {
	case m.Objective < Squared || m.Objective > Custom:
		return fmt.Errorf("%v is not one of the package's constants", m.Objective)
	case m.Objective != Custom && m.Link != links[m.Objective] || m.Link < Identity || m.Link > Shares || m.Objective == Custom && m.Link == Shares:
		return fmt.Errorf("the link %v does not go with the objective %v", m.Link, m.Objective)
	case m.Objective == Logistic && (k != 2 || outputs != 1), m.Objective == Softmax && (k < 2 || outputs != k):
		return fmt.Errorf("the objective %v has %d classes and %d outputs", m.Objective, k, outputs)
	case !m.Objective.classes() && (k > 0 || m.Classes.Type != ""):
		return fmt.Errorf("the objective %v has no classes", m.Objective)
	case !m.Objective.classes() && m.Objective != Custom && outputs != 1 || outputs > maxOutputs:
		return fmt.Errorf("the objective %v has %d outputs", m.Objective, outputs)
	case k > 0:
		_, err := m.Classes.Cells()
		return err
	}
	return nil
}
