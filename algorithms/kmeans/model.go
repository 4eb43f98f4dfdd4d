package kmeans

import (
	"fmt"
	"math"
	"sync"

	"github.com/superstep-ml/superstep/algorithms/internal/signature"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Model is a set of trained centres. It is used by pointer, and must not be changed after its
// first prediction. Any number of goroutines may use it.
type Model struct {
	// Centers has the centre of each cluster. The number of a cluster is its index.
	Centers [][]float64
	// Sizes has the total weight of the rows in each cluster, which is the number of rows if
	// there is no column of weights.
	Sizes []float64
	// Inertia is the sum, over the rows, of the weight times the squared distance to the
	// nearest centre. For Cosine the distance is not squared.
	Inertia float64
	// Iterations is the number of updates of the centres. After TrainMiniBatch it is the number
	// of batches, after TrainBisecting the number of updates of all bisections.
	Iterations int
	// Converged is true if the last update moved no centre farther than Tol.
	Converged bool
	// Distance is the measure of distance with which the model was trained.
	Distance Distance
	// Dim is the number of components of points and centres.
	Dim int
	// VectorCol names the column that the model was trained on. VectorType is the type of the
	// column as schemas print it; empty means vector[Dim].
	VectorCol, VectorType string
	// PredictionCol and DistanceCol name the columns that Transform and Bind add; empty means
	// "cluster" and "distance".
	PredictionCol, DistanceCol string
	// History has an entry for every superstep over all rows: one for each update of the
	// centres and one for the final centres. After TrainMiniBatch and TrainBisecting it has
	// only the entry for the final centres.
	History []Superstep

	once   sync.Once
	dense  *kernel.Centers
	sparse *kernel.SparseCenters
}

// Superstep has the values that were reported in one superstep of training.
type Superstep struct {
	// Inertia is the inertia of the centres at the beginning of the superstep.
	Inertia float64 `json:"inertia"`
	// Movement is the largest distance that a centre moved. It is 0 in the last superstep,
	// which does not move centres.
	Movement float64 `json:"movement"`
}

// prepare makes the searchable form of the centres. Only the first call does this.
func (m *Model) prepare() {
	m.once.Do(func() {
		flat := make([]float64, 0, len(m.Centers)*m.Dim)
		for _, c := range m.Centers {
			flat = append(flat, c...)
		}
		m.dense = kernel.NewCenters(len(m.Centers), m.Dim)
		m.dense.Set(flat)
		m.sparse = kernel.NewSparseCenters(len(m.Centers), m.Dim)
		m.sparse.Set(flat)
	})
}

// Predict returns the cluster of a point and the distance to its centre. Of several centres at
// the same distance, Predict chooses the centre with the lowest number. It returns -1 and NaN
// if x does not have Dim components, or if the distances from x to all centres are NaN. With
// Cosine a point of zeros has the distance 1 to every centre.
//
// Only the first call allocates memory.
func (m *Model) Predict(x []float64) (cluster int, distance float64) {
	m.prepare()
	if len(x) != m.Dim {
		return -1, math.NaN()
	}
	if m.Distance == Cosine {
		return kernel.NearestCosine(x, m.dense)
	}
	return kernel.Nearest(x, m.dense)
}

// PredictSparse does what Predict does for a sparse point with the given non-zero components.
// The indices must be in increasing order and within 0..Dim-1; otherwise PredictSparse returns
// -1 and NaN.
func (m *Model) PredictSparse(indices []int32, values []float64) (cluster int, distance float64) {
	m.prepare()
	if !signature.Sparse(indices, values).Fits(m.Dim) {
		return -1, math.NaN()
	}
	if m.Distance == Cosine {
		return kernel.NearestSparseCosine(indices, values, m.sparse)
	}
	return kernel.NearestSparse(indices, values, m.sparse)
}

// Kind returns "kmeans".
func (m *Model) Kind() string { return modelKind }

// Inputs returns the vector column.
func (m *Model) Inputs() []model.Input {
	kind := m.VectorType
	if kind == "" {
		kind = fmt.Sprintf("vector[%d]", m.Dim)
	}
	return []model.Input{{Column: m.VectorCol, Type: kind}}
}

// Transform adds cluster and distance to points, as the function Predict does. The names of the
// two columns are PredictionCol and DistanceCol.
func (m *Model) Transform(points *engine.Dataset) *engine.Dataset {
	return Predict(points, m.Dataset(model.BuilderOf("kmeans.Model.Transform", points)), PredictOptions{VectorCol: m.VectorCol, ClusterCol: m.PredictionCol, DistanceCol: m.DistanceCol})
}

// Bind returns a step that adds the cells of cluster and distance to single rows. If the vector
// is null or has a component that is not finite, both cells are null.
func (m *Model) Bind(l *model.Layout) (model.Step, error) {
	at, err := l.Find(m.VectorCol)
	if err != nil {
		return nil, err
	}
	cluster, distance := l.Add(clusterName(m.PredictionCol)), l.Add(distanceName(m.DistanceCol))
	m.prepare()
	return func(row []model.Cell) error {
		var a int
		var v float64
		switch x := &row[at]; x.Kind {
		case model.DenseCell:
			if len(x.Values) != m.Dim {
				return fmt.Errorf("column %q has %d components, the model was trained on %d", m.VectorCol, len(x.Values), m.Dim)
			}
			a, v = m.Predict(x.Values)
		case model.SparseCell:
			if err := x.CheckSparse(m.Dim); err != nil {
				return fmt.Errorf("column %q: %w", m.VectorCol, err)
			}
			a, v = m.PredictSparse(x.Indices, x.Values)
		case model.NullCell:
			a = -1
		default:
			return fmt.Errorf("column %q is %v, not a vector", m.VectorCol, x.Kind)
		}
		if a < 0 || kernel.NonFinite(row[at].Values) >= 0 {
			row[cluster].SetNull()
			row[distance].SetNull()
			return nil
		}
		row[cluster].SetInt(int64(a))
		row[distance].SetFloat(v)
		return nil
	}, nil
}

// Dataset returns the model as a dataset of the job, like the dataset that Train returns. So a
// saved model can be passed to Predict.
func (m *Model) Dataset(b *engine.Builder) *engine.Dataset { return model.Dataset(b, m) }

// ModelOf returns the model that was collected under the given name. The collected dataset must
// be the dataset that Train returned.
func ModelOf(result *engine.Result, name string) (*Model, error) {
	return model.Collected(result, name, Decode)
}
