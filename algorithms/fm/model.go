package fm

import (
	"cmp"
	"fmt"
	"math"
	"sync"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Kind is the kind of this package's models.
const Kind = "fm"

// Classes has the classes of a classifier. Type is the type of the label column, and Values has
// the classes as texts, in order. A regression has no classes.
type Classes = signature.Classes

// Model is a trained machine. Use it through a pointer, and do not change it after the first
// prediction. Any number of goroutines may use the same model.
type Model struct {
	// Task is what the machine predicts. Classes has the classes of a classification, in
	// ascending order.
	Task    Task    `json:"-"`
	Classes Classes `json:"-"`
	// Dim is the number of features. Columns, unless nil, are the features that occurred in
	// training, in ascending order. Linear and Factors are for these features; other features
	// count as 0.
	Dim     int     `json:"dim"`
	Columns []int32 `json:"columns,omitempty"`
	// Intercept, Linear and Factors are the parameters. Linear has the weight of each feature,
	// and Factors has the factors of each feature.
	Intercept float64     `json:"intercept"`
	Linear    []float64   `json:"linear"`
	Factors   [][]float64 `json:"factors"`
	// PredictionCol and ProbabilityCol name the columns of predictions; empty means
	// "prediction" and "probability".
	PredictionCol  string `json:"prediction_column,omitempty"`
	ProbabilityCol string `json:"probability_column,omitempty"`
	// Summary describes the training.
	Summary Summary `json:"-"`

	columns signature.Inputs
	options model.PredictOptions // given to Predict
	once    sync.Once
	machine machine
	sums    sync.Pool // *[]float64 with two values for each factor
}

// Summary describes a training.
type Summary = optim.Summary

var _ model.Binder = (*Model)(nil)

// Kind returns "fm".
func (m *Model) Kind() string { return Kind }

// Inputs returns the columns that the model was trained on.
func (m *Model) Inputs() []model.Input { return append([]model.Input(nil), m.columns...) }

// prepare copies the parameters into one slice, on the first call only.
func (m *Model) prepare() {
	m.once.Do(func() {
		d := len(m.Linear)
		if d > 0 {
			m.machine.k = len(m.Factors[0])
		}
		m.machine.d = d
		m.machine.parameters = append(make([]float64, 0, 1+d+d*m.machine.k), m.Intercept)
		m.machine.parameters = append(m.machine.parameters, m.Linear...)
		for _, own := range m.Factors {
			m.machine.parameters = append(m.machine.parameters, own...)
		}
	})
}

// margin returns the margin of a point, or NaN if the features of the point do not fit the
// model.
func (m *Model) margin(x signature.Point) float64 {
	if !x.Fits(m.Dim) {
		return math.NaN()
	}
	m.prepare()
	sums, ok := m.sums.Get().(*[]float64)
	if !ok {
		room := make([]float64, 2*m.machine.k)
		sums = &room
	}
	defer m.sums.Put(sums)
	if m.Columns == nil {
		return m.machine.margin(x.Indices, x.Values, *sums)
	}
	return m.compactMargin(x, *sums)
}

// compactMargin does what machine.margin does, for a machine whose features are m.Columns.
func (m *Model) compactMargin(x signature.Point, s []float64) float64 {
	clear(s)
	margin := m.Intercept
	for q, v := range x.Values {
		if at := x.Place(q, m.Columns); v != 0 && at >= 0 {
			margin += m.machine.addEntry(at, v, s)
		}
	}
	return margin + m.machine.pairs(s)
}

// class returns the class that a margin predicts, or -1 for NaN.
func class(margin float64) int {
	switch {
	case math.IsNaN(margin):
		return -1
	case margin > 0:
		return 1
	}
	return 0
}

// Margin returns the margin of a row: the prediction of a regression, or the log odds of the
// second class. If the row does not have Dim features, the result is NaN. Only the first calls
// allocate.
func (m *Model) Margin(x []float64) float64 { return m.margin(signature.Dense(x)) }

// MarginSparse does what Margin does, for a sparse row. The row is given by its nonzero values
// and their indices in ascending order. If indices do not ascend or lie outside 0..Dim-1, the
// result is NaN.
func (m *Model) MarginSparse(indices []int32, values []float64) float64 {
	return m.margin(signature.Sparse(indices, values))
}

// Predict returns the prediction for a row. A regression returns the number. A classification
// returns the index in Classes.Values of the more probable class, and of the first class if
// both are equally probable. If Margin is NaN, Predict returns NaN, or the class -1.
func (m *Model) Predict(x []float64) float64 { return m.predicted(m.Margin(x)) }

// PredictSparse does what Predict does, for a sparse row; see MarginSparse.
func (m *Model) PredictSparse(indices []int32, values []float64) float64 {
	return m.predicted(m.MarginSparse(indices, values))
}

func (m *Model) predicted(margin float64) float64 {
	if m.Task == Classification {
		return float64(class(margin))
	}
	return margin
}

// PredictProbability writes the probability of both classes to dst, which must have two values.
// It returns false, and writes nothing, for a regression and for a row whose Margin is NaN.
func (m *Model) PredictProbability(x, dst []float64) bool { return m.probabilities(m.Margin(x), dst) }

// PredictProbabilitySparse does what PredictProbability does, for a sparse row; see
// MarginSparse.
func (m *Model) PredictProbabilitySparse(indices []int32, values, dst []float64) bool {
	return m.probabilities(m.MarginSparse(indices, values), dst)
}

func (m *Model) probabilities(margin float64, dst []float64) bool {
	if m.Task != Classification || len(dst) != 2 || math.IsNaN(margin) {
		return false
	}
	dst[0], dst[1] = kernel.Sigmoid(-margin), kernel.Sigmoid(margin)
	return true
}

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
	switch err := cmp.Or(m.Task.Check(m.Classes, false), err); {
	case err != nil:
		return err
	case len(m.Linear) != d || len(m.Factors) != d:
		return fmt.Errorf("there are %d weights and factors of %d features, want %d", len(m.Linear), len(m.Factors), d)
	case !kernel.Finite(m.Intercept):
		return fmt.Errorf("the intercept is %v", m.Intercept)
	}
	for j, w := range m.Linear {
		if !kernel.Finite(w) {
			return fmt.Errorf("weight %d is %v", j, w)
		}
		if len(m.Factors[j]) != len(m.Factors[0]) {
			return fmt.Errorf("feature %d has %d factors, feature 0 has %d", j, len(m.Factors[j]), len(m.Factors[0]))
		}
		if k := kernel.NonFinite(m.Factors[j]); k >= 0 {
			return fmt.Errorf("a factor of feature %d is %v", j, m.Factors[j][k])
		}
	}
	return nil
}
