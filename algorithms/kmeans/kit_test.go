package kmeans_test

import (
	"context"
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/shared/sharding"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// data is a matrix of points, with or without weights.
type data struct {
	n, d    int
	x       []float64 // row-major
	w       []float64 // weights; nil means that there is no column of weights
	sparse  bool      // whether the points are given as sparse[d]
	unsized bool      // whether the type is sparse or vector, without the dimension
}

func rowsOf(rows ...[]float64) data {
	m := data{n: len(rows)}
	for _, r := range rows {
		m.d = len(r)
		m.x = append(m.x, r...)
	}
	return m
}

func (m data) row(i int) []float64 { return m.x[i*m.d : (i+1)*m.d] }

func (m data) weight(i int) float64 {
	if m.w == nil {
		return 1
	}
	return m.w[i]
}

// dataset adds the points to a job, with the columns "id", "features" and "weight".
func (m data) dataset(b *engine.Builder) *engine.Dataset {
	var kind arrow.DataType
	var err error
	switch {
	case m.sparse && m.unsized:
		kind, err = batch.SparseType(0)
	case m.sparse:
		kind, err = batch.SparseType(m.d)
	case m.unsized:
		kind = batch.VariableVectorType()
	default:
		kind, err = batch.VectorType(max(m.d, 1))
	}
	if err != nil {
		panic(err)
	}
	fields := []arrow.Field{{Name: "id", Type: arrow.PrimitiveTypes.Int64}, {Name: "features", Type: kind}}
	if m.w != nil {
		fields = append(fields, arrow.Field{Name: "weight", Type: arrow.PrimitiveTypes.Float64})
	}
	schema := arrow.NewSchema(fields, nil)
	return b.Add(engine.Spec{Op: "Points", Schema: arrowrows.Schema(schema), Source: func() engine.Source { return &matrixSource{m, schema} }})
}

type matrixSource struct {
	data
	schema *arrow.Schema
}

func (s *matrixSource) Open(*engine.Context) error { return nil }
func (s *matrixSource) Close() error               { return nil }

func (s *matrixSource) ReadShard(c *engine.Context, shard int, out engine.Output) error {
	own := sharding.Split(s.n, c.Shards, shard)
	for lo := own.Lo; lo < own.Hi; lo += c.BatchRows {
		rows, err := s.batch(c.Allocator, lo, min(lo+c.BatchRows, own.Hi))
		if err != nil {
			return err
		}
		err = out.Emit(shard, arrowrows.Batch(rows))
		rows.Release()
		if err != nil {
			return err
		}
	}
	return nil
}

// batch returns the rows [lo, hi) as a record that the caller owns.
func (s *matrixSource) batch(mem memory.Allocator, lo, hi int) (arrow.Record, error) {
	b, err := batch.NewRecordBuilder(mem, s.schema)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	for i := lo; i < hi; i++ {
		b.Field(0).(*array.Int64Builder).Append(int64(i))
		appendVector(b.Field(1), s.row(i))
		if s.w != nil {
			b.Field(2).(*array.Float64Builder).Append(s.w[i])
		}
	}
	return b.NewRecord()
}

func appendVector(field array.Builder, row []float64) {
	switch b := field.(type) {
	case *array.FixedSizeListBuilder:
		b.Append(true)
		b.ValueBuilder().(*array.Float64Builder).AppendValues(row, nil)
	case *array.ListBuilder:
		b.Append(true)
		b.ValueBuilder().(*array.Float64Builder).AppendValues(row, nil)
	case *array.StructBuilder:
		b.Append(true)
		indices, values := b.FieldBuilder(0).(*array.ListBuilder), b.FieldBuilder(1).(*array.ListBuilder)
		indices.Append(true)
		values.Append(true)
		for j, v := range row {
			if v != 0 {
				indices.ValueBuilder().(*array.Int32Builder).Append(int32(j))
				values.ValueBuilder().(*array.Float64Builder).Append(v)
			}
		}
	}
}

// prediction is a row of the predictions.
type prediction struct {
	ID       int64   `column:"id"`
	Cluster  int64   `column:"cluster"`
	Distance float64 `column:"distance"`
}

// outcome has the results of training and of predicting the same points.
type outcome struct {
	model       *kmeans.Model
	text        []byte // the encoded model
	predictions []prediction
	inertia     []float64
	movement    []float64
}

// checked returns an option whose allocator fails the test if memory is not released.
func checked(t testing.TB) engine.Option {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return engine.Allocator(mem)
}

// train runs a training on m and predicts the rows of m.
func train(t testing.TB, m data, p kmeans.Params, options ...engine.Option) outcome {
	t.Helper()
	o, err := tryTrain(t, m, p, options...)
	require.NoError(t, err)
	return o
}

func tryTrain(t testing.TB, m data, p kmeans.Params, options ...engine.Option) (outcome, error) {
	t.Helper()
	if p.VectorCol == "" {
		p.VectorCol = "features"
	}
	if m.w != nil && p.WeightCol == "" {
		p.WeightCol = "weight"
	}
	job := engine.Define("cluster", func(b *engine.Builder, _ struct{}) error {
		points := m.dataset(b)
		model := kmeans.Train(points, p)
		engine.Collect(model, "model")
		engine.Collect(kmeans.Predict(points, model, kmeans.PredictOptions{}), "predictions")
		return nil
	})
	options = append([]engine.Option{checked(t), engine.Shards(8), engine.CheckBroadcasts(true)}, options...)
	r, err := engine.Run(context.Background(), job, struct{}{}, options...)
	if err != nil {
		return outcome{}, err
	}
	defer r.Release()
	var o outcome
	o.model, err = kmeans.ModelOf(r, "model")
	require.NoError(t, err)
	o.text, err = o.model.Encode()
	require.NoError(t, err)
	o.predictions, err = engine.Rows[prediction](r, "predictions")
	require.NoError(t, err)
	o.inertia = r.Series("kmeans", "inertia")
	o.movement = r.Series("kmeans", "movement")
	return o, nil
}

// iris returns the measurements in the iris data that are bundled with the project.
func iris(t testing.TB) data {
	t.Helper()
	f, err := os.Open("../../examples/kmeans/data/iris.csv")
	require.NoError(t, err)
	defer f.Close()
	records, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	m := data{d: 4}
	for _, record := range records[1:] {
		for _, field := range record[:4] {
			v, err := strconv.ParseFloat(strings.TrimSpace(field), 64)
			require.NoError(t, err)
			m.x = append(m.x, v)
		}
		m.n++
	}
	require.Equal(t, 150, m.n)
	return m
}

// referenceLloyd runs textbook k-means, without code of the package. It ends when no centre
// moves farther than tol, or after maxIter updates. It returns the final centres, the number of
// the nearest centre of each row, and the inertia of the final centres.
func referenceLloyd(m data, first [][]float64, maxIter int, tol float64) (centers [][]float64, near []int, inertia float64) {
	for _, c := range first {
		centers = append(centers, append([]float64(nil), c...))
	}
	near = make([]int, m.n)
	assign := func() {
		inertia = 0
		for i := range m.n {
			best := math.Inf(1)
			for a, c := range centers {
				var sum float64
				for j, v := range m.row(i) {
					sum += (v - c[j]) * (v - c[j])
				}
				if sum < best {
					best, near[i] = sum, a
				}
			}
			inertia += m.weight(i) * best
		}
	}
	for range maxIter {
		assign()
		moved := 0.0
		for a := range centers {
			mean, weight := make([]float64, m.d), 0.0
			for i := range m.n {
				if near[i] == a {
					weight += m.weight(i)
					for j, v := range m.row(i) {
						mean[j] += m.weight(i) * v
					}
				}
			}
			var step float64
			for j := range mean {
				mean[j] /= weight
				step += (mean[j] - centers[a][j]) * (mean[j] - centers[a][j])
			}
			centers[a] = mean
			moved = max(moved, math.Sqrt(step))
		}
		if moved <= tol {
			break
		}
	}
	assign()
	return centers, near, inertia
}

// requireCenters requires that centres agree to a relative error of 1e-9.
func requireCenters(t testing.TB, want, got [][]float64) {
	t.Helper()
	require.Len(t, got, len(want))
	for a := range want {
		for j, v := range want[a] {
			require.InDelta(t, v, got[a][j], 1e-9*max(1, math.Abs(v)), "center %d, component %d", a, j)
		}
	}
}
