package mlp_test

import (
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/mlp"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

func TestModelFile(t *testing.T) {
	for _, p := range []mlp.Params{regression, classification} {
		p.MaxIter = 5
		table := rings(40)
		m := train(t, table, p)
		again := trial.ModelFile(t, m, mlp.Load, mlp.Decode, `"dim":2`, `"dim":3`)
		require.Equal(t, "mlp", again.Kind())
		require.Equal(t, []model.Input{{Column: "features", Type: "vector[2]"}}, again.Inputs())
		require.Equal(t, m.Predict(table.Row(5)), again.Predict(table.Row(5)))
		require.Len(t, again.Summary.Record, again.Summary.Iterations+1)
	}
}

func TestModelsAreChecked(t *testing.T) {
	table := rings(20)
	p := classification
	p.MaxIter = 2
	for _, c := range []struct {
		change func(m *mlp.Model)
		want   string
	}{
		{func(m *mlp.Model) { m.Task = 9 }, "Task(9)"},
		{func(m *mlp.Model) { m.Task = mlp.Regression }, "a regression has no classes"},
		{func(m *mlp.Model) { m.Activation = 9 }, "Activation(9)"},
		{func(m *mlp.Model) { m.Classes.Values = m.Classes.Values[1:] }, "there are 1 classes"},
		{func(m *mlp.Model) { m.Classes.Values = []string{"a", "1"} }, `class "a"`},
		{func(m *mlp.Model) { m.Dim = 0 }, "dim is 0"},
		{func(m *mlp.Model) { m.Dim = 4 }, "there are 4 features"},
		{func(m *mlp.Model) { m.Columns = []int32{1, 0} }, "do not ascend"},
		{func(m *mlp.Model) { m.Scale[1] = math.NaN() }, "feature 1 has shift"},
		{func(m *mlp.Model) { m.Layers = m.Layers[:1] }, "the last layer must have 1 outputs"},
		{func(m *mlp.Model) { m.Layers[1].Weights = nil }, "layer 1 has weights of 0 inputs"},
		{func(m *mlp.Model) { m.Layers[0].Weights[1] = nil }, "layer 0: input 1 has 0 weights"},
		{func(m *mlp.Model) { m.Layers[1].Biases[0] = math.Inf(-1) }, "is -Inf"},
	} {
		m := train(t, table, p)
		c.change(m)
		_, err := m.Encode()
		require.ErrorContains(t, err, c.want)
	}
}

func TestFileOfVersion1(t *testing.T) {
	file, err := os.ReadFile("testdata/model_v1.json")
	require.NoError(t, err)
	m, err := mlp.Decode(file)
	require.NoError(t, err)
	require.Equal(t, mlp.Classification, m.Task)
	require.Equal(t, mlp.Classes{Type: "utf8", Values: []string{"no", "yes"}}, m.Classes)
	require.Equal(t, []model.Input{{Column: "a", Type: "float64"}, {Column: "b", Type: "int64"}}, m.Inputs())
	require.Equal(t, "answer", m.PredictionCol)
	// The hidden units have the values relu((3−1)·2·1 + 0) = 4 and relu((5−1)·0.5·−1 + 1) = 0.
	// The output is 4 − 3.
	got := make([]float64, 2)
	require.True(t, m.PredictProbability([]float64{3, 5}, got))
	require.InDelta(t, 1/(1+math.Exp(-1)), got[1], 1e-15)
	require.Equal(t, 1.0, m.Predict([]float64{3, 5}))
}

// TestPredictEverywhereTheSame requires that the operator, the methods of the model and its
// bound step give the same predictions, for dense and sparse rows, also in several goroutines
// at once.
func TestPredictEverywhereTheSame(t *testing.T) {
	for _, p := range []mlp.Params{regression, classification} {
		for _, sparse := range []bool{false, true} {
			p.MaxIter = 4
			table := rings(50)
			table.Sparse = sparse
			trial.SamePredictions(t, table, p, mlp.ModelOf)
		}
	}
}

func TestFeatureColumns(t *testing.T) {
	type row struct {
		A     float64 `column:"a"`
		B     int64   `column:"b"`
		Label bool    `column:"label"`
	}
	var rows []row
	for i := range 20 {
		rows = append(rows, row{float64(i%5) - 2, int64(i%3) - 1, i%5 > 2})
	}
	p := mlp.Params{LabelCol: "label", FeatureCols: []string{"a", "b"}, Task: mlp.Classification, L2: 0.01, PredictionCol: "guess"}
	r := trial.Run(t, func(b *engine.Builder) {
		d := operators.FromSlice(b, rows)
		m := p.Fit(d)
		engine.Collect(p.Apply(d, m), "rows")
	})
	type guess struct{ Label, Guess bool }
	got, err := engine.Rows[guess](r, "rows")
	require.NoError(t, err)
	require.Len(t, got, len(rows))
	for _, g := range got {
		require.Equal(t, g.Label, g.Guess)
	}
}
