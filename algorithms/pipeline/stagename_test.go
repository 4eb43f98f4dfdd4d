package pipeline_test

import (
	"testing"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/pipeline"
	"github.com/superstep-ml/superstep/algorithms/prepare"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// TestFailuresNameTheStage requires that errors name the stage that failed. It lets every stage
// fail because of columns and because of rows, in training and in prediction.
func TestFailuresNameTheStage(t *testing.T) {
	age := func(v float64) *float64 { return &v }
	rows := func(ages ...*float64) func(b *engine.Builder) *engine.Dataset {
		return func(b *engine.Builder) *engine.Dataset {
			list := []person{{age(20), "Oslo"}, {age(30), "Bern"}, {age(40), "Oslo"}}
			for i, a := range ages {
				list[i].Age = a
			}
			return operators.FromSlice(b, list)
		}
	}
	of := func(stages ...model.Stage) pipeline.Pipeline { return pipeline.Pipeline{Stages: stages} }
	impute := prepare.Imputer{Columns: []string{"age"}}
	cities := prepare.OneHotEncoder{Columns: []string{"city"}}
	vector := prepare.VectorAssembler{Columns: []string{"age", "city"}}
	price := linear.Params{VectorCol: "features", LabelCol: "age"}
	for _, c := range []struct {
		p    pipeline.Pipeline
		rows func(b *engine.Builder) *engine.Dataset
		want []string
	}{
		{of(impute, cities), rows(nil, nil, nil), []string{"stage 0 (imputer): operator ", `column "age" has no value`}},
		{of(cities, vector, price), rows(nil), []string{"stage 1 (vector-assembler): operator ", `column "age"`}},
		{of(cities, prepare.VectorAssembler{Columns: []string{"city"}}, price), rows(nil), []string{"stage 2 (linear): operator ", `column "age"`, "null"}},
		{of(of(impute, cities), of(vector, linear.Params{VectorCol: "features", LabelCol: "wage"})), rows(), []string{
			`stage 1 (pipeline), stage 1 (linear): linear.Train: `, `"wage"`,
		}},
		{of(of(cities, prepare.StandardScaler{Columns: []string{"age"}}), vector), rows(nil, nil, nil), []string{
			"stage 0 (pipeline), stage 1 (standard-scaler): operator ", `column "age" has no value`,
		}},
	} {
		trial.Fails(t, func(b *engine.Builder) { engine.Collect(c.p.Fit(c.rows(b)), "model") }, c.want...)
	}

	known := of(impute, cities, vector)
	elsewhere := func(b *engine.Builder) *engine.Dataset {
		return operators.FromSlice(b, []person{{age(20), "Oslo"}, {age(50), "Rome"}})
	}
	unseen := []string{"stage 1 (one-hot-encoder): operator ", `column "city"`, "Rome"}
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(known.Apply(elsewhere(b), known.Fit(rows()(b))), "made")
	}, unseen...)
	m := trained(t, known)
	trial.Fails(t, func(b *engine.Builder) { engine.Collect(m.Transform(elsewhere(b)), "made") }, "stage 1 (one-hot-encoder): operator ", "Rome")
	trial.Fails(t, func(b *engine.Builder) { m.Transform(operators.Select(people(b), "age")) }, `stage 1 (one-hot-encoder): prepare.`, `"city"`)
}
