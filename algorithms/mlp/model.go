package mlp

import (
	"math"
	"sort"
	"sync"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Kind is that of the models of this package.
const Kind = "mlp"

// Classes are the classes of a classifier: their Type is that of the column of labels, their
// Values are texts in the order of the classes. Those of a regression are empty.
type Classes = signature.Classes

// Model is a trained network. It is used by pointer and not changed once it predicts; any
// number of goroutines may use one.
type Model struct {
	// Task is what the network predicts, and Classes are those of a classification, in
	// ascending order.
	Task    Task
	Classes Classes
	// Activation is that of the hidden units.
	Activation Activation
	// Dim is the number of features. Columns are, where they are not nil, the features that
	// occurred in training, in ascending order, which the first layer reads; the others count
	// as 0.
	Dim     int
	Columns []int32
	// Shift is subtracted from the features that the first layer reads, and Scale is what
	// they are then multiplied with.
	Shift, Scale []float64
	// Layers are the layers of units, the last one that of the outputs: one of a regression
	// and of two classes, of which it is the log odds of the second, else one for each class.
	Layers []Layer
	// PredictionCol and ProbabilityCol name the columns of predictions; empty means
	// "prediction" and "probability".
	PredictionCol, ProbabilityCol string
	// Summary tells about the training.
	Summary Summary

	columns  signature.Inputs
	override signature.Override // of Predict
	once     sync.Once
	net      *network
	sparse   bool      // the first layer is taken entry by entry
	passes   sync.Pool // of *pass
}

// Layer is a layer of units.
type Layer struct {
	// Weights has a row for each input and a column for each unit.
	Weights [][]float64 `json:"weights"`
	// Biases are those of the units.
	Biases []float64 `json:"biases"`
}

// Summary tells about a training.
type Summary struct {
	Rows   int64   `json:"rows"`
	Weight float64 `json:"weight"`
	Method string  `json:"method"`
	// Loss is the mean weighted loss with the penalty, and GradientNorm the largest component
	// of its gradient.
	Loss         float64 `json:"loss"`
	GradientNorm float64 `json:"gradient_norm"`
	Iterations   int     `json:"iterations"`
	// Reads is how often the rows were read.
	Reads     float64           `json:"reads"`
	Converged bool              `json:"converged"`
	Reason    optim.Reason      `json:"reason"`
	Record    []optim.Iteration `json:"record"`
}

var _ model.Binder = (*Model)(nil)

// Kind returns "mlp".
func (m *Model) Kind() string { return Kind }

// Inputs are the columns that the model was trained on.
func (m *Model) Inputs() []model.Input { return append([]model.Input(nil), m.columns...) }

// prepare lays the network out, once.
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

// evaluate returns a pass with the outputs of a point, or nil if the point has not the features of the model. The caller puts it back.
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

// outputs returns those of the last layer.
func (m *Model) outputs(p *pass) []float64 { return p.values[len(p.values)-1] }

// load computes the sums of the first layer where features are shifted: those that a
// sparse point leaves out are not 0 then. Features of such a model are all read.
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

// loadEntries computes them entry by entry.
func (m *Model) loadEntries(x signature.Point, p *pass) {
	sums := p.values[0]
	clear(sums)
	for q, v := range x.Values {
		at := q
		if x.Indices != nil {
			at = int(x.Indices[q])
		}
		if m.Columns != nil {
			j := at
			at = sort.Search(len(m.Columns), func(i int) bool { return int(m.Columns[i]) >= j })
			if at == len(m.Columns) || int(m.Columns[at]) != j {
				continue
			}
		}
		if v != 0 {
			m.net.addInput(at, v*m.Scale[at], sums)
		}
	}
}

// decide returns what the outputs predict: a number, or a class, -1 if there is a NaN.
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

// write writes the probabilities of the classes.
func (m *Model) write(outputs, dst []float64) {
	if len(outputs) == 1 {
		dst[0], dst[1] = kernel.Sigmoid(-outputs[0]), kernel.Sigmoid(outputs[0])
		return
	}
	kernel.SoftmaxTo(dst, outputs)
}

func (m *Model) predict(x signature.Point) float64 {
	p := m.evaluate(x)
	if p == nil {
		if m.Task == Classification {
			return -1
		}
		return math.NaN()
	}
	v := m.decide(m.outputs(p))
	m.passes.Put(p)
	return v
}

func (m *Model) probabilities(x signature.Point, dst []float64) bool {
	if m.Task != Classification || len(dst) != len(m.Classes.Values) {
		return false
	}
	p := m.evaluate(x)
	if p == nil {
		return false
	}
	m.write(m.outputs(p), dst)
	m.passes.Put(p)
	return !math.IsNaN(dst[0])
}

// Predict returns the prediction for a row: the number of a regression, or the number,
// among Classes.Values, of the most probable class, the first of equals. A row that has not
// Dim features gives NaN, or the class -1. It allocates nothing, the first calls excepted.
func (m *Model) Predict(x []float64) float64 { return m.predict(signature.Dense(x)) }

// PredictSparse is Predict for a row of which only the entries that are not 0 are given,
// with their indices in ascending order. Indices that do not ascend or lie outside 0..Dim-1
// give NaN, or the class -1.
func (m *Model) PredictSparse(indices []int32, values []float64) float64 {
	return m.predict(signature.Sparse(indices, values))
}

// PredictProbability writes the probability of each class to dst, which has a value for
// each, and reports whether they can be told; see Predict.
func (m *Model) PredictProbability(x, dst []float64) bool {
	return m.probabilities(signature.Dense(x), dst)
}

// PredictProbabilitySparse is PredictProbability for a sparse row.
func (m *Model) PredictProbabilitySparse(indices []int32, values, dst []float64) bool {
	return m.probabilities(signature.Sparse(indices, values), dst)
}
