package naivebayes

import (
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Kind is the kind of this package's models.
const Kind = "naivebayes"

// Classes has the classes of a classifier. Type is the type of the label column, and Values has
// the classes as texts, in order.
type Classes = signature.Classes

// Model is a trained classifier. Use it through a pointer, and do not change it after the first
// prediction. Any number of goroutines may use the same model.
type Model struct {
	// Family is the distribution of features within a class.
	Family Family `json:"-"`
	// Classes has the classes in ascending order, and the type of the label column.
	Classes Classes `json:"-"`
	// Priors are the prior probabilities of the classes.
	Priors []float64 `json:"priors"`
	// Weights are the total weights of the classes' rows.
	Weights []float64 `json:"weights"`
	// Dim is the number of features. Columns, unless nil, are the features that occurred in
	// training, in ascending order. The matrices below have values only for these features.
	Dim     int     `json:"dim"`
	Columns []int32 `json:"columns,omitempty"`
	// Means and Variances, for Gaussian, have a row for each class and a value for each
	// feature.
	Means     [][]float64 `json:"means,omitempty"`
	Variances [][]float64 `json:"variances,omitempty"`
	// Counts have a row for each class and a value for each feature: the weighted sum of the
	// feature, or for Bernoulli the weight of the rows in which it is present. Smoothing is not
	// included.
	Counts    [][]float64 `json:"counts,omitempty"`
	Smoothing float64     `json:"smoothing"`
	// Binarize is the value above which Bernoulli treats a feature as present.
	Binarize float64 `json:"binarize"`
	// PredictionCol and ProbabilityCol name the columns of predictions; empty means
	// "prediction" and "probability".
	PredictionCol  string `json:"prediction_column,omitempty"`
	ProbabilityCol string `json:"probability_column,omitempty"`
	// Rows is the number of rows that the model was trained on.
	Rows int64 `json:"-"`

	columns signature.Inputs
	options model.PredictOptions // given to Predict
	once    sync.Once
	scores  []scorer
}

// scorer computes the score of a class for a row. The score is the logarithm of the product of
// the prior and the row's likelihood, up to an addend that is the same for all classes.
type scorer struct {
	bias    float64
	weights []float64 // weights of features, or of their presence
	absent  float64   // weight of a feature that is not in Model.Columns
	// For Gaussian, mean has the means and inverse has 1/variances. bias is the constant addend
	// of the score, and is used for dense rows. zero is the score of a row of zeros, and is
	// used for sparse rows.
	mean, inverse []float64
	zero          float64
}

var _ model.Binder = (*Model)(nil)

// Kind returns "naivebayes".
func (m *Model) Kind() string { return Kind }

// Inputs returns the columns that the model was trained on.
func (m *Model) Inputs() []model.Input { return append([]model.Input(nil), m.columns...) }

// prepare computes the scorers in the first call.
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

// multinomial returns the scorer of a class. The weight of a feature is sign times log(c/s),
// where c is the smoothed count of the feature and s is the sum of the smoothed counts.
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
		// without is the logarithm of the smoothed weight of the rows without the feature. By
		// rounding errors, v may be greater than weight.
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
		w := s.absent
		if at := x.Place(q, m.Columns); at >= 0 {
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

// gaussianScore does what score does, for Gaussian. Features that did not occur in training are
// ignored, as they were 0 in all classes. The score of a sparse row is computed as the score of
// a row of zeros plus differences. It loses digits if the score of the row of zeros is much
// larger.
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
		if at := x.Place(q, m.Columns); at >= 0 && v != 0 {
			sum += float64(float64(v*(v-float64(2*s.mean[at]))) * s.inverse[at])
		}
	}
	return s.zero - float64(0.5*sum)
}

// predict returns the class of a point, or -1 if there is no class.
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

// probabilities writes the probability of each class to dst. It returns the most probable
// class, or -1 if there is no class.
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
	if _, sum := kernel.Softmax(dst); math.IsNaN(sum) {
		return -1
	}
	return best
}

// Predict returns the index in Classes.Values of the most probable class of a row; of several
// classes with the same probability, it returns the index of the first. If the row does not
// have Dim features or contains a NaN, the result is -1. Only the first call allocates memory.
func (m *Model) Predict(x []float64) int { return m.predict(signature.Dense(x)) }

