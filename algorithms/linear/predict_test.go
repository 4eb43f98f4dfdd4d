package linear_test

import (
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/linear"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

var (
	_ model.Binder = (*linear.Model)(nil)
	_ model.Stage  = linear.Params{}
)

// TestOperatorRowsAndCellsHaveTheSameBits requires that predictions have the same bits in four
// cases: by the operator, by the methods for dense and for sparse rows, and by the step that
// pipelines run.
func TestOperatorRowsAndCellsHaveTheSameBits(t *testing.T) {
	table := machine(t)
	m := train(t, table, linear.Params{})
	layout := model.NewLayout("features")
	step, err := m.Bind(layout)
	require.NoError(t, err)
	cells := layout.NewRow()
	for _, sparse := range []bool{false, true} {
		table.Sparse = sparse
		got := predict(t, table, m, linear.PredictOptions{})
		require.Len(t, got, table.N)
		for i := range table.N {
			x := table.Row(i)
			want := m.Predict(x)
			indices, values := trial.Sparse(x)
			require.Equal(t, want, *got[i])
			require.Equal(t, want, m.PredictSparse(indices, values))
			cells[0].SetDense(x)
			require.NoError(t, step(cells))
			require.Equal(t, want, cells[1].Float)
			require.Zero(t, testing.AllocsPerRun(1, func() { m.Predict(x); m.PredictSparse(indices, values); _ = step(cells) }))
		}
	}
}

// numbersTable returns a table whose features are in columns of several types.
func numbersTable(nulls bool) arrow.Record {
	mem := memory.NewGoAllocator()
	a, c, v, y := array.NewInt32Builder(mem), array.NewBooleanBuilder(mem), array.NewFixedSizeListBuilder(mem, 2, arrow.PrimitiveTypes.Float32), array.NewFloat64Builder(mem)
	f := array.NewFloat64Builder(mem)
	for i := range 20 {
		a.Append(int32(i % 7))
		if nulls && i == 3 {
			f.AppendNull()
		} else {
			f.Append(math.Sin(float64(i)))
		}
		c.Append(i%3 == 0)
		v.Append(true)
		v.ValueBuilder().(*array.Float32Builder).AppendValues([]float32{float32(i * i % 5), float32(i * 3 % 4)}, nil)
		y.Append(float64(i) / 3)
	}
	columns := []arrow.Array{a.NewArray(), f.NewArray(), c.NewArray(), v.NewArray(), y.NewArray()}
	names := []string{"a", "f", "c", "v", "y"}
	var fields []arrow.Field
	for i, column := range columns {
		field := arrow.Field{Name: names[i], Type: column.DataType(), Nullable: column.NullN() > 0}
		if names[i] == "v" {
			field.Type = arrow.FixedSizeListOfNonNullable(2, arrow.PrimitiveTypes.Float32)
			columns[i] = array.NewFixedSizeListData(array.NewData(field.Type, 20, column.Data().Buffers(), column.Data().Children(), 0, 0))
		}
		fields = append(fields, field)
	}
	return array.NewRecord(arrow.NewSchema(fields, nil), columns, 20)
}

// TestFeatureColumns requires that feature columns are joined in the given order, including
// columns of float32, integers and bools.
func TestFeatureColumns(t *testing.T) {
	features := []string{"f", "a", "v", "c"}
	record := numbersTable(false)
	r := trial.Run(t, func(b *engine.Builder) {
		rows := arrowbridge.FromRecords(b, []arrow.Record{record})
		made := linear.Train(rows, linear.Params{FeatureCols: features, LabelCol: "y"})
		engine.Collect(made, "model")
		engine.Collect(linear.Predict(rows, made, linear.PredictOptions{}), "predictions")
	})
	m, err := linear.ModelOf(r, "model")
	require.NoError(t, err)
	require.Equal(t, []model.Input{{Column: "f", Type: "float64"}, {Column: "a", Type: "int32"}, {Column: "v", Type: "vector32[2]"}, {Column: "c", Type: "bool"}}, m.Inputs())
	names := []string{"f", "a", "v[0]", "v[1]", "c", "intercept"}
	for j, term := range m.Summary.Inference.Terms {
		require.Equal(t, names[j], term.Name)
	}
	type row struct {
		Prediction *float64 `column:"prediction"`
	}
	rows, err := engine.Rows[row](r, "predictions")
	require.NoError(t, err)
	layout := model.NewLayout("a", "f", "c", "v", "y")
	step, err := m.Bind(layout)
	require.NoError(t, err)
	reader, err := model.NewReader(arrowrows.Schema(record.Schema()), layout)
	require.NoError(t, err)
	reader.Reset(arrowrows.Batch(record))
	cells := layout.NewRow()
	for i := range 20 {
		c := 0.0
		if i%3 == 0 {
			c = 1
		}
		want := m.Predict([]float64{math.Sin(float64(i)), float64(i % 7), float64(i * i % 5), float64(i * 3 % 4), c})
		require.Equal(t, want, *rows[i].Prediction)
		reader.Read(i, cells)
		require.NoError(t, step(cells))
		require.Equal(t, want, cells[layout.Columns()["prediction"]].Float)
	}
	withNull := numbersTable(true)
	r = trial.Run(t, func(b *engine.Builder) {
		engine.Collect(m.Transform(arrowbridge.FromRecords(b, []arrow.Record{withNull})), "predictions")
	})
	rows, err = engine.Rows[row](r, "predictions")
	require.NoError(t, err)
	for i, row := range rows {
		require.Equal(t, i == 3, row.Prediction == nil)
	}
	trial.Fails(t, func(b *engine.Builder) {
		made := linear.Train(arrowbridge.FromRecords(b, []arrow.Record{withNull}), linear.Params{FeatureCols: features, LabelCol: "y"})
		engine.Collect(made, "model")
	}, "null")
}

// TestStepErrors requires that every error of a step names the column.
func TestStepErrors(t *testing.T) {
	m := train(t, target(30, 2), linear.Params{})
	_, err := m.Bind(model.NewLayout("feature"))
	require.ErrorContains(t, err, `did you mean "feature"`)
	layout := model.NewLayout("features")
	step, err := m.Bind(layout)
	require.NoError(t, err)
	cells := layout.NewRow()
	for text, set := range map[string]func(c *model.Cell){
		"has 3 components":    func(c *model.Cell) { c.SetDense([]float64{1, 2, 3}) },
		"component 1 is NaN":  func(c *model.Cell) { c.SetDense([]float64{1, math.NaN()}) },
		"has 4 components":    func(c *model.Cell) { c.SetSparse(4, []int32{1}, []float64{2}) },
		"has the index 2":     func(c *model.Cell) { c.SetSparse(0, []int32{2}, []float64{2}) },
		"is text":             func(c *model.Cell) { c.SetText("x") },
		"2 indices and 1 val": func(c *model.Cell) { c.SetSparse(2, []int32{0, 1}, []float64{2}) },
	} {
		set(&cells[0])
		err := step(cells)
		require.ErrorContains(t, err, text)
		require.ErrorContains(t, err, `"features"`)
	}
	cells[0].SetNull()
	require.NoError(t, step(cells))
	require.Equal(t, model.NullCell, cells[1].Kind)
	require.True(t, math.IsNaN(m.Predict([]float64{1})))
	require.True(t, math.IsNaN(m.PredictSparse([]int32{1, 0}, []float64{1, 2})))
}

// TestVectorsOfAnyKind trains on vectors of float32 without a declared length. It requires an
// error for a row of another length.
func TestVectorsOfAnyKind(t *testing.T) {
	type dense struct {
		X []float32 `column:"x"`
		Y float64   `column:"y"`
	}
	var all []dense
	for i := range 12 {
		all = append(all, dense{[]float32{float32(i), float32(i*i%5) / 4}, float64(i % 4)})
	}
	r := trial.Run(t, func(b *engine.Builder) {
		rows := operators.FromSlice(b, all)
		made := linear.Train(rows, linear.Params{LabelCol: "y"})
		engine.Collect(made, "model")
		engine.Collect(linear.Predict(rows, made, linear.PredictOptions{}), "predictions")
	})
	m, err := linear.ModelOf(r, "model")
	require.NoError(t, err)
	require.Equal(t, []model.Input{{Column: "x", Type: "vector32[2]"}}, m.Inputs())
	type row struct {
		Prediction *float64 `column:"prediction"`
	}
	rows, err := engine.Rows[row](r, "predictions")
	require.NoError(t, err)
	for i, row := range rows {
		require.Equal(t, m.Predict([]float64{float64(all[i].X[0]), float64(all[i].X[1])}), *row.Prediction)
	}
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(linear.Predict(operators.FromSlice(b, []dense{{[]float32{1}, 0}}), m.Dataset(b), linear.PredictOptions{}), "predictions")
	}, "row 0 of the shard", "1 components")
}
