package kmeans

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// PredictOptions has options for the columns that Predict reads and writes.
type PredictOptions struct {
	// VectorCol names the column of the points; empty means the dataset's only
	// vector column.
	VectorCol string
	// ClusterCol names the new int64 column of cluster numbers; empty means "cluster".
	ClusterCol string
	// DistanceCol names the new float64 column of distances to the cluster's centre;
	// empty means "distance".
	DistanceCol string
	// NonFinite is the policy for rows whose vector contains a NaN or an infinity. Refuse ends
	// the run with an error. With Skip, cluster and distance of such a row are null. For a null
	// vector, they are null with both policies.
	NonFinite NonFinite
}

// clusterName and distanceName return the name of an added column. It is named, or the default
// name if named is empty.
func clusterName(named string) string  { return cmp.Or(named, "cluster") }
func distanceName(named string) string { return cmp.Or(named, "distance") }

// Predict adds two columns to points: the cluster of each row and the distance to the cluster's
// centre. Both equal the results of Model.Predict. trained is a dataset of one row with the
// model, which Train or Model.Dataset returned. Rows stay in their shards and in their order.
func Predict(points, trained *engine.Dataset, o PredictOptions) *engine.Dataset {
	const op = "kmeans.Predict"
	b := model.BuilderOf(op, points)
	if points.Poisoned() {
		return points
	}
	p, err := newPredictor(arrowrows.Arrow(points.Schema()), o)
	if err != nil {
		return model.Refuse(b, op, err)
	}
	return model.Apply(op, points, trained, model.Application{
		Op: "KMeansPredict", Outputs: p.outputs(o),
		Attrs: []engine.Attr{{Key: "vector", Value: p.column.Name}, {Key: "non-finite", Value: o.NonFinite.String()}},
		Open: func(file []byte, _ engine.Schema) (model.Compute, error) {
			one := p
			return one.compute, one.open(file)
		},
	})
}

// predictor computes the columns of Predict for batches, on one goroutine.
type predictor struct {
	column    arrow.Field // column of the points
	vector    int         // index of this column
	nonFinite NonFinite

	model  *Model
	search *kernel.Assigner[float64] // for Euclidean distance
	first  int                       // number, within the shard, of the first row of the batch
}

func newPredictor(schema *arrow.Schema, o PredictOptions) (predictor, error) {
	p := predictor{nonFinite: o.NonFinite}
	var vectors []string
	for i, f := range schema.Fields() {
		if batch.IsVector(f.Type) {
			vectors, p.vector = append(vectors, fmt.Sprintf("%q", f.Name)), i
		}
	}
	switch {
	case strings.HasSuffix(o.NonFinite.String(), ")"):
		return p, fmt.Errorf("%v is not one of the package's constants", o.NonFinite)
	case o.VectorCol != "":
	case len(vectors) == 0:
		return p, fmt.Errorf("the points have no vector column: operators.Vectorize makes one of number columns")
	case len(vectors) > 1:
		return p, fmt.Errorf("the points have several vector columns, %s: set VectorCol to one of them", strings.Join(vectors, ", "))
	}
	if o.VectorCol != "" {
		c, err := vectorOf(schema, o.VectorCol)
		if err != nil {
			return p, err
		}
		p.vector = c.At
	}
	cluster, distance := clusterName(o.ClusterCol), distanceName(o.DistanceCol)
	for _, name := range []string{cluster, distance} {
		if schema.HasField(name) {
			return p, fmt.Errorf("column %q exists already: set ClusterCol or DistanceCol to another name", name)
		}
	}
	if cluster == distance {
		return p, fmt.Errorf("ClusterCol and DistanceCol are both %q", cluster)
	}
	p.column = schema.Field(p.vector)
	return p, nil
}

// outputs returns the columns that are added.
func (p *predictor) outputs(o PredictOptions) []engine.Column {
	nullable := o.NonFinite == Skip || p.column.Nullable
	return arrowrows.Columns([]arrow.Field{
		{Name: clusterName(o.ClusterCol), Type: arrow.PrimitiveTypes.Int64, Nullable: nullable},
		{Name: distanceName(o.DistanceCol), Type: arrow.PrimitiveTypes.Float64, Nullable: nullable},
	})
}

