package catalog_test

import (
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/catalog"
	"github.com/superstep-ml/superstep/algorithms/fm"
	"github.com/superstep-ml/superstep/algorithms/forest"
	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/mlp"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/naivebayes"
	"github.com/superstep-ml/superstep/algorithms/svm"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

// table returns n rows of d positive features and two classes. change modifies the table.
func table(n, d int, change func(t *trial.Table)) trial.Table {
	t := trial.Gaussian(3, n, d)
	for i, x := range t.X {
		t.X[i] = math.Abs(x)
	}
	for i := range n {
		t.Label, t.Weight = append(t.Label, float64(i*i%3%2)), append(t.Weight, 1+float64(i%3))
	}
	change(&t)
	return t
}

// TestEveryEstimatorRefusesIndices requires errors for sparse rows whose indices do not ascend
// or are not below the size. The rows reach the estimator unchecked.
func TestEveryEstimatorRefusesIndices(t *testing.T) {
	for name, e := range estimators {
		t.Run(name, func(t *testing.T) {
			fails := func(change func(indices []int32), texts ...string) {
				rows := table(24, 4, func(t *trial.Table) { t.Sparse = true }).Record()
				view, ok := batch.SparseView(rows.Column(1).(*array.Struct))
				require.True(t, ok)
				change(view.Indices[4*17 : 4*18])
				if e.dense {
					texts = []string{`column "features" is sparse`}
				}
				trial.Fails(t, func(b *engine.Builder) {
					engine.Collect(e.stage("features").Fit(trial.Unchecked(b, rows)), "model")
				}, texts...)
			}
			const row = "row 17 of the shard: "
			fails(func(indices []int32) { indices[2] = 1 }, row, `column "features"`, "twice")
			fails(func(indices []int32) { indices[1], indices[2] = 2, 1 }, row, `column "features"`, "ascend")
			fails(func(indices []int32) { indices[3] = 4 }, row, `column "features"`, " 4")
			fails(func(indices []int32) { indices[0] = -1 }, row, `column "features"`, " -1")
		})
	}
}

// TestEveryPenaltyBelowZeroIsRefused requires errors for negative penalties. It leaves out
// penalties for which a negative value is documented to mean no penalty.
func TestEveryPenaltyBelowZeroIsRefused(t *testing.T) {
	for text, stage := range map[string]model.Stage{
		"linear.Train: L1 is -1":           linear.Params{LabelCol: "label", L1: -1},
		"linear.Train: L2 is -1":           linear.Ridge(-1, linear.Params{LabelCol: "label"}),
		"logistic.Train: L1 is -1":         logistic.Params{LabelCol: "label", L1: -1},
		"logistic.Train: L2 is -1":         logistic.Params{LabelCol: "label", L2: -1},
		"svm.TrainSVC: L1 is -1":           svm.LinearSVC{LabelCol: "label", L1: -1},
		"svm.TrainSVC: L2 is -1":           svm.LinearSVC{LabelCol: "label", L2: -1},
		"svm.TrainSVR: L1 is -1":           svm.LinearSVR{LabelCol: "label", L1: -1},
		"svm.TrainSVR: L2 is -1":           svm.LinearSVR{LabelCol: "label", L2: -1},
		"glm.Train: L1 is -1":              glm.Params{LabelCol: "label", L1: -1},
		"glm.Train: L2 is -1":              glm.Params{LabelCol: "label", L2: -1},
		"fm.Train: L2 is -1":               fm.Params{LabelCol: "label", L2: -1},
		"fm.Train: L2Factors is -1":        fm.Params{LabelCol: "label", L2Factors: -1},
		"mlp.Train: L2 is -1":              mlp.Params{LabelCol: "label", L2: -1},
		"naivebayes.Train: Smoothing is -": naivebayes.Params{LabelCol: "label", Smoothing: -1},
		"gbdt.Train: Alpha is -1":          gbdt.Params{LabelCol: "label", Alpha: -1},
		"gbdt.Train: MinSplitGain is -1":   gbdt.Params{LabelCol: "label", MinSplitGain: -1},
		"forest.Train: MinSplitGain is -1": forest.Params{LabelCol: "label", MinSplitGain: -1},
	} {
		trial.Fails(t, func(b *engine.Builder) {
			stage.Fit(table(4, 2, func(*trial.Table) {}).Dataset(b))
		}, text)
	}
}

// TestEveryEstimatorTrainsOnRowsThatTellLittle requires that estimators train on degenerate
// rows, and that the predictions are finite. The rows are degenerate because there are more
// features than rows, only one row of each class, or columns that are constant, collinear or 0
// in all rows.
func TestEveryEstimatorTrainsOnRowsThatTellLittle(t *testing.T) {
	rows := map[string]trial.Table{
		"more features than rows": table(5, 12, func(*trial.Table) {}),
		"two rows":                table(2, 3, func(*trial.Table) {}),
		"constant and collinear": table(24, 4, func(t *trial.Table) {
			for i := range t.N {
				x := t.Row(i)
				x[1], x[2] = 2*x[0], 7
			}
		}),
		"one column varies": table(24, 2, func(t *trial.Table) {
			for i := range t.N {
				t.Row(i)[1] = 0
			}
		}),
	}
	for name, e := range estimators {
		t.Run(name, func(t *testing.T) {
			for what, table := range rows {
				r := trial.Run(t, func(b *engine.Builder) {
					rows := table.Dataset(b)
					m := e.stage("features").Fit(rows)
					engine.Collect(m, "model")
					engine.Collect(e.stage("features").Apply(rows, m), "rows")
				})
				file, err := model.Encoded(r, "model")
				require.NoError(t, err, what)
				_, err = catalog.Decode(file)
				require.NoError(t, err, what)
				made, err := arrowbridge.Records(r, "rows")
				require.NoError(t, err)
				require.NotEmpty(t, made, what)
				for _, rec := range made {
					require.Greater(t, rec.NumCols(), int64(4), "the model adds columns to those of the table")
					for c := 4; c < int(rec.NumCols()); c++ {
						for i := range int(rec.NumRows()) {
							text := batch.FormatValue(rec.Column(c), i)
							require.NotRegexp(t, `NaN|Inf|^$`, text, "%s: column %s of row %d", what, rec.ColumnName(c), i)
						}
					}
				}
			}
		})
	}
}

// TestEveryEstimatorRefusesWhatExceedsFloat64 requires an error that names the column if values
// are so large that sums exceed float64. Trees accept such features, since trees use only the
// order of values.
func TestEveryEstimatorRefusesWhatExceedsFloat64(t *testing.T) {
	for name, e := range estimators {
		t.Run(name, func(t *testing.T) {
			fails := func(change func(t *trial.Table), texts ...string) {
				trial.Fails(t, func(b *engine.Builder) {
					engine.Collect(e.stage("features").Fit(table(24, 2, change).Dataset(b)), "model")
				}, texts...)
			}
			if !e.gaps {
				fails(func(t *trial.Table) { t.X[35] = 1e300 }, `column "features"`, "scale")
			}
			if !e.unlabelled && !e.classes && name != "naivebayes" {
				fails(func(t *trial.Table) { t.Label[17] = 1e300 }, `column "label"`, "scale them down")
			}
			fails(func(t *trial.Table) { t.Weight[4], t.Weight[17] = 1e308, 1e308 }, `column "weight"`)
		})
	}
}

// TestClassesThatNothingHoldsApart requires that training without a penalty reports divergence
// if a plane separates the classes, because the parameters then grow without bound.
func TestClassesThatNothingHoldsApart(t *testing.T) {
	apart := table(24, 2, func(t *trial.Table) {
		for i, y := range t.Label {
			t.Row(i)[0] = 3*y + 0.1*t.Row(i)[0]
		}
	})
	for name, stage := range map[string]model.Stage{
		"logistic": logistic.Params{LabelCol: "label"},
		"softmax":  logistic.Params{LabelCol: "label", Family: logistic.Multinomial},
		"glm":      glm.Params{LabelCol: "label", Family: glm.Binomial},
		"fm":       fm.Params{LabelCol: "label", Task: fm.Classification},
		"mlp":      mlp.Params{LabelCol: "label", Task: mlp.Classification, Hidden: []int{3}},
	} {
		t.Run(name, func(t *testing.T) {
			r := trial.Run(t, func(b *engine.Builder) {
				engine.Collect(stage.Fit(apart.Dataset(b)), "model")
			})
			file, err := model.Encoded(r, "model")
			require.NoError(t, err)
			require.Contains(t, string(file), `"reason":"diverging"`)
			require.Contains(t, r.Summary(), "warnings: training diverges, no optimum: 1")
		})
	}
}
