package naivebayes_test

import (
	"fmt"
	"math"
	"os"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/naivebayes"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

func TestModelFile(t *testing.T) {
	for _, f := range families {
		m := train(t, small(), of(f))
		again := trial.ModelFile(t, m, naivebayes.Load, naivebayes.Decode, `"dim":6`, `"dim":7`)
		require.Equal(t, "naivebayes", again.Kind())
		require.Equal(t, []model.Input{{Column: "features", Type: "vector[6]"}}, again.Inputs())
		require.Equal(t, probabilities(t, m, small().Row(5)), probabilities(t, again, small().Row(5)))
	}
}

func TestModelsAreChecked(t *testing.T) {
	for _, c := range []struct {
		family naivebayes.Family
		change func(m *naivebayes.Model)
		want   string
	}{
		{0, func(m *naivebayes.Model) { m.Family = 9 }, "Family(9)"},
		{0, func(m *naivebayes.Model) { m.Classes.Values = nil }, "no classes"},
		{0, func(m *naivebayes.Model) { m.Classes.Values = []string{"1", "1", "2"} }, "twice"},
		{0, func(m *naivebayes.Model) { m.Classes.Values = []string{"a", "1", "2"} }, `class "a"`},
		{0, func(m *naivebayes.Model) { m.Classes.Type = "vector[2]" }, "labels are vector[2]"},
		{0, func(m *naivebayes.Model) { m.Priors = m.Priors[1:] }, "2 priors"},
		{0, func(m *naivebayes.Model) { m.Priors[0] = 0 }, "has prior 0"},
		{0, func(m *naivebayes.Model) { m.Dim = 7 }, "reads have 6 components, and there are 7 features"},
		{0, func(m *naivebayes.Model) { m.Dim = 0 }, "dim is 0"},
		{0, func(m *naivebayes.Model) { m.Columns = []int32{3, 2} }, "do not ascend"},
		{0, func(m *naivebayes.Model) { m.Variances[1][2] = 0 }, `variances of class "1": number 2 is 0`},
		{0, func(m *naivebayes.Model) { m.Means[1][2] = math.NaN() }, "number 2 is NaN"},
		{0, func(m *naivebayes.Model) { m.Means = m.Means[1:] }, "means of 2 classes"},
		{1, func(m *naivebayes.Model) { m.Counts[0][0] = -1 }, "is -1"},
		{1, func(m *naivebayes.Model) { m.Counts[0] = nil }, `there are 0 counts of class "0"`},
		{1, func(m *naivebayes.Model) { m.Smoothing = 0 }, "smoothing is 0"},
		{3, func(m *naivebayes.Model) { m.Binarize = math.NaN() }, "binarize is NaN"},
	} {
		m := train(t, small(), of(c.family))
		c.change(m)
		_, err := m.Encode()
		require.ErrorContains(t, err, c.want)
	}
}

func TestFileOfVersion1(t *testing.T) {
	file, err := os.ReadFile("testdata/model_v1.json")
	require.NoError(t, err)
	m, err := naivebayes.Decode(file)
	require.NoError(t, err)
	require.Equal(t, naivebayes.Bernoulli, m.Family)
	require.Equal(t, naivebayes.Classes{Type: "utf8", Values: []string{"no", "yes"}}, m.Classes)
	require.Equal(t, []model.Input{{Column: "words", Type: "sparse[4]"}}, m.Inputs())
	require.Equal(t, []int32{0, 2}, m.Columns)
	require.Equal(t, "answer", m.PredictionCol)
	// Both classes have the same number of rows. Feature 0 is present with probability
	// (3+1)/(4+2) in the class no and (1+1)/(4+2) in the class yes.
	got := make([]float64, 2)
	require.True(t, m.PredictProbabilitySparse([]int32{0}, []float64{1}, got))
	// Feature 2 is present in 1 of the 4 rows of the class no and in all 4 rows of the class
	// yes, so it is absent with probability (3+1)/(4+2) in no and (0+1)/(4+2) in yes.
	yes, no := 2./6*1./6, 4./6*4./6
	require.InDelta(t, yes/(yes+no), got[1], 1e-12)
}

// TestPredictEverywhereTheSame requires that the operator, the methods of the model and its
// bound step give the same predictions. It uses labels of several types, dense and sparse rows,
// and several goroutines at once.
func TestPredictEverywhereTheSame(t *testing.T) {
	table := small()
	table.Weight = nil
	for _, f := range families {
		for _, sparse := range []bool{false, true} {
			table.Sparse = sparse
			r := trial.Run(t, func(b *engine.Builder) {
				rows := table.Dataset(b)
				m := of(f).Fit(rows)
				engine.Collect(m, "model")
				engine.Collect(of(f).Apply(rows, m), "rows")
			})
			m, err := naivebayes.ModelOf(r, "model")
			require.NoError(t, err)
			type row struct {
				Prediction  float64
				Probability []float64
			}
			rows, err := engine.Rows[row](r, "rows")
			require.NoError(t, err)
			layout := model.NewLayout("features")
			step, err := m.Bind(layout)
			require.NoError(t, err)
			var all sync.WaitGroup
			for range 3 {
				all.Go(func() {
					cells, got := layout.NewRow(), make([]float64, 3)
					for i := range table.N {
						class := m.Predict(table.Row(i))
						m.PredictProbability(table.Row(i), got)
						cells[0].SetDense(table.Row(i))
						if sparse {
							indices, values := trial.Sparse(table.Row(i))
							class = m.PredictSparse(indices, values)
							m.PredictProbabilitySparse(indices, values, got)
							cells[0].SetSparse(6, indices, values)
						}
						if float64(class) != rows[i].Prediction || fmt.Sprint(got) != fmt.Sprint(rows[i].Probability) {
							t.Errorf("row %d: the methods return class %v and probabilities %v, the operator %v", i, class, got, rows[i])
						}
						if err := step(cells); err != nil || cells[1].Float != rows[i].Prediction {
							t.Errorf("row %d: the bound step must predict the class that the operator predicts; its error is %v", i, err)
						}
					}
				})
			}
			all.Wait()
		}
	}
}

func TestLabelsOfAnyType(t *testing.T) {
	type flags struct {
		X     float64 `column:"x"`
		Label bool    `column:"label"`
	}
	type whole struct {
		X     float64 `column:"x"`
		Label int32   `column:"label"`
	}
	type text struct {
		X     float64 `column:"x"`
		Label string  `column:"label"`
	}
	p := naivebayes.Params{LabelCol: "label", FeatureCols: []string{"x"}, PredictionCol: "guess"}
	run := func(source func(b *engine.Builder) *engine.Dataset) *engine.Result {
		return trial.Run(t, func(b *engine.Builder) {
			d := source(b)
			m := naivebayes.Train(d, p)
			engine.Collect(m, "model")
			engine.Collect(p.Apply(d, m), "rows")
		})
	}
	values := []float64{1, 2, 9, 1.5, 8, 10}
	r := run(func(b *engine.Builder) *engine.Dataset {
		var rows []flags
		for _, v := range values {
			rows = append(rows, flags{v, v > 5})
		}
		return operators.FromSlice(b, rows)
	})
	type guess[T any] struct {
		Label T
		Guess T
	}
	a, err := engine.Rows[guess[bool]](r, "rows")
	require.NoError(t, err)
	for _, g := range a {
		require.Equal(t, g.Label, g.Guess)
	}
	r = run(func(b *engine.Builder) *engine.Dataset {
		var rows []whole
		for _, v := range values {
			rows = append(rows, whole{v, int32(-3 + int(v)/5*10)})
		}
		return operators.FromSlice(b, rows)
	})
	w, err := engine.Rows[guess[int32]](r, "rows")
	require.NoError(t, err)
	for _, g := range w {
		require.Equal(t, g.Label, g.Guess)
	}
	r = run(func(b *engine.Builder) *engine.Dataset {
		var rows []text
		for _, v := range values {
			rows = append(rows, text{v, fmt.Sprint("large: ", v > 5)})
		}
		return operators.FromSlice(b, rows)
	})
	s, err := engine.Rows[guess[string]](r, "rows")
	require.NoError(t, err)
	for _, g := range s {
		require.Equal(t, g.Label, g.Guess)
	}
	m, err := naivebayes.ModelOf(r, "model")
	require.NoError(t, err)
	again := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(m.Transform(operators.FromSlice(b, []text{{X: 9}})), "rows")
	})
	s, err = engine.Rows[guess[string]](again, "rows")
	require.NoError(t, err)
	require.Equal(t, "large: true", s[0].Guess)
}
