package glm_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
)

var (
	_ model.Binder = (*glm.Model)(nil)
	_ model.Stage  = glm.Params{}
)

// TestOperatorRowsAndCellsHaveTheSameBits compares the bits of predictions by the operator, by
// the in-process calls on dense and on sparse rows, and by the step that pipelines run. The
// calls and the step must allocate nothing.
func TestOperatorRowsAndCellsHaveTheSameBits(t *testing.T) {
	table := counts(60, 3)
	for i := range table.N {
		table.Offset = append(table.Offset, 0.1*math.Cos(float64(i)))
		table.Row(i)[i%3] = 0
	}
	halves := table
	halves.Label = make([]float64, table.N)
	for i := range halves.Label {
		halves.Label[i] = float64(i%5) / 4
	}
	for name, m := range map[string]*glm.Model{
		"identity": train(t, table, glm.Params{}),
		"log":      train(t, table, glm.Params{Family: glm.Poisson}),
		"logit":    train(t, halves, glm.Params{Family: glm.Binomial}),
		"inverse":  train(t, table, glm.Params{Family: glm.Gamma, Link: glm.Inverse, L2: 1}),
	} {
		layout := model.NewLayout("features", "offset")
		step, err := m.Bind(layout)
		require.NoError(t, err)
		cells := layout.NewRow()
		for _, sparse := range []bool{false, true} {
			table.Sparse = sparse
			r := trial.Run(t, func(b *engine.Builder) { engine.Collect(m.Transform(table.Dataset(b)), "predictions") })
			type row struct {
				Prediction float64 `column:"prediction"`
			}
			rows, err := engine.Rows[row](r, "predictions")
			require.NoError(t, err)
			require.Len(t, rows, table.N)
			for i := range table.N {
				x := table.Row(i)
				indices, values := trial.Sparse(x)
				want := m.Mean(m.Margin(x) + table.Offset[i])
				require.Equal(t, want, rows[i].Prediction, name)
				require.Equal(t, m.Predict(x), m.PredictSparse(indices, values))
				require.Equal(t, m.Predict(x), m.Mean(m.Margin(x)))
				cells[0].SetDense(x)
				cells[1].SetFloat(table.Offset[i])
				require.NoError(t, step(cells))
				require.Equal(t, want, cells[2].Float)
				if i == 0 {
					require.Zero(t, testing.AllocsPerRun(10, func() { m.Predict(x); m.PredictSparse(indices, values); _ = step(cells) }))
				}
			}
		}
		table.Sparse = false
		cells[1].SetNull()
		require.NoError(t, step(cells))
		require.Equal(t, model.NullCell, cells[2].Kind)
		require.True(t, math.IsNaN(m.Predict([]float64{1})))
		unshifted := table
		unshifted.Offset = nil
		trial.Fails(t, func(b *engine.Builder) { engine.Collect(m.Transform(unshifted.Dataset(b)), "predictions") }, `"offset"`)
	}
	m := train(t, counts(30, 2), glm.Params{})
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(glm.Predict(table.Dataset(b), m.Dataset(b), glm.PredictOptions{}), "predictions")
	}, "vector[3]", "2 features")
}

func TestPredictConcurrently(t *testing.T) {
	table := counts(60, 3)
	trial.Concurrently(t, train(t, table, glm.Params{Family: glm.Gamma}), glm.Decode, table)
}

func TestModelFile(t *testing.T) {
	table := counts(60, 3)
	for name, p := range map[string]glm.Params{
		"table": {Family: glm.Poisson}, "tweedie": {Family: glm.Tweedie, Power: 1.3, PredictionCol: "p"}, "lasso": {Family: glm.Gamma, L1: 0.1},
	} {
		t.Run(name, func(t *testing.T) {
			m := train(t, table, p)
			back := trial.ModelFile(t, m, glm.Load, glm.Decode, `"features":3`, `"features":4`)
			require.Equal(t, m.Summary, back.Summary)
			require.Equal(t, m.Power, back.Power)
			require.Equal(t, m.PredictionCol, back.PredictionCol)
		})
	}
	m := train(t, table, glm.Params{Family: glm.Poisson})
	m.Link = glm.Auto
	_, err := m.Encode()
	require.ErrorContains(t, err, "the family poisson has no link auto")
	m.Link, m.Family = glm.Log, 7
	_, err = m.Encode()
	require.ErrorContains(t, err, "Family(7)")
	m.Family = glm.Tweedie
	_, err = m.Encode()
	require.ErrorContains(t, err, "Power is 0")
}

// TestModelOfVersion1 requires that a file written by version 1 can still be read.
func TestModelOfVersion1(t *testing.T) {
	m, err := glm.Load("testdata/model_v1.json")
	require.NoError(t, err)
	require.Equal(t, glm.Gamma, m.Family)
	require.Equal(t, glm.Log, m.Link)
	table := trial.Abalone(t, 200)
	again := train(t, table, glm.Params{Family: glm.Gamma})
	require.InEpsilon(t, again.Predict(table.Row(3)), m.Predict(table.Row(3)), 1e-9)
	require.Equal(t, "features[2]", m.Summary.Inference.Terms[2].Name)
	text, err := os.ReadFile("testdata/model_v1.json")
	require.NoError(t, err)
	encoded, err := m.Encode()
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(text)), string(encoded))
}
