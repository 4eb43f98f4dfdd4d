package gmm

import (
	"math"
	"sync"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Kind is the kind of this package's models.
const Kind = "gmm"

// Model is a trained mixture. Use it through a pointer, and do not change it after the first
// prediction. Any number of goroutines may use the same model.
type Model struct {
	// Covariance is the shape of the components.
	Covariance Covariance `json:"covariance"`
	// Dim is the number of dimensions of points.
	Dim int `json:"dim"`
	// Weights are the weights of the components; they sum to 1. A component of weight 0 has
	// lost all its rows in training.
	Weights []float64 `json:"weights"`
	// Means holds the mean of each component.
	Means [][]float64 `json:"means"`
	// Covariances has the covariance of each component; for Tied it has only one. For Full and
	// Tied it is the lower triangle of the matrix, row by row; for Diagonal a variance for each
	// feature; for Spherical one variance. The method Matrix returns the full matrix.
	Covariances [][]float64 `json:"covariances"`
	// LogLikelihood is the log-likelihood of the training rows: Σ weight·log density.
	LogLikelihood float64 `json:"-"`
	// Rows is the number of rows that the mixture was trained on, and Weight their total
	// weight.
	Rows   int64   `json:"-"`
	Weight float64 `json:"-"`
	// Iterations is the number of updates. Converged reports whether the last update raised the
	// mean log-likelihood by at most Tol.
	Iterations int  `json:"-"`
	Converged  bool `json:"-"`
	// PredictionCol and ProbabilityCol name the columns that Transform and Bind add; empty
	// means "component" and "probabilities".
	PredictionCol  string `json:"prediction_column,omitempty"`
	ProbabilityCol string `json:"probability_column,omitempty"`
	// Record has the mean log-likelihood of a row before each update, and after the last one.
	Record []float64 `json:"-"`

	columns signature.Inputs
	options PredictOptions // options given to Predict
	once    sync.Once
	mix     *mixture
	works   sync.Pool // *work
}

var _ model.Binder = (*Model)(nil)

// Kind returns "gmm".
func (m *Model) Kind() string { return Kind }

// Inputs returns the columns that the model was trained on.
func (m *Model) Inputs() []model.Input { return append([]model.Input(nil), m.columns...) }

// Matrix returns the covariance matrix of a component.
func (m *Model) Matrix(component int) [][]float64 {
	out := make([][]float64, m.Dim)
	for i := range out {
		out[i] = make([]float64, m.Dim)
	}
	cov := m.Covariances[min(component, len(m.Covariances)-1)]
	for i := range out {
		switch m.Covariance {
		case Diagonal, Spherical:
			out[i][i] = cov[min(i, len(cov)-1)]
		default:
			for j := range i + 1 {
				out[i][j] = cov[triangle(i)+j]
				out[j][i] = out[i][j]
			}
		}
	}
	return out
}

// Parameters returns the number of free parameters of the mixture.
func (m *Model) Parameters() int { return m.Covariance.parameters(len(m.Weights), m.Dim) }

// AIC returns Akaike's criterion on the training rows: 2·Parameters − 2·LogLikelihood. Of
// several mixtures for the same rows, the mixture with the least AIC is preferred.
func (m *Model) AIC() float64 { return float64(2*m.Parameters()) - float64(2*m.LogLikelihood) }

// BIC returns the Bayesian criterion: log(Weight)·Parameters − 2·LogLikelihood. See AIC.
func (m *Model) BIC() float64 {
	return float64(kernel.Log(m.Weight)*float64(m.Parameters())) - float64(2*m.LogLikelihood)
}

// Predict returns the most probable component of a point, and its probability. If several
// components are equally probable, it returns the lowest. It returns -1 and NaN if the point
// does not have Dim dimensions, or is so far away that no component has a finite log-density.
//
// Only the first calls allocate.
func (m *Model) Predict(x []float64) (component int, probability float64) {
	if len(x) != m.Dim {
		return -1, math.NaN()
	}
	w := m.take1()
	defer m.works.Put(w)
	if math.IsNaN(m.evaluate(x, w)) {
		return -1, math.NaN()
	}
	component = kernel.Argmax(w.log)
	return component, w.log[component]
}

// Probabilities writes the probability of each component for a point to out, which must have
// one value for each component. It returns the logarithm of the density at the point. If
// Predict returns -1 for the point, the probabilities and the result are NaN. Only the first
// calls allocate.
func (m *Model) Probabilities(x, out []float64) float64 {
	if len(x) != m.Dim {
		for c := range m.Weights {
			out[c] = math.NaN()
		}
		return math.NaN()
	}
	w := m.take1()
	defer m.works.Put(w)
	log := m.evaluate(x, w)
	copy(out, w.log)
	return log
}

// LogDensity returns the logarithm of the density at a point. See Probabilities for invalid
// points.
func (m *Model) LogDensity(x []float64) float64 {
	if len(x) != m.Dim {
		return math.NaN()
	}
	w := m.take1()
	defer m.works.Put(w)
	return m.evaluate(x, w)
}

// evaluate writes the probabilities of a point to w.log and returns its log-density.
func (m *Model) evaluate(x []float64, w *work) float64 {
	m.mix.densities(x, 1, w)
	return posterior(w.log)
}

// take1 returns scratch memory for one row.
func (m *Model) take1() *work {
	m.once.Do(m.prepare)
	if w, ok := m.works.Get().(*work); ok {
		return w
	}
	return newWork(1, m.mix.k, m.mix.d)
}

// prepare builds the mixture. This cannot fail for models that were trained or decoded. A model
// that was composed by hand predicts NaN if a covariance is not invertible.
func (m *Model) prepare() {
	m.mix = newMixture(m.Covariance, len(m.Weights), m.Dim)
	m.fill(m.mix)
	if err := m.mix.prepare(); err != nil {
		for c := range m.mix.constant {
			m.mix.constant[c] = math.NaN()
		}
	}
}

// fill copies the model to a mixture of its shape.
func (m *Model) fill(to *mixture) {
	copy(to.weights, m.Weights)
	for c, mean := range m.Means {
		copy(to.means[c*m.Dim:], mean)
	}
	size := m.Covariance.size(m.Dim)
	for c, cov := range m.Covariances {
		copy(to.covariances[c*size:], cov)
	}
}

// take makes the means and covariances of the model slices of the memory of the given mixture.
func (m *Model) take(from *mixture) {
	for c := range from.k {
		m.Means = append(m.Means, from.means[c*from.d:(c+1)*from.d])
	}
	for c := range from.shapes() {
		m.Covariances = append(m.Covariances, from.covariance(c))
	}
}

// Transform implements model.Model. It calls Predict with the model's column names.
func (m *Model) Transform(rows *engine.Dataset) *engine.Dataset {
	return Predict(rows, m.Dataset(model.BuilderOf("gmm.Model", rows)), PredictOptions{ComponentCol: m.PredictionCol, ProbabilityCol: m.ProbabilityCol})
}

// Dataset returns the model as a dataset of the job, like the dataset that Train returns. So a
// saved model can be passed to Predict.
func (m *Model) Dataset(b *engine.Builder) *engine.Dataset { return model.Dataset(b, m) }

// ModelOf returns the model that was collected under the given name. The collected dataset must
// be the dataset that Train returned.
func ModelOf(result *engine.Result, name string) (*Model, error) {
	return model.Collected(result, name, Decode)
}
