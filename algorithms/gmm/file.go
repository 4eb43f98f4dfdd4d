package gmm

import (
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// version is the version of the payload. The payload is the Model without the fields of the
// summary.
const version = 1

type summary struct {
	LogLikelihood float64   `json:"log_likelihood"`
	Rows          int64     `json:"rows"`
	Weight        float64   `json:"weight"`
	Iterations    int       `json:"iterations"`
	Converged     bool      `json:"converged"`
	Record        []float64 `json:"record"`
}

// Encode returns the content of the model's file. The same model gives the same bytes. It
// returns an error if the model is not valid, or contains a NaN or an infinity.
func (m *Model) Encode() ([]byte, error) {
	return model.EncodeWhole(m.check(), Kind, version, m.columns,
		summary{m.LogLikelihood, m.Rows, m.Weight, m.Iterations, m.Converged, m.Record}, m)
}

// Decode decodes what Encode returned. It returns an error that names the cause if the file is
// truncated, altered, of another kind or of a newer version.
func Decode(file []byte) (*Model, error) {
	var s summary
	m := &Model{}
	f, err := model.DecodeParts(file, Kind, version, &s, m)
	if err != nil {
		return nil, err
	}
	m.LogLikelihood, m.Rows, m.Weight, m.Iterations, m.Converged, m.Record = s.LogLikelihood, s.Rows, s.Weight, s.Iterations, s.Converged, s.Record
	m.columns = f.Inputs
	return model.Whole(m, m.check())
}

// check returns an error if the model is not valid.
func (m *Model) check() error {
	k := len(m.Weights)
	shapes := k
	if m.Covariance == Tied {
		shapes = 1
	}
	switch {
	case m.Covariance < Full || m.Covariance > Tied:
		return fmt.Errorf("%v is not one of the package's constants", m.Covariance)
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

// checkShapes checks the sizes of means and covariances, and that covariances are invertible.
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
			if j := kernel.NonFinite(row); j >= 0 {
				return fmt.Errorf("number %d of %s %d is %v", j, part.name, c, row[j])
			}
		}
	}
	mix := newMixture(m.Covariance, len(m.Weights), m.Dim)
	m.fill(mix)
	return mix.prepare()
}

// Save writes the model to the file path. An existing file is replaced atomically: after a
// failure it still has the old contents.
func (m *Model) Save(path string) error { return model.Save(path, m) }

// Load reads a model that Save wrote.
func Load(path string) (*Model, error) { return model.Load(path, Decode) }
