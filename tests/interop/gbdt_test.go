package interop

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// trip is a row of training data, with a label for each kind of objective.
type trip struct {
	Km, Hour    float64
	Kind        *int64
	Real, Above float64
	Count, Rank int64
	Bit         bool
	Class       int64
	Query       int64
}

func trips() []trip {
	var made []trip
	for i := range 240 {
		kind := int64(i * 7 % 11)
		r := trip{Km: float64(i%23) / 2, Hour: float64(i%24) - 12, Query: int64(i / 12)}
		r.Real = r.Km*float64(1+kind%4)/4 + math.Sin(r.Hour) + 2
		r.Above, r.Count, r.Rank = r.Real+float64(i%3), int64(r.Real), min(4, int64(r.Real/2))
		r.Bit, r.Class = r.Real > 5, int64(r.Real)%3
		if r.Kind = &kind; i%13 == 0 {
			r.Kind = nil
		}
		if i%9 == 0 {
			r.Km = math.NaN()
		}
		made = append(made, r)
	}
	return made
}

// TestTrainedHere requires that boosted trees trained by this module, with every objective,
// give the same predictions in XGBoost and LightGBM.
func TestTrainedHere(t *testing.T) {
	params := []gbdt.Params{
		{Objective: gbdt.Squared, LabelCol: "real"},
		{Objective: gbdt.Absolute, LabelCol: "real"},
		{Objective: gbdt.Huber, LabelCol: "real"},
		{Objective: gbdt.Quantile, LabelCol: "real", QuantileAt: 0.7},
		{Objective: gbdt.Logistic, LabelCol: "bit"},
		{Objective: gbdt.Softmax, LabelCol: "class"},
		{Objective: gbdt.Poisson, LabelCol: "count"},
		{Objective: gbdt.Gamma, LabelCol: "real"},
		{Objective: gbdt.Tweedie, LabelCol: "real"},
		{Objective: gbdt.AFT, LabelCol: "real", LabelUpperCol: "above"},
		{Objective: gbdt.LambdaMART, LabelCol: "rank", GroupCol: "query"},
	}
	name := func(i int) string { return fmt.Sprint(params[i].Objective) }
	job := engine.Define("trips", func(b *engine.Builder, _ struct{}) error {
		rows := operators.FromSlice(b, trips())
		for i, p := range params {
			p.FeatureCols, p.CategoricalCols = []string{"km", "hour", "kind"}, []string{"kind"}
			p.NumTrees, p.MaxDepth, p.MaxOneHot = 8, 4, 2
			engine.Collect(gbdt.Train(rows, p), name(i))
		}
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{})
	require.NoError(t, err)
	defer result.Release()
	var rows [][]float64
	for _, r := range trips() {
		kind := math.NaN()
		if r.Kind != nil {
			kind = float64(*r.Kind)
		}
		rows = append(rows, []float64{float64(float32(r.Km)), r.Hour, kind})
	}
	dir := t.TempDir()
	var x, l []task
	var want [][]float64
	for i := range params {
		m, err := gbdt.ModelOf(result, name(i))
		require.NoError(t, err)
		var all []float64
		for _, row := range rows {
			made := make([]float64, m.Ensemble.Outputs)
			require.True(t, m.Margins(row, made))
			all = append(all, made...)
		}
		want = append(want, all)
		there, err := m.XGBoost()
		require.NoError(t, err, name(i))
		k := task{Library: "xgboost", Do: "predict", Model: filepath.Join(dir, name(i)+".json"), Rows: cells(rows),
			Names: m.Ensemble.Features, Types: []string{"float", "float", "c"}}
		require.NoError(t, there.Save(k.Model))
		x = append(x, k)
		light, err := m.LightGBM()
		require.NoError(t, err, name(i))
		k = task{Library: "lightgbm", Do: "predict", Model: filepath.Join(dir, name(i)+".txt"), Rows: cells(rows)}
		require.NoError(t, light.Save(k.Model))
		l = append(l, k)
	}
	for _, python := range pythons(t, "xgboost") {
		for i, a := range work(t, python, x) {
			if a.Error != "" && name(i) == "quantile" {
				continue // only XGBoost 2.0 and later have this objective
			}
			require.Empty(t, a.Error, x[i].Model)
			requireNear(t, want[i], a.Margin, 1e-6, a.Version+" "+x[i].Model)
		}
	}
	for _, python := range pythons(t, "lightgbm") {
		for i, a := range work(t, python, l) {
			require.Empty(t, a.Error, l[i].Model)
			requireNear(t, want[i], a.Margin, 1e-12, a.Version+" "+l[i].Model)
		}
	}
}
