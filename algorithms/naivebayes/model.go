package naivebayes

import (
	"errors"
	"fmt"
	"math"
	"sort"
	"sync"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Kind is that of the models of this package.
const Kind = "naivebayes"

// Classes are the classes of a classifier: their Type is that of the column of labels, their
// Values are texts in the order of the classes.
type Classes = signature.Classes

// Model is a trained classifier. It is used by pointer and not changed once it predicts;
// any number of goroutines may use one.
type Model struct {
	// Family is how features are distributed within a class.
	Family Family
	// Classes are the classes in ascending order, and the type of their column.
	Classes Classes
	// Priors are the probabilities of the classes before a row is seen.
	Priors []float64
	// Weights are the total weights of the classes' rows.
	Weights []float64
	// Dim is the number of features. Columns are, where they are not nil, the features that
	// occurred in training, in ascending order: the rows of matrices are over these alone.
	Dim     int
	Columns []int32
	// Means and Variances are those of each class and feature, for Gaussian.
	Means, Variances [][]float64
	// Counts are the weighted sums of each class and feature, of the rows that have it for
	// Bernoulli; without Smoothing, which is added to each.
	Counts    [][]float64
	Smoothing float64
	// Binarize is the value above which a feature is present, for Bernoulli.
	Binarize float64
	// PredictionCol and ProbabilityCol name the columns of predictions; empty means
	// "prediction" and "probability".
	PredictionCol, ProbabilityCol string
	// Rows is how many rows the model was trained on.
	Rows int64

	columns  signature.Inputs
	override signature.Override // of Predict
	once     sync.Once
	scores   []scorer
}

// scorer gives the logarithm of a class's prior times the likelihood of a row, up to a
// number that all classes share.
type scorer struct {
	bias    float64
	weights []float64 // of features, or of their presence
	absent  float64   // weight of a feature that is not among the model's columns
	// Gaussian: means and 1/variances; bias is for dense rows, zero that of a row of zeros.
	mean, inverse []float64
	zero          float64
}

var _ model.Binder = (*Model)(nil)

// Kind returns "naivebayes".
func (m *Model) Kind() string { return Kind }

// Inputs are the columns that the model was trained on.
func (m *Model) Inputs() []model.Input { return append([]model.Input(nil), m.columns...) }

// prepare computes the scorers, once.
func (m *Model) prepare() {
	m.once.Do(func() {
		var all []float64
		if m.Family == Complement {
			all = make([]float64, len(m.Counts[0]))
			for _, own := range m.Counts {
				kernel.AddTo(all, own)
			}
		}
		m.scores = make([]scorer, len(m.Priors))
		for c := range m.scores {
			prior := kernel.Log(m.Priors[c])
			switch m.Family {
			case Gaussian:
				m.scores[c] = gaussian(prior, m.Means[c], m.Variances[c])
			case Bernoulli:
				m.scores[c] = m.bernoulli(prior, c)
			case Multinomial:
				m.scores[c] = m.multinomial(prior, m.Counts[c], 1)
			default:
				others := make([]float64, len(all))
				for j, v := range all {
					others[j] = max(0, v-m.Counts[c][j])
				}
				if len(m.Priors) > 1 {
					prior = 0
				}
				m.scores[c] = m.multinomial(prior, others, -1)
			}
		}
	})
}

// log2Pi is log 2π.
const log2Pi = 1.8378770664093454835606594728112352797

func gaussian(prior float64, mean, variance []float64) scorer {
	s := scorer{bias: prior, mean: mean, inverse: make([]float64, len(mean))}
	var logs, squares float64
	for j, v := range variance {
		s.inverse[j] = 1 / v
		logs += log2Pi + kernel.Log(v)
		squares += float64(float64(mean[j]*mean[j]) * s.inverse[j])
	}
	s.bias -= float64(0.5 * logs)
	s.zero = s.bias - float64(0.5*squares)
	return s
}

// multinomial returns the scorer whose weights are sign times the logarithms of the shares
// of smoothed counts.
func (m *Model) multinomial(prior float64, counts []float64, sign float64) scorer {
	s := scorer{bias: prior, weights: make([]float64, len(counts))}
	total := float64(m.Smoothing * float64(m.Dim-len(counts)))
	for _, v := range counts {
		total += v + m.Smoothing
	}
	log := kernel.Log(total)
	for j, v := range counts {
		s.weights[j] = sign * (kernel.Log(v+m.Smoothing) - log)
	}
	s.absent = sign * (kernel.Log(m.Smoothing) - log)
	return s
}

func (m *Model) bernoulli(prior float64, c int) scorer {
	counts := m.Counts[c]
	s := scorer{bias: prior, weights: make([]float64, len(counts))}
	weight := m.Weights[c]
	total := kernel.Log(weight + float64(2*m.Smoothing))
	for j, v := range counts {
		// The smoothed weight of the rows without the feature; counts may exceed the weight
		// by the rounding of their sums.
		without := kernel.Log(max(0, weight-v) + m.Smoothing)
		s.weights[j] = kernel.Log(v+m.Smoothing) - without
		s.bias += without - total
	}
	without := kernel.Log(weight + m.Smoothing)
	s.absent = kernel.Log(m.Smoothing) - without
	s.bias += float64(float64(m.Dim-len(counts)) * (without - total))
	return s
}

// score returns the score of a class for a row.
func (m *Model) score(c int, x signature.Point) float64 {
	s := &m.scores[c]
	if m.Family == Gaussian {
		return m.gaussianScore(s, x)
	}
	score := s.bias
	if x.Indices == nil && m.Columns == nil && m.Family != Bernoulli {
		return score + kernel.Dot(x.Values, s.weights)
	}
	for q, v := range x.Values {
		if v == 0 && m.Family != Bernoulli {
			continue
		}
		j := q
		if x.Indices != nil {
			j = int(x.Indices[q])
		}
		w := s.absent
		if at := m.place(j); at >= 0 {
			w = s.weights[at]
		}
		if m.Family != Bernoulli {
			score += float64(v * w)
		} else if v > m.Binarize {
			score += w
		}
	}
	return score
}

// place returns where a feature stands among the model's columns, -1 if it does not.
func (m *Model) place(j int) int {
	if m.Columns == nil {
		return j
	}
	at := sort.Search(len(m.Columns), func(i int) bool { return int(m.Columns[i]) >= j })
	if at < len(m.Columns) && int(m.Columns[at]) == j {
		return at
	}
	return -1
}

// gaussianScore takes features that did not occur in training, which were 0 in all classes,
// as telling nothing. Sparse rows are taken by how they differ from a row of zeros, which
// costs the digits by which the score of zeros is the larger.
func (m *Model) gaussianScore(s *scorer, x signature.Point) float64 {
	var sum float64
	if x.Indices == nil && m.Columns == nil {
		for j, v := range x.Values {
			t := v - s.mean[j]
			sum += float64(float64(t*t) * s.inverse[j])
		}
		return s.bias - float64(0.5*sum)
	}
	for q, v := range x.Values {
		j := q
		if x.Indices != nil {
			j = int(x.Indices[q])
		}
		if at := m.place(j); at >= 0 && v != 0 {
			sum += float64(float64(v*(v-float64(2*s.mean[at]))) * s.inverse[at])
		}
	}
	return s.zero - float64(0.5*sum)
}

// predict returns the class of a point, -1 where that cannot be told.
func (m *Model) predict(x signature.Point) int {
	if !x.Fits(m.Dim) {
		return -1
	}
	m.prepare()
	best, top := -1, math.Inf(-1)
	for c := range m.scores {
		score := m.score(c, x)
		if math.IsNaN(score) {
			return -1
		}
		if score > top {
			best, top = c, score
		}
	}
	return best
}

// probabilities writes the probability of each class to dst and returns the most probable
// class, -1 where that cannot be told.
func (m *Model) probabilities(x signature.Point, dst []float64) int {
	if !x.Fits(m.Dim) || len(dst) != len(m.Priors) {
		return -1
	}
	m.prepare()
	best := 0
	for c := range dst {
		dst[c] = m.score(c, x)
		if dst[c] > dst[best] {
			best = c
		}
	}
	if _, sum := kernel.SoftmaxTo(dst, dst); math.IsNaN(sum) {
		return -1
	}
	return best
}

// Predict returns the number, among Classes.Values, of the most probable class of a row,
// the first of equals. A row that has not Dim features, or holds a NaN, gives -1. It
// allocates nothing, the first call excepted.
func (m *Model) Predict(x []float64) int { return m.predict(signature.Dense(x)) }

// PredictSparse is Predict for a row of which only the entries that are not 0 are given,
// with their indices in ascending order. Indices that do not ascend or lie outside 0..Dim-1
// give -1.
func (m *Model) PredictSparse(indices []int32, values []float64) int {
	return m.predict(signature.Sparse(indices, values))
}

// PredictProbability writes the probability of each class to dst, which has a value for
// each, and reports whether they can be told; see Predict.
func (m *Model) PredictProbability(x, dst []float64) bool {
	return m.probabilities(signature.Dense(x), dst) >= 0
}

// PredictProbabilitySparse is PredictProbability for a sparse row.
func (m *Model) PredictProbabilitySparse(indices []int32, values, dst []float64) bool {
	return m.probabilities(signature.Sparse(indices, values), dst) >= 0
}

// version is that of the payload.
const version = 1

type payload struct {
	Family         Family      `json:"family"`
	Classes                    // label_type, classes
	Priors         []float64   `json:"priors"`
	Weights        []float64   `json:"weights"`
	Dim            int         `json:"dim"`
	Columns        []int32     `json:"columns,omitempty"`
	Means          [][]float64 `json:"means,omitempty"`
	Variances      [][]float64 `json:"variances,omitempty"`
	Counts         [][]float64 `json:"counts,omitempty"`
	Smoothing      float64     `json:"smoothing"`
	Binarize       float64     `json:"binarize"`
	PredictionCol  string      `json:"prediction_column,omitempty"`
	ProbabilityCol string      `json:"probability_column,omitempty"`
}

type summary struct {
	Rows int64 `json:"rows"`
}

// Encode returns the model's file, the same bytes for the same model. A model that does
// not hold together is an error.
func (m *Model) Encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return model.Encode(Kind, version, m.columns, summary{m.Rows}, payload{
		m.Family, m.Classes, m.Priors, m.Weights, m.Dim, m.Columns, m.Means, m.Variances, m.Counts,
		m.Smoothing, m.Binarize, m.PredictionCol, m.ProbabilityCol,
	})
}

