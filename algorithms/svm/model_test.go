package svm_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/svm"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

var (
	_ model.Binder = (*svm.SVCModel)(nil)
	_ model.Binder = (*svm.SVRModel)(nil)
	_ model.Stage  = svm.LinearSVC{}
	_ model.Stage  = svm.LinearSVR{}
)

// TestOperatorRowsAndCellsHaveTheSameBits requires the same bits of predictions from the
// operator, from the in-process methods for dense and for sparse rows, and from the step that
// pipelines run. The methods and the step must allocate nothing.
func TestOperatorRowsAndCellsHaveTheSameBits(t *testing.T) {
	for _, table := range []trial.Table{trial.Heart(t), trial.Iris(t)} {
		m := classify(t, table, svm.LinearSVC{})
		for _, sparse := range []bool{false, true} {
			table.Sparse = sparse
			r := trial.Run(t, func(b *engine.Builder) {
				engine.Collect(svm.PredictSVC(table.Dataset(b), m.Dataset(b), svm.PredictOptions{}), "predictions")
			}, engine.BatchRows(7))
			type row struct {
				Decision []float64 `column:"decision"`
			}
			rows, err := engine.Rows[row](r, "predictions")
			require.NoError(t, err)
			require.Len(t, rows, table.N)
			layout := model.NewLayout("features")
			step, err := m.Bind(layout)
			require.NoError(t, err)
			cells := layout.NewRow()
			want, got := make([]float64, m.Margins()), make([]float64, m.Margins())
			for i := range table.N {
				x := table.Row(i)
				require.True(t, m.Decision(x, want))
				indices, values := trial.Sparse(x)
				require.True(t, m.DecisionSparse(indices, values, got))
				require.Equal(t, want, got)
				require.Equal(t, want, rows[i].Decision)
				require.Equal(t, m.Predict(x), m.PredictSparse(indices, values))
				if sparse {
					cells[0].SetSparse(table.D, indices, values)
				} else {
					cells[0].SetDense(x)
				}
				require.NoError(t, step(cells))
				require.Equal(t, want, cells[2].Values)
				text, ok := cells[1].Category()
				require.True(t, ok)
				require.Equal(t, m.Classes.Values[m.Predict(x)], string(text))
			}
			indices, values := trial.Sparse(table.Row(0))
			require.Zero(t, testing.AllocsPerRun(20, func() {
				m.Predict(table.Row(0))
				m.Decision(table.Row(0), want)
				m.PredictSparse(indices, values)
				m.DecisionSparse(indices, values, want)
				_ = step(cells)
			}))
		}
		require.Equal(t, -1, m.Predict(make([]float64, table.D-1)))
		require.Equal(t, -1, m.PredictSparse([]int32{2, 1}, []float64{1, 1}))
		require.False(t, m.Decision(table.Row(0), make([]float64, 9)))
	}
	table := trial.Abalone(t, 100)
	m := regress(t, table, svm.LinearSVR{Epsilon: 0.5})
	r := trial.Run(t, func(b *engine.Builder) { engine.Collect(m.Transform(table.Dataset(b)), "predictions") })
	type row struct {
		Prediction float64 `column:"prediction"`
	}
	rows, err := engine.Rows[row](r, "predictions")
	require.NoError(t, err)
	layout := model.NewLayout("features")
	step, err := m.Bind(layout)
	require.NoError(t, err)
	cells := layout.NewRow()
	for i, row := range rows {
		indices, values := trial.Sparse(table.Row(i))
		require.Equal(t, m.Predict(table.Row(i)), row.Prediction)
		require.Equal(t, row.Prediction, m.PredictSparse(indices, values))
		cells[0].SetDense(table.Row(i))
		require.NoError(t, step(cells))
		require.Equal(t, row.Prediction, cells[1].Float)
		require.Zero(t, testing.AllocsPerRun(1, func() { m.Predict(table.Row(i)); m.PredictSparse(indices, values); _ = step(cells) }))
	}
	cells[0].SetNull()
	require.NoError(t, step(cells))
	require.Equal(t, model.NullCell, cells[1].Kind)
	require.True(t, math.IsNaN(m.Predict([]float64{1})))
}

func TestPredictConcurrently(t *testing.T) {
	table := trial.Iris(t)
	trial.Concurrently(t, classify(t, table, svm.LinearSVC{}), svm.DecodeSVC, table)
}

