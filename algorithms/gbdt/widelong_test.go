//go:build !race

// These tests train on many rows, which takes too long under the race detector. Other tests run
// the same code under it.

package gbdt_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// TestManyCategories requires that a model distinguishes hundreds of categories, as text and as
// codes. The metric on an evaluation set, which is computed from bins, must equal the metric of
// predictions, which are computed from values. Categories that training has not seen must be
// treated like missing values.
func TestManyCategories(t *testing.T) {
	rows, held := citizens(1, 3000, 400), citizens(2, 500, 400)
	for _, feature := range []string{"city", "code"} {
		p := gbdt.Params{FeatureCols: []string{feature, "age"}, LabelCol: "label", NumTrees: 40, LearningRate: 0.3, MaxBins: 16, CategoryLambda: -1, CategorySmooth: 1}
		if feature == "code" {
			p.CategoricalCols = []string{"code"}
		}
		build := func(b *engine.Builder) *engine.Dataset {
			return gbdt.Train(operators.FromSlice(b, rows), p, gbdt.Set{Name: "test", Rows: operators.FromSlice(b, held)})
		}
		m := run(t, build, engine.Parallelism(2))
		var squares float64
		for _, c := range held {
			x := []float64{float64(c.Code), c.Age}
			if feature == "city" {
				x[0] = m.Code(0, c.City)
			}
			e := m.Predict(x) - c.Label
			squares += e * e
		}
		rmse := math.Sqrt(squares / float64(len(held)))
		require.InDelta(t, rmse, last(m, 1, 0), 1e-9)
		require.Less(t, rmse, 0.25, "the model must explain most of the labels' standard deviation, which is 0.9")
		require.Equal(t, m.Predict([]float64{math.NaN(), 30}), m.Predict([]float64{65535, 30}))
		require.Equal(t, m.Predict([]float64{math.NaN(), 30}), m.Predict([]float64{-1, 30}))
		if feature == "code" {
			p.NumTrees = 6
			trial.SameBits(t, func(b *engine.Builder) { engine.Collect(build(b), "model") }, gbdt.Kind)
		}
	}
}

// TestCategoriesOfNoise requires that uninformative categories, dozens or thousands of them,
// hardly raise the loss on other rows.
func TestCategoriesOfNoise(t *testing.T) {
	const n = 4000
	for _, cities := range []int{40, 400, 4000} {
		for _, o := range []gbdt.Objective{gbdt.Squared, gbdt.Logistic} {
			draw := func(seed uint64) []citizen {
				r := sharding.NewRandom(seed, "noise", 0, 0)
				rows := make([]citizen, n)
				for i := range rows {
					rows[i] = citizen{Code: int64(r.Float64() * float64(cities)), Age: math.Floor(8 * r.Float64())}
					rows[i].Label = rows[i].Age/8 + r.NormFloat64()
					if o == gbdt.Logistic {
						rows[i].Label = math.Floor(r.Float64() + rows[i].Age/8)
					}
				}
				return rows
			}
			p := gbdt.Params{FeatureCols: []string{"age"}, LabelCol: "label", NumTrees: 30, MaxDepth: 4, Objective: o}
			loss := func() float64 {
				build := func(b *engine.Builder) *engine.Dataset {
					return gbdt.Train(operators.FromSlice(b, draw(1)), p, gbdt.Set{Name: "test", Rows: operators.FromSlice(b, draw(2))})
				}
				return last(run(t, build), 1, 0)
			}
			without := loss()
			p.FeatureCols, p.CategoricalCols = []string{"code", "age"}, []string{"code"}
			require.Less(t, loss(), without*1.004, "%d uninformative categories must hardly raise the loss of %v", cities, o)
		}
	}
}
