package selection_test

import (
	"math"
	"testing"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/algorithms/selection"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// TestFailuresNameTheCandidate requires that the message about a failure in training, applying
// or measuring a candidate names its parameters in the grid, the fold, and the stage of a
// pipeline.
func TestFailuresNameTheCandidate(t *testing.T) {
	type row struct {
		ID      int64
		Y, A, B float64
	}
	rows := make([]row, 40)
	for i := range rows {
		rows[i] = row{int64(i), float64(i), float64(i % 7), float64(i % 5)}
	}
	rows[17].B = math.NaN()
	options := selection.Options{K: 4, Seed: 1, Metrics: selection.Regression(regressionCols, "mae")}
	params := linear.Params{LabelCol: "y"}
	columns := selection.Over("columns", func(p *linear.Params, names []string) { p.FeatureCols = names }, []string{"a"}, []string{"a", "b"})
	plain := selection.Grid(params, func(p linear.Params) model.Stage { return p }, columns)
	chained := selection.Grid(params, func(p linear.Params) model.Stage {
		return pipeline.Pipeline{Stages: []model.Stage{prepare.StandardScaler{Columns: []string{"a"}}, p}}
	}, columns)
	of := func(d func(b *engine.Builder) *engine.Dataset, list []selection.Candidate, o selection.Options) func(b *engine.Builder) {
		return func(b *engine.Builder) { engine.Collect(selection.CrossValidate(d(b), list, o).Scores, "scores") }
	}
	from := func(b *engine.Builder) *engine.Dataset { return operators.FromSlice(b, rows) }
	trial.Fails(t, of(from, plain, options), `candidate "columns=[a b]", fold `, ": operator ", `"b"`, "NaN")
	trial.Fails(t, of(from, chained, options), `candidate "columns=[a b]", fold `, ", stage 1 (linear): operator ", `"b"`, "NaN")
	// If a column is missing, building the job must fail.
	missing := selection.Grid(params, func(p linear.Params) model.Stage { return p },
		selection.Over("columns", func(p *linear.Params, names []string) { p.FeatureCols = names }, []string{"a"}, []string{"c"}))
	trial.Fails(t, of(from, missing, options), `candidate "columns=[c]", fold 0: linear.Train: `, `"c"`)

	// With random folds, the bad row is in all training sets except one. The folds given here
	// have it only in the training rows of fold 1.
	folds := func(b *engine.Builder) []selection.Fold {
		good := operators.FromSlice(b, rows[:15])
		return []selection.Fold{{Train: good, Test: good}, {Train: from(b), Test: good}}
	}
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(selection.CrossValidate(from(b), plain[1:], selection.Options{Folds: folds(b), Metrics: options.Metrics}).Scores, "scores")
	}, `candidate "columns=[a b]", fold 1: operator `)
	trial.Fails(t, func(b *engine.Builder) {
		found := selection.CrossValidate(from(b), plain[1:], selection.Options{Folds: folds(b)[:1], Metrics: options.Metrics, Refit: true})
		engine.Collect(found.Best, "best")
	}, `candidate "columns=[a b]", all rows: operator `)
	// Here, the bad row is in the held-out rows of fold 0, so that prediction fails.
	trial.Fails(t, func(b *engine.Builder) {
		good := operators.FromSlice(b, rows[:15])
		engine.Collect(selection.CrossValidate(from(b), plain[1:], selection.Options{
			Folds: []selection.Fold{{Train: good, Test: from(b)}}, Metrics: options.Metrics,
		}).Scores, "scores")
	}, `candidate "columns=[a b]", fold 0: operator LinearPredict`)
}