// TestPredictRowsThatCannotBe requires that the prediction for a row with a null is null. For a
// row with an infinity, it requires an error that names row and column, or with Skip a null
// prediction.
func TestPredictRowsThatCannotBe(t *testing.T) {
	m := classify(t, trial.TableOf([]float64{0, 0, 1, 1}, []float64{1}, []float64{2}, []float64{3}, []float64{4}), svm.LinearSVC{})
	column := array.NewFloat64Builder(memory.NewGoAllocator())
	column.AppendValues([]float64{1, math.Inf(1), 0, 4}, []bool{true, true, false, true})
	record := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Float64, Nullable: true}}, nil), []arrow.Array{column.NewArray()}, 4)
	job := func(o svm.PredictOptions) func(b *engine.Builder) {
		o.FeatureCols = []string{"x"}
		return func(b *engine.Builder) {
			engine.Collect(svm.PredictSVC(arrowbridge.FromRecords(b, []arrow.Record{record}), m.Dataset(b), o), "predictions")
		}
	}
	trial.Fails(t, job(svm.PredictOptions{}), "row 0 of the shard", `column "x"`, "infinite", "Skip")
	r := trial.Run(t, job(svm.PredictOptions{Skip: true, PredictionCol: "class"}))
	type row struct {
		Class    *float64   `column:"class"`
		Decision *[]float64 `column:"decision"`
	}
	rows, err := engine.Rows[row](r, "predictions")
	require.NoError(t, err)
	for i, known := range []bool{true, false, false, true} {
		require.Equal(t, known, rows[i].Class != nil, i)
		require.Equal(t, known, rows[i].Decision != nil, i)
	}
	table := trial.Heart(t)
	apply := func(o svm.PredictOptions) func(b *engine.Builder) {
		return func(b *engine.Builder) {
			engine.Collect(svm.PredictSVC(table.Dataset(b), m.Dataset(b), o), "predictions")
		}
	}
	trial.Fails(t, apply(svm.PredictOptions{}), "vector[13]", "1 features")
	trial.Fails(t, apply(svm.PredictOptions{VectorCol: "feature"}), `"feature"`)
	trial.Fails(t, apply(svm.PredictOptions{VectorCol: "label"}), `column "label" is float64`)
	trial.Fails(t, apply(svm.PredictOptions{OffsetCol: "label"}), "has no offsets")
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(svm.PredictSVR(table.Dataset(b), m.Dataset(b), svm.PredictOptions{}), "predictions")
	}, `kind "linear-svc"`)
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(svm.PredictSVC(table.Dataset(b), nil, svm.PredictOptions{}), "predictions")
	}, "the model is nil")
}

func TestModelFiles(t *testing.T) {
	for name, m := range map[string]*svm.SVCModel{
		"two classes": classify(t, trial.Heart(t), svm.LinearSVC{PredictionCol: "class"}),
		"three":       classify(t, trial.Iris(t), svm.LinearSVC{Squared: true}),
	} {
		t.Run(name, func(t *testing.T) { trial.ModelFile(t, m, svm.LoadSVC, svm.DecodeSVC, `"features":`, `"features":1`) })
	}
	m := regress(t, trial.Abalone(t, 60), svm.LinearSVR{Epsilon: 0.25})
	trial.ModelFile(t, m, svm.LoadSVR, svm.DecodeSVR, `"features":`, `"features":1`)
}

// TestModelsOfVersion1 requires that files in version 1 of the format can still be read.
func TestModelsOfVersion1(t *testing.T) {
	m, err := svm.LoadSVC("testdata/svc_v1.json")
	require.NoError(t, err)
	require.Equal(t, []string{"Iris-setosa", "Iris-versicolor", "Iris-virginica"}, m.Classes.Values)
	table, right := trial.Iris(t), 0
	for i := range table.N {
		if m.Classes.Values[m.Predict(table.Row(i))] == table.Words[i] {
			right++
		}
	}
	require.Equal(t, 141, right)
	again, err := m.Encode()
	require.NoError(t, err)
	text, err := os.ReadFile("testdata/svc_v1.json")
	require.NoError(t, err)
	require.Equal(t, strings.TrimSpace(string(text)), string(again))

	r, err := svm.LoadSVR("testdata/svr_v1.json")
	require.NoError(t, err)
	require.Equal(t, 0.5, r.Epsilon)
	fresh := regress(t, trial.Abalone(t, 200), svm.LinearSVR{Epsilon: 0.5})
	require.InDelta(t, fresh.Predict(trial.Abalone(t, 200).Row(3)), r.Predict(trial.Abalone(t, 200).Row(3)), 0.01)
}

// TestModelsThatDoNotHoldTogether requires that Encode refuses models that are not valid.
func TestModelsThatDoNotHoldTogether(t *testing.T) {
	trained := classify(t, trial.Heart(t), svm.LinearSVC{})
	for what, change := range map[string]func(m *svm.SVCModel){
		"coefficient 2 of margin 0 is NaN": func(m *svm.SVCModel) { m.Coefficients[0][2] = math.NaN() },
		"1 margins for 3 classes":          func(m *svm.SVCModel) { m.Classes.Values = []string{"1", "2", "3"} },
		"there are 1 classes":              func(m *svm.SVCModel) { m.Classes.Values = []string{"1"} },
		"reads no columns":                 func(m *svm.SVCModel) { m.Reads = nil },
	} {
		file, err := trained.Encode()
		require.NoError(t, err)
		m, err := svm.DecodeSVC(file)
		require.NoError(t, err)
		change(m)
		_, err = m.Encode()
		require.ErrorContains(t, err, what)
	}
	r := regress(t, target(30, 2), svm.LinearSVR{})
	r.Epsilon = -1
	_, err := r.Encode()
	require.ErrorContains(t, err, "epsilon is -1")
}
