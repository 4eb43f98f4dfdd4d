package gmm_test

import (
	"math"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gmm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

func TestModelFile(t *testing.T) {
	table := blobs(2, 90, 3, 2)
	for _, shape := range shapes {
		m := train(t, table, gmm.Params{K: 2, Covariance: shape})
		again := trial.ModelFile(t, m, gmm.Load, gmm.Decode, `"dim":3`, `"dim":4`)
		require.Equal(t, "gmm", again.Kind())
		for i := range table.N {
			require.Equal(t, m.LogDensity(table.Row(i)), again.LogDensity(table.Row(i)))
		}
		require.Equal(t, []model.Input{{Column: "features", Type: "vector[3]"}}, again.Inputs())
	}
}

// TestModelsAreChecked requires errors for files whose checksum is right but whose model is not
// valid.
func TestModelsAreChecked(t *testing.T) {
	for _, c := range []struct {
		change func(m *gmm.Model)
		want   string
	}{
		{func(m *gmm.Model) { m.Covariance = 9 }, "Covariance(9)"},
		{func(m *gmm.Model) { m.Dim = 0 }, "dim is 0"},
		{func(m *gmm.Model) { m.Dim = 3 }, "reads have 2 components, and there are 3 features"},
		{func(m *gmm.Model) { m.Weights = nil }, "no components"},
		{func(m *gmm.Model) { m.Means = m.Means[:1] }, "2 weights, 1 means"},
		{func(m *gmm.Model) { m.Weights[0] = 0.9 }, "sum to"},
		{func(m *gmm.Model) { m.Weights[0] = math.NaN() }, "weight 0 is NaN"},
		{func(m *gmm.Model) { m.Means[1] = []float64{1} }, "mean 1 has 1 numbers"},
		{func(m *gmm.Model) { m.Means[1][0] = math.Inf(1) }, "number 0 of mean 1 is +Inf"},
		{func(m *gmm.Model) { m.Covariances[0] = []float64{1, 5, 1} }, "not positive definite"},
		{func(m *gmm.Model) { m.LogLikelihood = math.NaN() }, "NaN"},
		{func(m *gmm.Model) { m.ProbabilityCol = "component" }, `the columns of components and probabilities are both "component"`},
	} {
		m := train(t, blobs(2, 50, 2, 2), gmm.Params{K: 2, MaxIter: 1})
		c.change(m)
		_, err := m.Encode()
		require.ErrorContains(t, err, c.want)
	}
	_, err := (&gmm.Model{Dim: 1, Weights: []float64{1}, Means: [][]float64{{0}}, Covariances: [][]float64{{1}}}).Encode()
	require.ErrorContains(t, err, "no inputs")
}

func TestFileOfVersion1(t *testing.T) {
	file, err := os.ReadFile("testdata/model_v1.json")
	require.NoError(t, err)
	m, err := gmm.Decode(file)
	require.NoError(t, err)
	require.Equal(t, gmm.Tied, m.Covariance)
	require.Equal(t, []model.Input{{Column: "length", Type: "float64"}, {Column: "width", Type: "float64"}}, m.Inputs())
	require.Equal(t, 0.25, m.Weights[0])
	component, probability := m.Predict([]float64{0, 0})
	require.Equal(t, 0, component)
	require.Greater(t, probability, 0.99)
	component, _ = m.Predict([]float64{8, 8})
	require.Equal(t, 1, component)
}

// TestPredictEverywhereTheSame requires that the operator, the methods and a bound model give
// the same predictions, also in several goroutines at once, and allocate nothing.
func TestPredictEverywhereTheSame(t *testing.T) {
	table := blobs(4, 100, 3, 3)
	for _, shape := range shapes {
		m := train(t, table, gmm.Params{K: 3, Covariance: shape, MaxIter: 5})
		r := trial.Run(t, func(b *engine.Builder) {
			engine.Collect(gmm.Predict(table.Dataset(b), m.Dataset(b), gmm.PredictOptions{DensityCol: "density"}), "rows")
			engine.Collect(m.Transform(table.Dataset(b)), "plain")
		})
		type row struct {
			Component     int64
			Probabilities []float64
			Density       float64
		}
		rows, err := engine.Rows[row](r, "rows")
		require.NoError(t, err)
		layout := model.NewLayout("features")
		step, err := m.Bind(layout)
		require.NoError(t, err)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				out, cells := make([]float64, 3), layout.NewRow()
				for i := range table.N {
					component, probability := m.Predict(table.Row(i))
					if int64(component) != rows[i].Component || probability != rows[i].Probabilities[component] {
						t.Errorf("row %d: Predict returns component %d, want as in %v", i, component, rows[i])
					}
					if density := m.Probabilities(table.Row(i), out); density != rows[i].Density || out[1] != rows[i].Probabilities[1] {
						t.Errorf("row %d: Probabilities returns density %v, want as in %v", i, density, rows[i])
					}
					cells[0].SetDense(table.Row(i))
					if i%2 == 0 {
						cells[0].SetSparse(3, []int32{0, 1, 2}, table.Row(i))
					}
					if err := step(cells); err != nil || cells[1].Int != rows[i].Component {
						t.Errorf("row %d: the step returns error %v and cells %v, want the operator's component", i, err, cells)
					}
				}
			})
		}
		all.Wait()
	}
	m := train(t, table, gmm.Params{K: 2, MaxIter: 1})
	component, probability := m.Predict([]float64{1})
	require.Equal(t, -1, component)
	require.True(t, math.IsNaN(probability))
	require.True(t, math.IsNaN(m.LogDensity(nil)))
	out := make([]float64, 2)
	require.True(t, math.IsNaN(m.Probabilities([]float64{1, 2}, out)))
	require.True(t, math.IsNaN(out[0]))
}