// PredictSparse does what Predict does, for a sparse row. The row is given by its nonzero
// values and their indices in ascending order. If indices do not ascend or lie outside
// 0..Dim-1, the result is -1.
func (m *Model) PredictSparse(indices []int32, values []float64) int {
	return m.predict(signature.Sparse(indices, values))
}

// PredictProbability writes the probability of each class to dst, which must have one element
// for each class. It returns false if Predict returns -1.
func (m *Model) PredictProbability(x, dst []float64) bool {
	return m.probabilities(signature.Dense(x), dst) >= 0
}

// PredictProbabilitySparse does what PredictProbability does, for a sparse row.
func (m *Model) PredictProbabilitySparse(indices []int32, values, dst []float64) bool {
	return m.probabilities(signature.Sparse(indices, values), dst) >= 0
}

// version is the version of the payload.
const version = 1

type payload struct {
	Family Family `json:"family"`
	Classes
	*Model
}

type summary struct {
	Rows int64 `json:"rows"`
}

// Encode returns the content of the model's file. The same model gives the same bytes. It
// returns an error if the model is not valid.
func (m *Model) Encode() ([]byte, error) {
	return model.EncodeWhole(m.check(), Kind, version, m.columns, summary{m.Rows}, payload{m.Family, m.Classes, m})
}

// Decode decodes what Encode returned. It returns an error that names the cause if the file is
// truncated, altered, of another kind or of a newer version.
func Decode(file []byte) (*Model, error) {
	var s summary
	m := &Model{}
	p := payload{Model: m}
	f, err := model.DecodeParts(file, Kind, version, &s, &p)
	if err != nil {
		return nil, err
	}
	m.Family, m.Classes, m.Rows, m.columns = p.Family, p.Classes, s.Rows, f.Inputs
	return model.Whole(m, m.check())
}

// check returns an error if the model is not valid.
func (m *Model) check() error {
	k := len(m.Classes.Values)
	over, err := m.columns.CheckDim(m.Dim, m.Columns)
	if err != nil {
		return err
	}
	switch {
	case m.Family < Gaussian || m.Family > Bernoulli:
		return fmt.Errorf("%v is not one of the package's constants", m.Family)
	case k == 0:
		return errors.New("there are no classes")
	case len(m.Priors) != k || len(m.Weights) != k:
		return fmt.Errorf("there are %d priors and %d weights for %d classes", len(m.Priors), len(m.Weights), k)
	case m.Family != Gaussian && !(m.Smoothing > 0 && kernel.Finite(m.Smoothing)):
		return fmt.Errorf("smoothing is %v", m.Smoothing)
	case !kernel.Finite(m.Binarize):
		return fmt.Errorf("binarize is %v", m.Binarize)
	}
	if _, err := m.Classes.Cells(); err != nil {
		return err
	}
	for c, p := range m.Priors {
		if !(p > 0 && p <= 1) || !(m.Weights[c] > 0 && kernel.Finite(m.Weights[c])) {
			return fmt.Errorf("class %q has prior %v and weight %v", m.Classes.Values[c], p, m.Weights[c])
		}
	}
	if m.Family == Gaussian {
		return errors.Join(m.checkMatrix("means", m.Means, over, math.Inf(-1)), m.checkMatrix("variances", m.Variances, over, math.SmallestNonzeroFloat64))
	}
	return m.checkMatrix("counts", m.Counts, over, 0)
}

// checkMatrix returns an error unless a matrix has a row of d values for each class, and each
// value is finite and not below the parameter least.
func (m *Model) checkMatrix(name string, rows [][]float64, d int, least float64) error {
	if len(rows) != len(m.Priors) {
		return fmt.Errorf("there are %s of %d classes, want %d", name, len(rows), len(m.Priors))
	}
	for c, row := range rows {
		if len(row) != d {
			return fmt.Errorf("there are %d %s of class %q, want %d", len(row), name, m.Classes.Values[c], d)
		}
		for j, v := range row {
			if !kernel.Finite(v) || v < least {
				return fmt.Errorf("%s of class %q: number %d is %v", name, m.Classes.Values[c], j, v)
			}
		}
	}
	return nil
}
