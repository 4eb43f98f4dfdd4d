package logistic_test

import (
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

var (
	_ model.Binder = (*logistic.Model)(nil)
	_ model.Stage  = logistic.Params{}
)

// TestOperatorRowsAndCellsHaveTheSameBits requires that predictions have the same bits in four
// cases: by the operator, by the methods for dense and for sparse rows, and by the step that
// pipelines run.
func TestOperatorRowsAndCellsHaveTheSameBits(t *testing.T) {
	for _, table := range []trial.Table{trial.Heart(t), trial.Iris(t)} {
		m := train(t, table, logistic.Params{L2: 0.01})
		for _, sparse := range []bool{false, true} {
			table.Sparse = sparse
			r := trial.Run(t, func(b *engine.Builder) {
				engine.Collect(logistic.Predict(table.Dataset(b), m.Dataset(b), logistic.PredictOptions{}), "predictions")
			}, engine.BatchRows(7))
			type row struct {
				Probability []float64 `column:"probability"`
			}
			rows, err := engine.Rows[row](r, "predictions")
			require.NoError(t, err)
			require.Len(t, rows, table.N)
			layout := model.NewLayout("features")
			step, err := m.Bind(layout)
			require.NoError(t, err)
			cells := layout.NewRow()
			k := len(m.Classes.Values)
			for i := range table.N {
				x := table.Row(i)
				want := probabilities(t, m, x)
				indices, values := trial.Sparse(x)
				got := make([]float64, k)
				require.True(t, m.PredictProbabilitySparse(indices, values, got))
				require.Equal(t, want, got)
				require.Equal(t, want, rows[i].Probability)
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
				var sum float64
				for _, p := range want {
					sum += p
				}
				require.InDelta(t, 1, sum, 1e-15)
			}
		}
	}
}

func TestPredictAllocatesNothing(t *testing.T) {
	for _, table := range []trial.Table{trial.Heart(t), trial.Iris(t)} {
		m := train(t, table, logistic.Params{L2: 0.01})
		x, p := table.Row(0), make([]float64, len(m.Classes.Values))
		indices, values := trial.Sparse(x)
		step := trial.Step(t, m, x)
		require.Zero(t, testing.AllocsPerRun(100, func() {
			m.Predict(x)
			m.PredictSparse(indices, values)
			m.PredictProbability(x, p)
			m.PredictProbabilitySparse(indices, values, p)
			step()
		}))
	}
}

func TestPredictConcurrently(t *testing.T) {
	table := trial.Heart(t)
	trial.Concurrently(t, train(t, table, logistic.Params{L2: 0.01}), logistic.Decode, table)
}

func TestPredictOfRowsThatDoNotFit(t *testing.T) {
	m := train(t, trial.Heart(t), logistic.Params{L2: 0.01})
	p := make([]float64, 2)
	require.Equal(t, -1, m.Predict(make([]float64, 12)))
	require.Equal(t, -1, m.Predict(append(make([]float64, 12), math.NaN())))
	require.False(t, m.PredictProbability(make([]float64, 14), p))
	require.False(t, m.PredictProbability(make([]float64, 13), p[:1]))
	for _, indices := range [][]int32{{3, 2}, {1, 1}, {-1, 2}, {0, 13}, {0}} {
		require.Equal(t, -1, m.PredictSparse(indices, []float64{1, 2}), indices)
		require.False(t, m.PredictProbabilitySparse(indices, []float64{1, 2}, p), indices)
	}
}

// TestPredictRowsThatCannotBe requires that a row with a null has a null prediction. A row with
// a NaN must cause an error that names row and column, or with Skip have a null prediction.
func TestPredictRowsThatCannotBe(t *testing.T) {
	mem := memory.NewGoAllocator()
	m := train(t, trial.TableOf([]float64{0, 0, 1, 1, 0, 1}, []float64{1}, []float64{2}, []float64{3}, []float64{4}, []float64{3.5}, []float64{2}), logistic.Params{L2: 0.1})
	column := array.NewFloat64Builder(mem)
	column.AppendValues([]float64{1, math.Inf(1), 0, 4}, []bool{true, true, false, true})
	record := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Float64, Nullable: true}}, nil), []arrow.Array{column.NewArray()}, 4)
	job := func(o logistic.PredictOptions) func(b *engine.Builder) {
		o.FeatureCols = []string{"x"}
		return func(b *engine.Builder) {
			engine.Collect(logistic.Predict(arrowbridge.FromRecords(b, []arrow.Record{record}), m.Dataset(b), o), "predictions")
		}
	}
	trial.Fails(t, job(logistic.PredictOptions{}), "row 0 of the shard", `column "x"`, "infinite", "Skip")
	r := trial.Run(t, job(logistic.PredictOptions{Skip: true, PredictionCol: "class"}))
	type row struct {
		Class       *float64   `column:"class"`
		Probability *[]float64 `column:"probability"`
	}
	rows, err := engine.Rows[row](r, "predictions")
	require.NoError(t, err)
	for i, known := range []bool{true, false, false, true} {
		require.Equal(t, known, rows[i].Class != nil, i)
		require.Equal(t, known, rows[i].Probability != nil, i)
	}
}

