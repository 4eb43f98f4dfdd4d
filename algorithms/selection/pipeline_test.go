package selection_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/algorithms/selection"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// TestCrossValidationOfPipelines requires that pipelines can be candidates, and that the model
// of the best pipeline can be applied in the same job.
func TestCrossValidationOfPipelines(t *testing.T) {
	rows := iris(t)
	stageOf := func(p logistic.Params) model.Stage {
		return pipeline.Pipeline{Stages: []model.Stage{prepare.VectorAssembler{Columns: []string{"x"}, Output: "scaled"}, p}}
	}
	candidates := selection.Grid(logistic.Params{VectorCol: "scaled", LabelCol: "species"}, stageOf,
		selection.Over("l2", func(p *logistic.Params, v float64) { p.L2 = v }, 100, 0.01))
	classes := []string{"Iris-setosa", "Iris-versicolor", "Iris-virginica"}
	cols := evaluate.MulticlassOptions{LabelCol: "species", PredictionCol: "prediction", ProbabilityCols: []string{"probability"}, Classes: classes}
	build := func(b *engine.Builder) {
		d := operators.FromSlice(b, rows)
		found := selection.CrossValidate(d, candidates, selection.Options{
			K: 3, Stratify: "species", Refit: true, Metrics: selection.Multiclass(cols, "log_loss", "accuracy"),
		})
		engine.Collect(found.Scores, "scores")
		engine.Collect(evaluate.Multiclass(candidates[0].Stage.Apply(d, found.Best), cols), "report")
	}
	r := trial.Run(t, build)
	table := tableOf(t, r)
	require.Equal(t, "l2=0.01", table.Best().Candidate)
	report, err := evaluate.ReportOf[evaluate.MulticlassReport](r, "report")
	require.NoError(t, err)
	require.Greater(t, report.Accuracy, 0.94)
	require.Equal(t, classes, report.Classes)
	require.Less(t, report.LogLoss, table.Scores[0].Mean)
}