// TestNamesOfOutputs requires that the model keeps the names that were given to the columns
// that it adds.
func TestNamesOfOutputs(t *testing.T) {
	table := blobs(4, 60, 2, 2)
	p := gmm.Params{K: 2, MaxIter: 3, PredictionCol: "part", ProbabilityCol: "p"}
	r := trial.Run(t, func(b *engine.Builder) {
		trained := p.Fit(table.Dataset(b))
		engine.Collect(trained, "model")
		engine.Collect(p.Apply(table.Dataset(b), trained), "applied")
	})
	m, err := gmm.ModelOf(r, "model")
	require.NoError(t, err)
	text, err := m.Encode()
	require.NoError(t, err)
	back, err := gmm.Decode(text)
	require.NoError(t, err)
	require.Equal(t, "part", back.PredictionCol)
	require.Equal(t, "p", back.ProbabilityCol)
	again := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(back.Transform(table.Dataset(b)), "applied")
		plain := gmm.Predict(table.Dataset(b), back.Dataset(b), gmm.PredictOptions{})
		engine.Collect(operators.Rename(operators.Rename(plain, "component", "part"), "probabilities", "p"), "plain")
	})
	type named struct {
		Part int64
		P    []float64
	}
	want, err := engine.Rows[named](r, "applied")
	require.NoError(t, err)
	require.Len(t, want, table.N)
	for _, name := range []string{"applied", "plain"} {
		got, err := engine.Rows[named](again, name)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	layout := model.NewLayout("features")
	_, err = back.Bind(layout)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"features": 0, "part": 1, "p": 2}, layout.Columns())
}

// TestFeatureColumns requires that features may be number columns together with vector columns.
func TestFeatureColumns(t *testing.T) {
	type row struct {
		X float64   `column:"x"`
		N int32     `column:"n"`
		V []float64 `column:"v,dim=2"`
	}
	var rows []row
	table := blobs(12, 60, 4, 2)
	for i := range table.N {
		x := table.Row(i)
		x[1] = math.Round(x[1])
		rows = append(rows, row{x[0], int32(x[1]), x[2:]})
	}
	p := gmm.Params{K: 2, FeatureCols: []string{"x", "n", "v"}, MaxIter: 5}
	r := trial.Run(t, func(b *engine.Builder) {
		data := operators.FromSlice(b, rows)
		m := p.Fit(data)
		engine.Collect(m, "model")
		engine.Collect(p.Apply(data, m), "rows")
	})
	m, err := gmm.ModelOf(r, "model")
	require.NoError(t, err)
	require.Equal(t, []model.Input{{Column: "x", Type: "float64"}, {Column: "n", Type: "int32"}, {Column: "v", Type: "vector[2]"}}, m.Inputs())
	plain := train(t, table, gmm.Params{K: 2, MaxIter: 5})
	require.Equal(t, plain.Means, m.Means)
	type predicted struct{ Component int64 }
	got, err := engine.Rows[predicted](r, "rows")
	require.NoError(t, err)
	require.Len(t, got, table.N)
	for i := range got {
		component, _ := plain.Predict(table.Row(i))
		require.EqualValues(t, component, got[i].Component)
	}
	_, err = m.Bind(model.NewLayout("x", "v"))
	require.ErrorContains(t, err, `"n"`)
}
