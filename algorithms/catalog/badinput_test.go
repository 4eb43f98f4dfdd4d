package catalog_test

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/catalog"
	"github.com/superstep-ml/superstep/algorithms/fm"
	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/gmm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/mlp"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/naivebayes"
	"github.com/superstep-ml/superstep/algorithms/svm"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// observation is the type of the rows on which the tests train estimators.
type observation struct {
	X      []float64 `column:"x,dim=2"`
	Ragged []float64 `column:"ragged"`
	Label  *float64  `column:"label"`
	Weight *float64  `column:"weight"`
	Text   string    `column:"text"`
}

func of(v float64) *float64 { return &v }

// observations returns 24 rows of two classes. change modifies row 17.
func observations(change func(o *observation)) []observation {
	rows := make([]observation, 24)
	for i := range rows {
		f := float64(i)
		x := []float64{1 + math.Abs(math.Sin(f)), 1 + float64(i%5)}
		rows[i] = observation{X: x, Ragged: x[:2:2], Label: of(float64(i * i % 3 % 2)), Weight: of(1 + float64(i%3)), Text: "a"}
	}
	change(&rows[17])
	return rows
}

// estimator has a stage that trains a model, and those of its properties on which the tests
// depend.
type estimator struct {
	stage func(vector string) model.Stage
	// unlabelled says that the stage reads no labels, classes that it needs at least two
	// different labels, gaps that it accepts NaN as a missing value, and dense that it refuses
	// sparse vectors.
	unlabelled, classes, gaps, dense bool
}

var estimators = map[string]estimator{
	"linear": {stage: func(v string) model.Stage {
		return linear.Params{VectorCol: v, LabelCol: "label", WeightCol: "weight"}
	}},
	"lasso": {stage: func(v string) model.Stage {
		return linear.Lasso(0.1, linear.Params{VectorCol: v, LabelCol: "label", WeightCol: "weight"})
	}},
	"glm": {stage: func(v string) model.Stage {
		return glm.Params{VectorCol: v, LabelCol: "label", WeightCol: "weight", Family: glm.Poisson}
	}},
	"logistic": {classes: true, stage: func(v string) model.Stage {
		return logistic.Params{VectorCol: v, LabelCol: "label", WeightCol: "weight", L2: 0.1}
	}},
	"svc": {classes: true, stage: func(v string) model.Stage {
		return svm.LinearSVC{VectorCol: v, LabelCol: "label", WeightCol: "weight"}
	}},
	"svr": {stage: func(v string) model.Stage {
		return svm.LinearSVR{VectorCol: v, LabelCol: "label", WeightCol: "weight"}
	}},
	"fm": {stage: func(v string) model.Stage {
		return fm.Params{VectorCol: v, LabelCol: "label", WeightCol: "weight", MaxIter: 3}
	}},
	"mlp": {stage: func(v string) model.Stage {
		return mlp.Params{VectorCol: v, LabelCol: "label", WeightCol: "weight", MaxIter: 3, Hidden: []int{3}}
	}},
	"naivebayes": {stage: func(v string) model.Stage {
		return naivebayes.Params{VectorCol: v, LabelCol: "label", WeightCol: "weight"}
	}},
	"gbdt": {gaps: true, stage: func(v string) model.Stage {
		return gbdt.Params{VectorCol: v, LabelCol: "label", WeightCol: "weight", NumTrees: 2}
	}},
	"forest": {gaps: true, stage: func(v string) model.Stage {
		return forest.Params{VectorCol: v, LabelCol: "label", WeightCol: "weight", NumTrees: 2}
	}},
	"gmm": {unlabelled: true, dense: true, stage: func(v string) model.Stage {
		return gmm.Params{VectorCol: v, WeightCol: "weight", K: 2}
	}},
	"kmeans": {unlabelled: true, stage: func(v string) model.Stage {
		return kmeans.Params{VectorCol: v, WeightCol: "weight", K: 2}
	}},
}

