package gbdt_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/interchange/onnx"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// TestTextMissingInEveryRow requires that a text column that is null in every training row is
// still a text column. In predictions any text in it must be treated as missing, also after the
// model was saved and loaded.
func TestTextMissingInEveryRow(t *testing.T) {
	type row struct {
		Word     *string
		X, Label float64
	}
	var rows, asked []row
	for i := range 40 {
		word := "w" + string(rune('a'+i%3))
		rows = append(rows, row{nil, float64(i), float64(i % 20)})
		asked = append(asked, row{&word, float64(i), 0})
	}
	m := trainRows(t, rows, gbdt.Params{FeatureCols: []string{"word", "x"}, LabelCol: "label", NumTrees: 5})
	file, err := m.Encode()
	require.NoError(t, err)
	read, err := gbdt.Decode(file)
	require.NoError(t, err)
	again, err := read.Encode()
	require.NoError(t, err)
	require.Equal(t, string(file), string(again))
	r := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(gbdt.Predict(operators.FromSlice(b, asked), read.Dataset(b), gbdt.PredictOptions{}), "rows")
	})
	got, err := engine.Rows[struct{ Prediction float64 }](r, "rows")
	require.NoError(t, err)
	require.Len(t, got, len(asked))
	for i := range got {
		require.Equal(t, m.Predict([]float64{math.NaN(), asked[i].X}), got[i].Prediction)
	}
	require.True(t, math.IsNaN(read.Code(0, "wa")))

	x, err := m.XGBoost()
	require.NoError(t, err)
	back, err := gbdt.FromXGBoost(x, gbdt.ImportOptions{})
	require.NoError(t, err)
	require.NotNil(t, back.Ensemble.Categories[0])
	l, err := m.LightGBM()
	require.NoError(t, err)
	back, err = gbdt.FromLightGBM(l, gbdt.ImportOptions{})
	require.NoError(t, err)
	require.NotNil(t, back.Ensemble.Categories[0])
	data, err := onnx.Export(m)
	require.NoError(t, err)
	_, err = onnx.Import(data)
	require.NoError(t, err)

	// A model that continues this model learns the categories in the new rows.
	p := gbdt.Params{FeatureCols: []string{"word", "x"}, LabelCol: "label", NumTrees: 5, Start: read}
	m = trainRows(t, append(asked, rows...), p)
	require.Equal(t, []string{"wa", "wb", "wc"}, m.Ensemble.Categories[0])
}
