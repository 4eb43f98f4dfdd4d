package linear_test

import (
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

func TestBadParams(t *testing.T) {
	table := target(20, 2)
	for text, p := range map[string]linear.Params{
		"L1 is -1":                  linear.Lasso(-1, linear.Params{}),
		"L2 is NaN":                 linear.Ridge(math.NaN(), linear.Params{}),
		"Huber is -2":               {Huber: -2},
		"MaxIter is -1":             {MaxIter: -1},
		"both VectorCol":            {VectorCol: "features", FeatureCols: []string{"id"}},
		`did you mean`:              {VectorCol: "feature"},
		`named both as`:             {FeatureCols: []string{"id"}, WeightCol: "id"},
		"is vector[2], not a numbe": {OffsetCol: "features"},
	} {
		p.LabelCol = "label"
		trial.Fails(t, func(b *engine.Builder) { engine.Collect(linear.Train(table.Dataset(b), p), "model") }, "linear.Train", text)
	}
	require.ErrorContains(t, linear.Params{}.Validate(), "LabelCol is empty")
	trial.Fails(t, func(b *engine.Builder) { linear.Train(nil, linear.Params{LabelCol: "y"}) }, "the dataset is nil")
	other := train(t, target(20, 3), linear.Params{})
	trial.Fails(t, trains(table, linear.Params{Start: other}), "3 features, the rows 2")
}

func TestBadRows(t *testing.T) {
	weightless, infinite, wrong := target(20, 2), target(20, 2), target(20, 2)
	clear(weightless.Weight)
	infinite.Label[11] = math.Inf(-1)
	wrong.X[5] = math.NaN()
	for text, table := range map[string]trial.Table{
		"every weight":      weightless,
		`column "label"`:    infinite,
		`column "features"`: wrong,
		"no rows":           {D: 2, Label: []float64{}},
	} {
		trial.Fails(t, trains(table, linear.Params{}), text)
	}
	r := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(linear.Train(wrong.Dataset(b), columns(wrong, linear.Params{Skip: true})), "model")
	})
	m, err := linear.ModelOf(r, "model")
	require.NoError(t, err)
	require.EqualValues(t, 19, m.Summary.Rows)
	table := target(20, 2)
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(linear.Predict(wrong.Dataset(b), m.Dataset(b), linear.PredictOptions{}), "predictions")
	}, "row 0 of the shard", "component 1 is NaN")
	require.Nil(t, predict(t, wrong, m, linear.PredictOptions{Skip: true})[2])
	require.NotNil(t, predict(t, table, m, linear.PredictOptions{})[2])
}

// TestTinyFeatures requires that training refuses dense and sparse features whose squares
// underflow. Larger features, and constant features of any size, must be accepted.
func TestTinyFeatures(t *testing.T) {
	plain := target(30, 2)
	want := train(t, plain, linear.Params{})
	for _, c := range []struct {
		size   float64
		refuse bool
	}{{1e-140, false}, {1e-160, true}, {1e-200, true}, {1e-310, true}} {
		table := plain
		table.X = slices.Clone(plain.X)
		for i := range table.N {
			table.X[2*i+1] *= c.size
		}
		for _, table.Sparse = range []bool{false, true} {
			if c.refuse {
				trial.Fails(t, trains(table, linear.Params{}), `column "features": component 1: the values are so small that their squares underflow: scale them up`)
				continue
			}
			got := train(t, table, linear.Params{})
			require.InEpsilon(t, want.Coefficients[0][1], got.Coefficients[0][1]*c.size, 1e-9)
		}
	}
	constant := plain
	constant.X = slices.Clone(plain.X)
	for i := range constant.N {
		constant.X[2*i+1] = 1e-200
	}
	require.Zero(t, train(t, constant, linear.Params{}).Coefficients[0][1])
}

