package gbdt_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/interchange/lightgbm"
	"github.com/superstep-ml/superstep/algorithms/interchange/xgboost"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
)

// result is a row with a feature vector that belongs to a query.
type result struct {
	Query    int64
	Features []float64
	Label    float64
}

// listed returns the rows of t, divided into queries.
func listed(t trial.Table) []result {
	var rows []result
	for i := range t.N {
		rows = append(rows, result{int64(i / 10), t.Row(i), t.Label[i]})
	}
	return rows
}

// TestOtherLibraries requires that a model that is written to a file of another library and
// read again makes the same predictions, in float32 where the format of the file has float32.
func TestOtherLibraries(t *testing.T) {
	table := labelled(made(61, 150, 4), func(y float64) float64 { return math.Floor(max(0, min(2, y/2))) })
	binary := labelled(table, func(y float64) float64 { return min(y, 1) })
	positive := labelled(table, func(y float64) float64 { return y + 1 })
	square := &gbdt.CustomObjective{Name: "mine", Link: gbdt.Exponential, Gradients: func(r *gbdt.Rows, grad, hess [][]float64) error {
		for i, m := range r.Margin[0] {
			grad[0][i], hess[0][i] = m-r.Label[i]/9, 1
		}
		return nil
	}}
	for o := gbdt.Squared; o <= gbdt.Custom; o++ {
		rows := map[gbdt.Objective]trial.Table{gbdt.Softmax: table, gbdt.Logistic: binary}[o]
		if rows.N == 0 {
			rows = positive
		}
		p := gbdt.Params{LabelCol: "label", Objective: o, NumTrees: 4, MaxDepth: 3, DART: o == gbdt.Gamma}
		switch o {
		case gbdt.LambdaMART:
			p.GroupCol, p.VectorCol = "query", "features"
		case gbdt.Custom:
			p.CustomObjective = square
		}
		var m *gbdt.Model
		if o == gbdt.LambdaMART {
			m = trainRows(t, listed(rows), p)
		} else {
			m = train(t, rows, p)
		}
		x, err := m.XGBoost()
		require.NoError(t, err, o)
		text, err := x.Encode()
		require.NoError(t, err)
		x, err = xgboost.Decode(text)
		require.NoError(t, err)
		l, err := m.LightGBM()
		require.NoError(t, err, o)
		text, err = l.Encode()
		require.NoError(t, err)
		l, err = lightgbm.Decode(text)
		require.NoError(t, err)
		fromX, err := gbdt.FromXGBoost(x, gbdt.ImportOptions{VectorCol: "features"})
		require.NoError(t, err, o)
		fromL, err := gbdt.FromLightGBM(l, gbdt.ImportOptions{FeatureCols: []string{"a", "b", "c", "d"}})
		require.NoError(t, err, o)
		require.Len(t, fromL.Inputs(), 4)
		for _, one := range []*gbdt.Model{fromX, fromL} {
			require.Equal(t, o, one.Objective)
			require.Equal(t, m.CustomName, one.CustomName)
			require.Equal(t, m.Link, one.Link)
			require.Equal(t, m.Parameters, one.Parameters)
			require.Equal(t, m.Classes, one.Classes)
			require.Equal(t, m.Rounds(), one.Summary.Rounds)
		}
		for i := range 40 {
			row := rows.Row(i)
			want := m.Predict(row)
			require.InEpsilon(t, 1+want, 1+fromX.Predict(row), 1e-5, o)
			require.InDelta(t, want, fromL.Predict(row), 1e-12*max(1, math.Abs(want)), o)
			if len(m.Classes.Values) > 0 {
				a, b := make([]float64, len(m.Classes.Values)), make([]float64, len(m.Classes.Values))
				require.True(t, m.PredictProbability(row, a) && fromX.PredictProbability(row, b))
				require.InDeltaSlice(t, a, b, 1e-6)
			}
		}
		file, err := fromX.Encode()
		require.NoError(t, err)
		again, err := gbdt.Decode(file)
		require.NoError(t, err)
		require.Equal(t, fromX.Predict(rows.Row(3)), again.Predict(rows.Row(3)))
	}
}
