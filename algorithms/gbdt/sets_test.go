package gbdt_test

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
)

// TestSetsThatSkip requires that rows of an evaluation set without a label are left out if
// Set.Skip is true, and that the metric is that of the remaining rows. A label outside the
// domain must still be an error.
func TestSetsThatSkip(t *testing.T) {
	table := labelled(made(17, 80, 3), math.Abs)
	p := gbdt.Params{LabelCol: "label", Objective: gbdt.Poisson, NumTrees: 2, Metrics: []string{"rmse"}}
	measured := func(set trial.Table, skip bool) float64 {
		m := run(t, func(b *engine.Builder) *engine.Dataset {
			return gbdt.Train(part(table, 0, 60).Dataset(b), p, gbdt.Set{Name: "test", Rows: set.Dataset(b), Skip: skip})
		})
		return last(m, 1, 0)
	}
	some := part(table, 60, 80)
	some.Label = slices.Clone(some.Label)
	some.Label[19] = math.NaN()
	require.Equal(t, measured(part(table, 60, 79), false), measured(some, true))
	fail := func(skip bool, texts ...string) {
		trial.Fails(t, func(b *engine.Builder) {
			engine.Collect(gbdt.Train(part(table, 0, 60).Dataset(b), p, gbdt.Set{Name: "test", Rows: some.Dataset(b), Skip: skip}), "model")
		}, texts...)
	}
	fail(false, `column "label": the label is NaN`)
	some.Label[3] = -2
	fail(true, `column "label": the label is -2: want a number of 0 or more`)
}