// TestPredictRefuses requires that Predict refuses rows and options that do not match the
// model.
func TestPredictRefuses(t *testing.T) {
	table := trial.Heart(t)
	m := train(t, table, logistic.Params{L2: 0.01})
	other := trial.Gaussian(1, 10, 12)
	apply := func(table trial.Table, o logistic.PredictOptions) func(b *engine.Builder) {
		return func(b *engine.Builder) {
			engine.Collect(logistic.Predict(table.Dataset(b), m.Dataset(b), o), "predictions")
		}
	}
	trial.Fails(t, apply(other, logistic.PredictOptions{}), "vector[12]", "13 features")
	other.Sparse = true
	trial.Fails(t, apply(other, logistic.PredictOptions{}), "sparse[12]", "13 features")
	trial.Fails(t, apply(table, logistic.PredictOptions{VectorCol: "feature"}), `"feature"`)
	trial.Fails(t, apply(table, logistic.PredictOptions{VectorCol: "label"}), `column "label" is float64`)
	trial.Fails(t, apply(table, logistic.PredictOptions{FeatureCols: []string{"label"}}), "1 components", "13 features")
	trial.Fails(t, apply(table, logistic.PredictOptions{VectorCol: "features", FeatureCols: []string{"label"}}), "both VectorCol and FeatureCols")
	trial.Fails(t, apply(table, logistic.PredictOptions{PredictionCol: "label"}), `"label" exists already`)
	trial.Fails(t, apply(table, logistic.PredictOptions{OffsetCol: "features"}), "not a number")
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(logistic.Predict(table.Dataset(b), model.Dataset(b, m), logistic.PredictOptions{}), "predictions")
	}, "type of the labels")
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(logistic.Predict(table.Dataset(b), nil, logistic.PredictOptions{}), "predictions")
	}, "the model is nil")
	trial.Run(t, apply(table, logistic.PredictOptions{PredictionCol: "label", Replace: true}))
}

// TestOffset requires that the offset is added wherever the model is applied to columns, but
// not by the methods that predict single rows.
func TestOffset(t *testing.T) {
	table := twoClasses(80, 2)
	for i := range table.N {
		table.Offset = append(table.Offset, math.Cos(float64(i)))
	}
	m := train(t, table, logistic.Params{L2: 0.01})
	require.Equal(t, []model.Input{{Column: "features", Type: "vector[2]"}, {Column: "offset", Type: "float64"}}, m.Inputs())
	r := trial.Run(t, func(b *engine.Builder) { engine.Collect(m.Transform(table.Dataset(b)), "predictions") })
	type row struct {
		Probability []float64 `column:"probability"`
	}
	rows, err := engine.Rows[row](r, "predictions")
	require.NoError(t, err)
	layout := model.NewLayout("features", "offset")
	step, err := m.Bind(layout)
	require.NoError(t, err)
	cells := layout.NewRow()
	for i := range table.N {
		margin := m.Margin(table.Row(i)) + table.Offset[i]
		require.InDelta(t, 1/(1+math.Exp(-margin)), rows[i].Probability[1], 1e-15)
		cells[0].SetDense(table.Row(i))
		cells[1].SetFloat(table.Offset[i])
		require.NoError(t, step(cells))
		require.Equal(t, rows[i].Probability, cells[3].Values)
	}
	cells[1].SetNull()
	require.NoError(t, step(cells))
	require.Equal(t, model.NullCell, cells[2].Kind)
	cells[1].SetText("x")
	require.ErrorContains(t, step(cells), `column "offset"`)
	unshifted := table
	unshifted.Offset = nil
	trial.Fails(t, func(b *engine.Builder) { engine.Collect(m.Transform(unshifted.Dataset(b)), "predictions") }, `"offset"`)
}