func TestModelFile(t *testing.T) {
	table := machine(t)
	for name, p := range map[string]linear.Params{"table": {}, "lasso": linear.Lasso(10, linear.Params{}), "huber": {Huber: 5, PredictionCol: "p"}} {
		t.Run(name, func(t *testing.T) {
			m := train(t, table, p)
			path := filepath.Join(t.TempDir(), "model.json")
			require.NoError(t, m.Save(path))
			back, err := linear.Load(path)
			require.NoError(t, err)
			first, err := m.Encode()
			require.NoError(t, err)
			second, err := back.Encode()
			require.NoError(t, err)
			require.Equal(t, string(first), string(second))
			require.Equal(t, m.Summary, back.Summary)
			require.Equal(t, m.PredictionCol, back.PredictionCol)
			for i := 0; i < len(first); i += 5 {
				_, err := linear.Decode(first[:i])
				require.Error(t, err)
			}
			_, err = linear.Decode([]byte(strings.Replace(string(first), `"intercepts":[-`, `"intercepts":[`, 1)))
			require.ErrorContains(t, err, "checksum")
			_, err = linear.Decode([]byte(strings.Replace(string(first), `"version":1`, `"version":2`, 1)))
			require.ErrorContains(t, err, "reads up to version 1")
		})
	}
	_, err := linear.Load(filepath.Join(t.TempDir(), "none"))
	require.Error(t, err)
}

// TestModelOfVersion1 requires that a file written by version 1 can still be read.
func TestModelOfVersion1(t *testing.T) {
	m, err := linear.Load("testdata/model_v1.json")
	require.NoError(t, err)
	again := train(t, machine(t), linear.Params{})
	require.InDeltaSlice(t, again.Coefficients[0], m.Coefficients[0], 1e-9)
	require.InDelta(t, again.Predict(machine(t).Row(3)), m.Predict(machine(t).Row(3)), 1e-6)
	require.Equal(t, "features[2]", m.Summary.Inference.Terms[2].Name)
}

// TestSparseRowsOfManyFeatures requires that a model of sparse rows has coefficients only for
// the features that occur.
func TestSparseRowsOfManyFeatures(t *testing.T) {
	const size = 20_000_000
	mem := memory.NewGoAllocator()
	csr := batch.CSR{Size: size, Indptr: []int32{0}}
	labels := array.NewFloat64Builder(mem)
	small := trial.Table{D: 3}
	for i := range 40 {
		a, b, c := math.Sin(float64(i)), math.Cos(float64(3*i)), float64(i%4)
		csr.Indices, csr.Values = append(csr.Indices, 5, 1_000_000, size-1), append(csr.Values, a, b, c)
		csr.Indptr = append(csr.Indptr, int32(len(csr.Indices)))
		labels.Append(a - 2*b + 3*c + 1)
		small.X, small.Label, small.N = append(small.X, a, b, c), append(small.Label, a-2*b+3*c+1), small.N+1
	}
	column, err := batch.NewSparseArray(mem, csr)
	require.NoError(t, err)
	y := labels.NewArray()
	record := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "x", Type: column.DataType()}, {Name: "y", Type: y.DataType()}}, nil), []arrow.Array{column, y}, 40)
	r := trial.Run(t, func(b *engine.Builder) {
		rows := arrowbridge.FromRecords(b, []arrow.Record{record})
		made := linear.Train(rows, linear.Params{LabelCol: "y", Tol: 1e-10})
		engine.Collect(made, "model")
		engine.Collect(linear.Predict(rows, made, linear.PredictOptions{}), "predictions")
	})
	m, err := linear.ModelOf(r, "model")
	require.NoError(t, err)
	require.Equal(t, size, m.Dim)
	require.Equal(t, []int32{5, 1_000_000, size - 1}, m.Columns)
	require.InDeltaSlice(t, []float64{1, -2, 3}, m.Coefficients[0], 1e-7)
	require.Equal(t, "x[1000000]", m.FeatureName(1))
	type row struct {
		Prediction *float64 `column:"prediction"`
	}
	rows, err := engine.Rows[row](r, "predictions")
	require.NoError(t, err)
	for i := range small.N {
		require.Equal(t, m.PredictSparse(csr.Indices[3*i:3*i+3], csr.Values[3*i:3*i+3]), *rows[i].Prediction)
		require.InDelta(t, small.Label[i], *rows[i].Prediction, 1e-6)
	}
	require.Equal(t, m.Intercepts[0], m.PredictSparse([]int32{4, 6, 1_000_001}, []float64{1, 1, 1}))
	file, err := m.Encode()
	require.NoError(t, err)
	require.Less(t, len(file), 10_000)
	back, err := linear.Decode(file)
	require.NoError(t, err)
	require.Equal(t, m.Columns, back.Columns)
	require.Equal(t, m.Predict(make([]float64, size)), back.Intercepts[0])
}
