package interop

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/interchange/onnx"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// ride is a row of training data.
type ride struct {
	Km    float64
	Hour  float64
	Car   string
	Price float64
	Good  string
}

func rides() []ride {
	var made []ride
	cars := []string{"taxi", "bus", "tram", "bike"}
	for i := range 200 {
		r := ride{Km: float64(i%23) / 2, Hour: float64(i % 24), Car: cars[i%7%4]}
		r.Price = r.Km*float64(1+i%7%4) + math.Sin(r.Hour)
		r.Good = "yes"
		if r.Price > 8 {
			r.Good = "no"
		}
		if i%9 == 0 {
			r.Km = math.NaN()
		}
		made = append(made, r)
	}
	return made
}

// TestONNXRuntimeReadsOurs requires that boosted trees and forests trained by this module give
// the same predictions in onnxruntime.
func TestONNXRuntimeReadsOurs(t *testing.T) {
	found := pythons(t, "onnxruntime")
	features := []string{"km", "hour", "car"}
	job := engine.Define("rides", func(b *engine.Builder, _ struct{}) error {
		rows := operators.FromSlice(b, rides())
		engine.Collect(gbdt.Train(rows, gbdt.Params{FeatureCols: features, LabelCol: "price", NumTrees: 20}), "price")
		engine.Collect(gbdt.Train(rows, gbdt.Params{FeatureCols: features, LabelCol: "good", Objective: gbdt.Logistic, NumTrees: 20}), "good")
		engine.Collect(forest.Train(rows, forest.Params{FeatureCols: features, LabelCol: "good", Task: forest.Classification, NumTrees: 10}), "forest")
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{})
	require.NoError(t, err)
	defer result.Release()
	price, err := gbdt.ModelOf(result, "price")
	require.NoError(t, err)
	good, err := gbdt.ModelOf(result, "good")
	require.NoError(t, err)
	grown, err := forest.ModelOf(result, "forest")
	require.NoError(t, err)

	columns := map[string][]any{}
	var numbers, probabilities, shares []float64
	for _, r := range rides() {
		km := any(r.Km)
		if r.Km != r.Km {
			km = nil
		}
		columns["km"], columns["hour"], columns["car"] = append(columns["km"], km), append(columns["hour"], r.Hour), append(columns["car"], r.Car)
		row := []float64{r.Km, r.Hour, price.Code(2, r.Car)}
		numbers = append(numbers, price.Predict(row))
		p := make([]float64, 2)
		require.True(t, good.PredictProbability(row, p))
		probabilities = append(probabilities, p...)
		require.True(t, grown.PredictProbability(row, p))
		shares = append(shares, p...)
	}
	dir := t.TempDir()
	var tasks []task
	var of [][]float64
	add := func(m model.Model, name string, want []float64) {
		for form, write := range map[string]func(model.Model) ([]byte, error){"double": onnx.Export, "single": onnx.ExportSingle} {
			data, err := write(m)
			require.NoError(t, err)
			path := filepath.Join(dir, fileName(name, form)+".onnx")
			require.NoError(t, os.WriteFile(path, data, 0o600))
			tasks, of = append(tasks, task{Library: "onnx", Model: path, Columns: columns}), append(of, want)
		}
	}
	add(price, "price", numbers)
	add(good, "good", probabilities)
	add(grown, "forest", shares)
	for _, python := range found {
		for i, a := range work(t, python, tasks) {
			what := a.Version + " " + tasks[i].Model
			require.Empty(t, a.Error, what)
			if len(a.Margin) == 0 {
				requireNear(t, of[i], a.Prediction, 1e-6, what)
				continue
			}
			requireNear(t, of[i], a.Margin, 1e-6, what)
			for r, text := range a.Texts {
				if p := of[i][2*r : 2*r+2]; math.Abs(p[0]-p[1]) > 1e-5 {
					require.Equal(t, []string{"no", "yes"}[slices.Index(p, slices.Max(p))], text, "%s row %d", what, r)
				}
			}
		}
	}
}
