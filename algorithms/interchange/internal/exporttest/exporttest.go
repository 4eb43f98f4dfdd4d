// Package exporttest has the models and rows with which tests compare exported models with the
// original ones.
package exporttest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/algorithms/svm"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// Train trains stages on the rows of passengers.
func Train(t testing.TB, stages ...model.Stage) *pipeline.Model {
	r := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(pipeline.Pipeline{Stages: stages}.Fit(operators.FromSlice(b, trial.Passengers(120))), "model")
	})
	m, err := pipeline.ModelOf(r, "model")
	require.NoError(t, err)
	return m
}

// Features returns stages that replace missing numbers and assemble the numbers as features,
// followed by more.
func Features(more ...model.Stage) []model.Stage {
	return append([]model.Stage{
		prepare.Imputer{Columns: []string{"age"}, Strategy: prepare.Median},
		prepare.StandardScaler{Columns: []string{"age", "fare"}},
		prepare.VectorAssembler{Columns: []string{"age", "fare", "deck", "alone"}},
	}, more...)
}

// Lone returns models that are not in a pipeline, trained on the rows of passengers.
func Lone(t testing.TB) map[string]model.Model {
	stages := map[string]model.Stage{
		"svc-two":      svm.LinearSVC{FeatureCols: []string{"fare", "alone"}, LabelCol: "lived", L2: 0.1},
		"svc-three":    svm.LinearSVC{FeatureCols: []string{"fare", "alone"}, LabelCol: "class", L2: 0.01, Squared: true},
		"svr":          svm.LinearSVR{FeatureCols: []string{"fare", "alone"}, LabelCol: "price", L2: 0.1},
		"glm-identity": glm.Params{FeatureCols: []string{"deck", "alone"}, LabelCol: "price"},
		"glm-log":      glm.Params{FeatureCols: []string{"deck", "alone"}, LabelCol: "fare", Family: glm.Poisson, OffsetCol: "degree"},
		"glm-tweedie":  glm.Params{FeatureCols: []string{"deck", "alone"}, LabelCol: "fare", Family: glm.Tweedie, Power: 1.5},
		"glm-logit":    glm.Params{FeatureCols: []string{"deck", "alone"}, LabelCol: "lived", Family: glm.Binomial},
		"glm-inverse":  glm.Params{FeatureCols: []string{"deck", "alone"}, LabelCol: "fare", Family: glm.Gamma, Link: glm.Inverse},
	}
	r := trial.Run(t, func(b *engine.Builder) {
		rows := operators.FromSlice(b, trial.Passengers(120))
		for _, name := range slices.Sorted(maps.Keys(stages)) {
			engine.Collect(stages[name].Fit(rows), name)
		}
	})
	all := map[string]model.Model{}
	for name := range stages {
		var err error
		switch kind, _, _ := strings.Cut(name, "-"); kind {
		case "svc":
			all[name], err = svm.SVCModelOf(r, name)
		case "svr":
			all[name], err = svm.SVRModelOf(r, name)
		default:
			all[name], err = glm.ModelOf(r, name)
		}
		require.NoError(t, err)
	}
	return all
}

// Rows returns the rows to which models are applied. They include values that did not occur in
// training, among them the given fare.
func Rows(fare float64) []map[string]any {
	var rows []map[string]any
	for _, p := range trial.Passengers(12) {
		rows = append(rows, p.Cells())
	}
	odd := trial.Passengers(13)[12].Cells()
	odd["sex"], odd["deck"], odd["fare"] = "other", int64(99), fare
	edge := trial.Passengers(1)[0].Cells()
	edge["age"], edge["fare"] = 20.0, 40.0 // values at the bounds of buckets
	return append(rows, odd, edge)
}

// Set sets a cell to a value of a row that Rows returned.
func Set(c *model.Cell, v any) {
	switch v := v.(type) {
	case nil:
		c.SetNull()
	case string:
		c.SetText(v)
	case float64:
		c.SetFloat(v)
	case int64:
		c.SetInt(v)
	case bool:
		c.SetBool(v)
	case []float64:
		c.SetDense(v)
	}
}
