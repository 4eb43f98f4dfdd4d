package gmm

import (
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/batch"
)

// version is that of the payload: weights, means and covariances, as Model has them, and the
// names of outputs that have others than the usual ones.
const version = 1

type payload struct {
	Covariance     Covariance  `json:"covariance"`
	Dim            int         `json:"dim"`
	Weights        []float64   `json:"weights"`
	Means          [][]float64 `json:"means"`
	Covariances    [][]float64 `json:"covariances"`
	PredictionCol  string      `json:"prediction_column,omitempty"`
	ProbabilityCol string      `json:"probability_column,omitempty"`
}

type summary struct {
	LogLikelihood float64   `json:"log_likelihood"`
	Rows          int64     `json:"rows"`
	Weight        float64   `json:"weight"`
	Iterations    int       `json:"iterations"`
	Converged     bool      `json:"converged"`
	Record        []float64 `json:"record"`
}

// Encode returns the model's file, the same bytes for the same model. A model that does
// not hold together, or holds a NaN or an infinity, is an error.
func (m *Model) Encode() ([]byte, error) {
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return model.Encode(Kind, version, m.columns,
		summary{m.LogLikelihood, m.Rows, m.Weight, m.Iterations, m.Converged, m.Record},
		payload{m.Covariance, m.Dim, m.Weights, m.Means, m.Covariances, m.PredictionCol, m.ProbabilityCol})
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
		Covariance: p.Covariance, Dim: p.Dim, Weights: p.Weights, Means: p.Means, Covariances: p.Covariances,
		LogLikelihood: s.LogLikelihood, Rows: s.Rows, Weight: s.Weight, Iterations: s.Iterations, Converged: s.Converged,
		PredictionCol: p.PredictionCol, ProbabilityCol: p.ProbabilityCol, Record: s.Record, columns: f.Inputs,
	}
	if err := m.check(); err != nil {
		return nil, fmt.Errorf("model is damaged: %w", err)
	}
	return m, nil
}

// check tells what does not hold together.
func (m *Model) check() error {
	k := len(m.Weights)
	shapes := k
	if m.Covariance == Tied {
		shapes = 1
	}
	switch {
	case m.Covariance < Full || m.Covariance > Tied:
		return fmt.Errorf("%v is none of the package's constants", m.Covariance)
	case m.Dim < 1 || m.Dim > batch.MaxDim:
		return fmt.Errorf("dim is %d: want 1 to %d", m.Dim, batch.MaxDim)
	case k == 0:
		return errors.New("there are no components")
	case len(m.Means) != k || len(m.Covariances) != shapes:
		return fmt.Errorf("there are %d weights, %d means and %d %v covariances", k, len(m.Means), len(m.Covariances), m.Covariance)
	case len(m.columns) == 0:
		return errors.New("there are no inputs: models come from training")
	case componentName(m.PredictionCol) == probabilityName(m.ProbabilityCol):
		return fmt.Errorf("the columns of components and probabilities are both %q", componentName(m.PredictionCol))
	}
	var total float64
	for c, w := range m.Weights {
		if !(w >= 0 && w <= 1) {
			return fmt.Errorf("weight %d is %v", c, w)
		}
		total += w
	}
	if math.Abs(total-1) > 1e-6 {
		return fmt.Errorf("the weights sum to %v, not 1", total)
	}
	if err := m.columns.Check(m.Dim); err != nil {
		return err
	}
	return m.checkShapes()
}

// checkShapes checks means and covariances: their sizes, and that covariances have inverses.
func (m *Model) checkShapes() error {
	for _, part := range []struct {
		name string
		size int
		rows [][]float64
	}{{"mean", m.Dim, m.Means}, {"covariance", m.Covariance.size(m.Dim), m.Covariances}} {
		for c, row := range part.rows {
			if len(row) != part.size {
				return fmt.Errorf("%s %d has %d numbers, want %d", part.name, c, len(row), part.size)
			}
			for j, v := range row {
				if !finite(v) {
					return fmt.Errorf("number %d of %s %d is %v", j, part.name, c, v)
				}
			}
		}
	}
	mix := newMixture(m.Covariance, len(m.Weights), m.Dim)
	m.fill(mix)
	return mix.prepare()
}

// Save writes the model to a file: either the old one stays, or the whole new one is there.
func (m *Model) Save(path string) error { return model.Save(path, m) }

// Load reads a model that Save wrote.
func Load(path string) (*Model, error) { return model.Load(path, Decode) }
