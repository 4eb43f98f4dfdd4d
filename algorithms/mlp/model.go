package mlp

import (
	"math"
	"sync"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Kind is the kind of this package's models.
const Kind = "mlp"

// Classes has the classes of a classifier. Type is the type of the label column, and Values has
// the classes as texts, in order. A regression has no classes.
type Classes = signature.Classes

// Model is a trained network. Use it through a pointer, and do not change it after the first
// prediction. Any number of goroutines may use the same model.
type Model struct {
	// Task is what the network predicts. Classes has the classes of a classification, in
	// ascending order.
	Task    Task    `json:"-"`
	Classes Classes `json:"-"`
	// Activation is the activation function of the hidden units.
	Activation Activation `json:"activation"`
	// Dim is the number of features. Columns, unless nil, are the features that occurred in
	// training, in ascending order. The first layer reads only these features; other features
	// are treated as 0.
	Dim     int     `json:"dim"`
	Columns []int32 `json:"columns,omitempty"`
	// The first layer reads a feature x as (x − Shift)·Scale.
	Shift []float64 `json:"shift"`
	Scale []float64 `json:"scale"`
	// Layers are the hidden layers, followed by the output layer. A regression has one output.
	// A classification with two classes has one output, the log odds of the second class. A
	// classification with more classes has one output for each class.
	Layers []Layer `json:"layers"`
	// PredictionCol and ProbabilityCol name the columns of predictions; empty means
	// "prediction" and "probability".
	PredictionCol  string `json:"prediction_column,omitempty"`
	ProbabilityCol string `json:"probability_column,omitempty"`
	// Summary describes the training.
	Summary Summary `json:"-"`

	columns signature.Inputs
	options model.PredictOptions // given to Predict
	once    sync.Once
	net     *network
	sparse  bool      // whether the first layer adds only the nonzero entries
	passes  sync.Pool // *pass
}

// Layer is a layer of units.
type Layer struct {
	// Weights has a row for each input and a column for each unit.
	Weights [][]float64 `json:"weights"`
	// Biases has the bias of each unit.
	Biases []float64 `json:"biases"`
}

// Summary describes a training.
type Summary = optim.Summary

var _ model.Binder = (*Model)(nil)

// Kind returns "mlp".
func (m *Model) Kind() string { return Kind }

// Inputs returns the columns that the model was trained on.
func (m *Model) Inputs() []model.Input { return append([]model.Input(nil), m.columns...) }

// prepare builds the network in the first call.
func (m *Model) prepare() {
	m.once.Do(func() {
		sizes := []int{len(m.Scale)}
		m.sparse = true
		for _, v := range m.Shift {
			m.sparse = m.sparse && v == 0
		}
		for _, layer := range m.Layers {
			sizes = append(sizes, len(layer.Biases))
		}
		m.net = newNetwork(sizes, m.Activation, m.sparse, false)
		for l, layer := range m.Layers {
			w := m.net.weights(l, m.net.parameters)
			for i, row := range layer.Weights {
				copy(w[i*len(row):], row)
			}
			copy(m.net.biases(l, m.net.parameters), layer.Biases)
		}
		m.net.pack()
	})
}

// evaluate returns a pass with the outputs for a point, or nil if the point is not a valid row
// of Dim features. The caller must put the pass back into m.passes.
func (m *Model) evaluate(x signature.Point) *pass {
	if !x.Fits(m.Dim) {
		return nil
	}
	m.prepare()
	p, ok := m.passes.Get().(*pass)
	if !ok {
		p = newPass(m.net, 1, m.sparse, false)
	}
	if m.sparse {
		m.loadEntries(x, p)
	} else {
		m.load(x, p)
	}
	m.net.finish(p, 1)
	return p
}

// outputs returns the outputs of the last layer.
func (m *Model) outputs(p *pass) []float64 { return p.values[len(p.values)-1] }

// load computes the sums of the first layer for a model that shifts features, so that a feature
// of 0 also contributes to the sums. The first layer of such a model reads all features.
func (m *Model) load(x signature.Point, p *pass) {
	if x.Indices == nil {
		copy(p.x, x.Values)
	} else {
		clear(p.x)
		for q, j := range x.Indices {
			p.x[j] = x.Values[q]
		}
	}
	for j, v := range p.x {
		p.x[j] = (v - m.Shift[j]) * m.Scale[j]
	}
	m.net.multiply(p, 1)
}

// loadEntries computes the sums of the first layer for a model that does not shift features. It
// reads only the nonzero entries of x.
func (m *Model) loadEntries(x signature.Point, p *pass) {
	sums := p.values[0]
	clear(sums)
	for q, v := range x.Values {
		if at := x.Place(q, m.Columns); v != 0 && at >= 0 {
			m.net.addInput(at, v*m.Scale[at], sums)
		}
	}
}

// decide returns the prediction, which is computed from the outputs: a number, or the index of
// a class. The index is -1 if an output is NaN.
func (m *Model) decide(outputs []float64) float64 {
	switch {
	case m.Task == Regression:
		return outputs[0]
	case len(outputs) == 1 && outputs[0] > 0:
		return 1
	}
	best := 0
	for c, p := range outputs {
		if math.IsNaN(p) {
			return -1
		}
		if p > outputs[best] {
			best = c
		}
	}
	return float64(best)
}

// write computes the probabilities of the classes from the outputs, and writes them to dst.
func (m *Model) write(outputs, dst []float64) {
	if len(outputs) == 1 {
		dst[0], dst[1] = kernel.Sigmoid(-outputs[0]), kernel.Sigmoid(outputs[0])
		return
	}
	copy(dst, outputs)
	kernel.Softmax(dst)
}

// score returns the prediction for a point, see decide. If the point is not a valid row of Dim
// features, score returns NaN, or -1 for a classification. score writes the probabilities of
// classes to dst unless dst is nil.
func (m *Model) score(x signature.Point, dst []float64) float64 {
	p := m.evaluate(x)
	switch {
	case p == nil && m.Task == Classification:
		return -1
	case p == nil:
		return math.NaN()
	}
	defer m.passes.Put(p)
	outputs := m.outputs(p)
	if dst != nil {
		m.write(outputs, dst)
	}
	return m.decide(outputs)
}

func (m *Model) probabilities(x signature.Point, dst []float64) bool {
	return m.Task == Classification && len(dst) == len(m.Classes.Values) && m.score(x, dst) >= 0 && !math.IsNaN(dst[0])
}

// Predict returns the prediction for a row. For a regression it is a number. For a
// classification it is the index in Classes.Values of the most probable class; of several
// classes with the same probability, it is the index of the first. If the row does not have Dim
// features, the result is NaN, or -1 for a classification. Only the first calls allocate
// memory.
func (m *Model) Predict(x []float64) float64 { return m.score(signature.Dense(x), nil) }

// PredictSparse does what Predict does, for a sparse row. The row is given by its nonzero
// values and their indices in ascending order. If indices do not ascend or lie outside
// 0..Dim-1, the result is NaN, or -1 for a classification.
func (m *Model) PredictSparse(indices []int32, values []float64) float64 {
	return m.score(signature.Sparse(indices, values), nil)
}

// PredictProbability writes the probability of each class to dst, which must have one element
// for each class. It returns false for a regression, and if Predict returns the class -1.
func (m *Model) PredictProbability(x, dst []float64) bool {
	return m.probabilities(signature.Dense(x), dst)
}

// PredictProbabilitySparse does what PredictProbability does, for a sparse row.
func (m *Model) PredictProbabilitySparse(indices []int32, values, dst []float64) bool {
	return m.probabilities(signature.Sparse(indices, values), dst)
}
