package fm_test

import (
	"math"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/fm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

func TestModelFile(t *testing.T) {
	for _, p := range []fm.Params{regression, classification} {
		p.MaxIter = 5
		table := products(40, p.Task == fm.Classification)
		m := train(t, table, p)
		again := trial.ModelFile(t, m, fm.Load, fm.Decode, `"dim":3`, `"dim":4`)
		require.Equal(t, "fm", again.Kind())
		require.Equal(t, []model.Input{{Column: "features", Type: "vector[3]"}}, again.Inputs())
		require.Equal(t, m.Margin(table.Row(5)), again.Margin(table.Row(5)))
		require.Len(t, again.Summary.Record, again.Summary.Iterations+1)
	}
}

func TestModelsAreChecked(t *testing.T) {
	table := products(20, true)
	p := classification
	p.MaxIter = 2
	for _, c := range []struct {
		change func(m *fm.Model)
		want   string
	}{
		{func(m *fm.Model) { m.Task = 9 }, "Task(9)"},
		{func(m *fm.Model) { m.Task = fm.Regression }, "a regression has no classes"},
		{func(m *fm.Model) { m.Classes.Values = m.Classes.Values[1:] }, "there are 1 classes"},
		{func(m *fm.Model) { m.Classes.Values = []string{"a", "1"} }, `class "a"`},
		{func(m *fm.Model) { m.Dim = 0 }, "dim is 0"},
		{func(m *fm.Model) { m.Dim = 4 }, "there are 4 features"},
		{func(m *fm.Model) { m.Columns = []int32{2, 1, 0} }, "do not ascend"},
		{func(m *fm.Model) { m.Linear = m.Linear[1:] }, "2 weights"},
		{func(m *fm.Model) { m.Linear[1] = math.NaN() }, "weight 1 is NaN"},
		{func(m *fm.Model) { m.Intercept = math.Inf(1) }, "the intercept is +Inf"},
		{func(m *fm.Model) { m.Factors[1] = nil }, "feature 1 has 0 factors"},
		{func(m *fm.Model) { m.Factors[2][0] = math.Inf(-1) }, "a factor of feature 2 is -Inf"},
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
	m, err := fm.Decode(file)
	require.NoError(t, err)
	require.Equal(t, fm.Classification, m.Task)
	require.Equal(t, fm.Classes{Type: "utf8", Values: []string{"no", "yes"}}, m.Classes)
	require.Equal(t, []model.Input{{Column: "words", Type: "sparse[4]"}}, m.Inputs())
	require.Equal(t, "answer", m.PredictionCol)
	// The margin is −1 + 0.5·1 + 0.25·2 + (1·3 + 2·1)·1·2 = 10.
	require.Equal(t, 10.0, m.MarginSparse([]int32{0, 2}, []float64{1, 2}))
	require.Equal(t, -0.5, m.Margin([]float64{1, 7, 0, 7}))
}

// TestPredictEverywhereTheSame requires that the operator, the methods and a bound model give
// the same predictions, for dense and sparse rows, also in several goroutines at once.
func TestPredictEverywhereTheSame(t *testing.T) {
	for _, p := range []fm.Params{regression, classification} {
		for _, sparse := range []bool{false, true} {
			p.MaxIter = 4
			table := products(50, p.Task == fm.Classification)
			table.Sparse = sparse
			trial.SamePredictions(t, table, p, fm.ModelOf)
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
	p := fm.Params{LabelCol: "label", FeatureCols: []string{"a", "b"}, Task: fm.Classification, L2: 0.01, PredictionCol: "guess"}
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