// Decode reads what Encode wrote.
func Decode(file []byte) (*Model, error) {
	var s summary
	var p payload
	f, err := model.DecodeParts(file, Kind, version, &s, &p)
	if err != nil {
		return nil, err
	}
	m := &Model{
		Family: p.Family, Classes: p.Classes, Priors: p.Priors, Weights: p.Weights, Dim: p.Dim, Columns: p.Columns,
		Means: p.Means, Variances: p.Variances, Counts: p.Counts, Smoothing: p.Smoothing, Binarize: p.Binarize,
		PredictionCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol, Rows: s.Rows, columns: f.Inputs,
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("model is damaged: %w", err)
	}
	return m, nil
}

// check tells what does not hold together.
func (m *Model) check() error {
	k := len(m.Classes.Values)
	switch {
	case m.Family < Gaussian || m.Family > Bernoulli:
		return fmt.Errorf("%v is none of the package's constants", m.Family)
	case k == 0:
		return errors.New("there are no classes")
	case len(m.Priors) != k || len(m.Weights) != k:
		return fmt.Errorf("there are %d priors and %d weights for %d classes", len(m.Priors), len(m.Weights), k)
	case m.Dim < 1 || m.Dim > batch.MaxDim:
		return fmt.Errorf("dim is %d: want 1 to %d", m.Dim, batch.MaxDim)
	case m.Columns != nil && !signature.Ascending(m.Columns, m.Dim):
		return fmt.Errorf("the columns do not ascend below dim %d", m.Dim)
	case m.Family != Gaussian && !(m.Smoothing > 0 && finite(m.Smoothing)):
		return fmt.Errorf("smoothing is %v", m.Smoothing)
	case !finite(m.Binarize):
		return fmt.Errorf("binarize is %v", m.Binarize)
	}
	if _, err := m.Classes.Cells(); err != nil {
		return err
	}
	for c, p := range m.Priors {
		if !(p > 0 && p <= 1) || !(m.Weights[c] > 0 && finite(m.Weights[c])) {
			return fmt.Errorf("class %q has prior %v and weight %v", m.Classes.Values[c], p, m.Weights[c])
		}
	}
	if err := m.columns.Check(m.Dim); err != nil {
		return err
	}
	if m.Family == Gaussian {
		return errors.Join(m.checkMatrix("means", m.Means, math.Inf(-1)), m.checkMatrix("variances", m.Variances, math.SmallestNonzeroFloat64))
	}
	return m.checkMatrix("counts", m.Counts, 0)
}

// checkMatrix checks the size of a matrix, and that its values are numbers of at least least.
func (m *Model) checkMatrix(name string, rows [][]float64, least float64) error {
	d := m.Dim
	if m.Columns != nil {
		d = len(m.Columns)
	}
	if len(rows) != len(m.Priors) {
		return fmt.Errorf("there are %s of %d classes, want %d", name, len(rows), len(m.Priors))
	}
	for c, row := range rows {
		if len(row) != d {
			return fmt.Errorf("there are %d %s of class %q, want %d", len(row), name, m.Classes.Values[c], d)
		}
		for j, v := range row {
			if !finite(v) || v < least {
				return fmt.Errorf("%s of class %q: number %d is %v", name, m.Classes.Values[c], j, v)
			}
		}
	}
	return nil
}