// TestEveryEstimatorRefusesBadRows requires that every estimator refuses unusable rows with an
// error that names the row and the column. Models must refuse rows without their columns, and
// decoding must refuse damaged models.
func TestEveryEstimatorRefusesBadRows(t *testing.T) {
	all := func(change func(o *observation)) []observation {
		rows := observations(func(*observation) {})
		for i := range rows {
			change(&rows[i])
		}
		return rows
	}
	good := all(func(*observation) {})
	for name, e := range estimators {
		t.Run(name, func(t *testing.T) {
			fails := func(vector string, rows []observation, texts ...string) {
				trial.Fails(t, func(b *engine.Builder) {
					engine.Collect(e.stage(vector).Fit(operators.FromSlice(b, rows)), "model")
				}, texts...)
			}
			const row = "row 2 of the shard: "
			if !e.gaps {
				fails("x", observations(func(o *observation) { o.X[1] = math.NaN() }), row, `column "x"`, "component 1 is NaN")
				fails("x", observations(func(o *observation) { o.X[0] = math.Inf(-1) }), row, `column "x"`, "component 0 is -Inf")
			}
			if !e.unlabelled {
				fails("x", observations(func(o *observation) { o.Label = nil }), row, `column "label"`, "null")
				fails("x", observations(func(o *observation) { o.Label = of(math.Inf(1)) }), row, `column "label"`, "+Inf")
			}
			if e.classes {
				fails("x", all(func(o *observation) { o.Label = of(1) }), `every label in column "label" is "1": a classifier needs two classes or more`)
			}
			fails("ragged", observations(func(o *observation) { o.Ragged = []float64{1} }), row, "has 1 components")
			fails("x", observations(func(o *observation) { o.Weight = of(-1) }), row, `column "weight"`, "-1")
			fails("x", observations(func(o *observation) { o.Weight = nil }), row, `column "weight"`, "null")
			fails("x", all(func(o *observation) { o.Weight = of(0) }), `every weight in column "weight" is 0`)
			fails("x", nil, "no rows")
			fails("y", good, `"y"`)

			// The model is applied to rows that have no column x, or have text in it.
			r := trial.Run(t, func(b *engine.Builder) {
				engine.Collect(e.stage("x").Fit(operators.FromSlice(b, good)), "model")
			})
			file, err := model.Encoded(r, "model")
			require.NoError(t, err)
			m, err := catalog.Decode(file)
			require.NoError(t, err)
			apply := func(change func(d *engine.Dataset) *engine.Dataset, texts ...string) {
				trial.Fails(t, func(b *engine.Builder) {
					engine.Collect(m.Transform(change(operators.FromSlice(b, good))), "made")
				}, texts...)
			}
			apply(func(d *engine.Dataset) *engine.Dataset { return operators.Select(d, "label", "weight") }, `"x"`)
			apply(func(d *engine.Dataset) *engine.Dataset {
				return operators.Rename(operators.Select(d, "text"), "text", "x")
			}, `column "x"`)
			// Decode must refuse a file that is truncated, of a newer version, or altered.
			_, err = catalog.Decode(file[:len(file)/2])
			require.Error(t, err)
			_, err = catalog.Decode(bytes.Replace(file, []byte(`"version":`), []byte(`"version":9`), 1))
			require.ErrorContains(t, err, "version")
			_, err = catalog.Decode(bytes.Replace(file, []byte(`"column":"x"`), []byte(`"column":"z"`), 1))
			require.ErrorContains(t, err, "checksum")
		})
	}
}

// TestEveryClassifierRefusesOneClass requires an error if all labels are equal. The message
// must name the column and its only value.
func TestEveryClassifierRefusesOneClass(t *testing.T) {
	one := observations(func(*observation) {})
	for i := range one {
		one[i].Label = of(3)
	}
	for name, stage := range map[string]model.Stage{
		"logistic":    logistic.Params{VectorCol: "x", LabelCol: "label"},
		"multinomial": logistic.Params{VectorCol: "x", LabelCol: "label", Family: logistic.Multinomial},
		"svc":         svm.LinearSVC{VectorCol: "x", LabelCol: "label"},
		"naivebayes":  naivebayes.Params{VectorCol: "x", LabelCol: "label"},
		"bernoulli":   naivebayes.Params{VectorCol: "x", LabelCol: "label", Family: naivebayes.Bernoulli},
		"gbdt":        gbdt.Params{VectorCol: "x", LabelCol: "label", Objective: gbdt.Logistic, NumTrees: 1},
		"softmax":     gbdt.Params{VectorCol: "x", LabelCol: "label", Objective: gbdt.Softmax, NumTrees: 1},
		"forest":      forest.Params{VectorCol: "x", LabelCol: "label", Task: forest.Classification, NumTrees: 1},
		"extra trees": forest.Params{VectorCol: "x", LabelCol: "label", Task: forest.Classification, NumTrees: 1, Method: forest.ExtraTrees},
		"tree":        forest.Params{VectorCol: "x", LabelCol: "label", Task: forest.Classification, Method: forest.SingleTree},
		"fm":          fm.Params{VectorCol: "x", LabelCol: "label", Task: fm.Classification},
		"mlp":         mlp.Params{VectorCol: "x", LabelCol: "label", Task: mlp.Classification},
	} {
		t.Run(name, func(t *testing.T) {
			trial.Fails(t, func(b *engine.Builder) {
				engine.Collect(stage.Fit(operators.FromSlice(b, one)), "model")
			}, `every label in column "label" is "3": a classifier needs two classes or more`)
		})
	}
}