// open decodes the model.
func (p *predictor) open(file []byte) (err error) {
	if p.model, err = Decode(file); err != nil {
		return err
	}
	p.search = kernel.NewAssigner[float64](len(p.model.Centers), p.model.Dim)
	p.search.Set(slices.Concat(p.model.Centers...))
	return nil
}

// compute returns the added columns of a batch. It has the signature of model.Compute.
func (p *predictor) compute(c *engine.Context, first int, in engine.Batch) ([]columnar.Values, error) {
	rec := arrowrows.Record(in)
	n := int(rec.NumRows())
	p.first = first
	vectors := rows.WithComponents(c.Allocator, rec.Column(p.vector), Double.arrowType())
	defer vectors.Release()
	near, dist, valid := make([]int32, n), make([]float64, n), make([]bool, n)
	if err := p.assign(vectors, near, dist, valid); err != nil {
		return nil, err
	}
	clusters := array.NewInt64Builder(c.Allocator)
	defer clusters.Release()
	distances := array.NewFloat64Builder(c.Allocator)
	defer distances.Release()
	clusters.Reserve(n)
	distances.Reserve(n)
	for i, ok := range valid {
		if !ok {
			clusters.UnsafeAppendBoolToBitmap(false)
			distances.UnsafeAppendBoolToBitmap(false)
			continue
		}
		clusters.UnsafeAppend(int64(near[i]))
		distances.UnsafeAppend(dist[i])
	}
	return arrowrows.Values([]arrow.Array{clusters.NewArray(), distances.NewArray()}), nil
}

// assign writes the cluster of each row of a batch to near and the distance to dist. It sets
// valid for the rows that have a cluster.
func (p *predictor) assign(vectors arrow.Array, near []int32, dist []float64, valid []bool) error {
	p.model.prepare()
	// If no vector is null and all have Dim components, the kernels process the whole batch.
	if data, dim, ok := batch.DenseView(vectors); ok && dim == p.model.Dim {
		if p.model.Distance == Cosine {
			kernel.AssignCosine(data, len(near), p.model.dense, near, dist)
		} else {
			p.search.Assign(data, len(near), near, dist)
		}
		for i := range valid {
			valid[i] = true
		}
	} else if err := p.assignRows(vectors, near, dist, valid); err != nil {
		return err
	}
	return p.checkFinite(vectors, valid)
}

// assignRows does what assign does, row by row.
func (p *predictor) assignRows(column arrow.Array, near []int32, dist []float64, valid []bool) error {
	vectors, sparse := batch.VectorsOf(column), rows.LayoutOf(column.DataType()) == rows.SparseRows
	var cell model.Cell
	for i := range near {
		if vectors.Null(i) {
			continue
		}
		valid[i] = true
		cluster, size := 0, p.model.Dim
		if sparse {
			indices, values := vectors.Sparse(i)
			cell.SetSparse(0, indices, values)
			if err := cell.CheckSparse(-1); err != nil {
				return &engine.RowError{Row: int64(p.first + i), Err: fmt.Errorf("column %q: %w", p.column.Name, err)}
			}
			if n := len(cell.Indices); n > 0 {
				size = max(size, int(cell.Indices[n-1])+1)
			}
			cluster, dist[i] = p.model.PredictSparse(cell.Indices, cell.Values)
		} else {
			row := vectors.Dense(i)
			size = len(row)
			cluster, dist[i] = p.model.Predict(row)
		}
		if size != p.model.Dim {
			return &engine.RowError{Row: int64(p.first + i), Err: fmt.Errorf("column %q has %d components, the model was trained on %d", p.column.Name, size, p.model.Dim)}
		}
		near[i] = int32(cluster)
	}
	return nil
}

// checkFinite returns an error for rows that contain a NaN or an infinity. With Skip it instead
// marks these rows as rows without a cluster.
func (p *predictor) checkFinite(vectors arrow.Array, valid []bool) error {
	for at := 0; at < len(valid); {
		row, component, bad := batch.FirstNonFinite(vectors, at)
		if !bad {
			return nil
		}
		if p.nonFinite == Refuse {
			return &engine.RowError{
				Row:  int64(p.first + row),
				Err:  fmt.Errorf("column %q: component %d is %v", p.column.Name, component, batch.VectorsOf(vectors).Component(row, component)),
				Cure: engine.LeaveOut, Advice: "set NonFinite to Skip to give such rows no cluster",
			}
		}
		valid[row] = false
		at = row + 1
	}
	return nil
}
