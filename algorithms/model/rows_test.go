package model_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

// copier is a model for tests. It copies the column whose name is in the field from to a new
// column, and applies the function change to the copied cells.
type copier struct {
	scaler
	from   string
	change func(c *model.Cell) error
}

func (m copier) Bind(l *model.Layout) (model.Step, error) {
	in, err := l.Find(m.from)
	if err != nil {
		return nil, err
	}
	out := l.Add("copy")
	return func(row []model.Cell) error {
		row[out] = row[in]
		if m.change == nil {
			return nil
		}
		return m.change(&row[out])
	}, nil
}

// copied adds the operator that applies m to rows, and returns its output.
func copied(rows *engine.Dataset, m copier, kind arrow.DataType, nullable bool) *engine.Dataset {
	return model.ApplyRows("test.Copy", rows, model.Dataset(rows.Builder(), scaler{Length: 1}), model.RowApplication{
		Op: "Copy", Outputs: arrowrows.Columns([]arrow.Field{{Name: "copy", Type: kind, Nullable: nullable}}),
		Decode: func([]byte) (model.Binder, error) { return m, nil },
	})
}

// all has a column of each type.
type all struct {
	Bool     *bool                  `column:"bool"`
	I8       int8                   `column:"i8"`
	I16      int16                  `column:"i16"`
	I32      int32                  `column:"i32"`
	I64      *int64                 `column:"i64"`
	U8       uint8                  `column:"u8"`
	U16      uint16                 `column:"u16"`
	U32      uint32                 `column:"u32"`
	U64      uint64                 `column:"u64"`
	F32      float32                `column:"f32"`
	F64      float64                `column:"f64"`
	Text     *string                `column:"text"`
	Time     time.Time              `column:"time"`
	Fixed    []float64              `column:"fixed,dim=2"`
	Fixed32  []float32              `column:"fixed32,dim=2"`
	Ragged   []float64              `column:"ragged"`
	Ragged32 []float32              `column:"ragged32"`
	Sparse   operators.SparseVector `column:"sparse"`
	Sized    operators.SparseVector `column:"sized,size=9"`
}

func everything(b *engine.Builder) *engine.Dataset {
	yes, n, text := true, int64(math.MinInt64), "a\"b"
	when := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	v := operators.SparseVector{Indices: []int32{1, 8}, Values: []float64{-1, 2}}
	return operators.FromSlice(b, []all{
		{&yes, -128, -32768, math.MinInt32, &n, 255, 65535, math.MaxUint32, math.MaxInt64, 1.5, -0.1, &text, when, []float64{1, 2}, []float32{3, 0.1}, []float64{1}, nil, v, v},
		{Time: when, Fixed: []float64{0, -1}, Fixed32: []float32{5, 6}, Ragged: []float64{4, 5, 6}, Ragged32: []float32{7}},
		{I64: &n, F32: 7, F64: math.Inf(1), Time: when, Fixed: []float64{3, 4}, Fixed32: []float32{1, 1}, Sparse: v},
	})
}

// TestCellsHoldEveryType requires that values of every type pass through cells unchanged.
func TestCellsHoldEveryType(t *testing.T) {
	var names []string
	trial.Run(t, func(b *engine.Builder) {
		rows := everything(b)
		for _, f := range arrowrows.Arrow(rows.Schema()).Fields() {
			names = append(names, f.Name)
		}
		engine.Collect(rows, "rows")
	})
	for _, name := range names[:19] {
		r := trial.Run(t, func(b *engine.Builder) {
			rows := everything(b)
			f := arrowrows.Arrow(rows.Schema()).Field(arrowrows.Arrow(rows.Schema()).FieldIndices(name)[0])
			engine.Collect(copied(rows, copier{from: name}, f.Type, f.Nullable), "made")
		})
		recs, err := arrowbridge.Records(r, "made")
		require.NoError(t, err)
		n := 0
		for _, rec := range recs {
			from, err := batch.FindColumn(rec.Schema(), name)
			require.NoError(t, err)
			to, err := batch.FindColumn(rec.Schema(), "copy")
			require.NoError(t, err)
			for i := range int(rec.NumRows()) {
				require.Equal(t, batch.FormatValue(rec.Column(from), i), batch.FormatValue(rec.Column(to), i), name)
				require.Equal(t, rec.Column(from).IsNull(i), rec.Column(to).IsNull(i))
				n++
			}
		}
		require.Equal(t, 3, n)
	}
}

func TestRowsThatDoNotFit(t *testing.T) {
	f64, i64 := arrow.PrimitiveTypes.Float64, arrow.PrimitiveTypes.Int64
	vector, err := batch.VectorType(3)
	require.NoError(t, err)
	sized, err := batch.SparseType(4)
	require.NoError(t, err)
	for _, c := range []struct {
		from string
		kind arrow.DataType
		want string
	}{
		{"text", f64, `row 0 of the shard: column "copy": text is no float64`},
		{"i64", arrow.PrimitiveTypes.Int8, "is beyond the range of int8"},
		{"f64", i64, "a number is no int64"},
		{"f64", arrow.BinaryTypes.String, "a number is no utf8"},
		{"f64", arrow.FixedWidthTypes.Boolean, "a number is no bool"},
		{"ragged", vector, "components is no vector[3]"},
		{"f64", vector, "a number is no vector[3]"},
		{"f64", sized, "a number is no sparse[4]"},
		{"sparse", sized, "8"},
		{"bool", arrow.FixedWidthTypes.Boolean, `column "copy" is null, and declared without nulls`},
	} {
		trial.Fails(t, func(b *engine.Builder) {
			engine.Collect(copied(everything(b), copier{from: c.from}, c.kind, c.from != "bool"), "made")
		}, c.want)
	}
	trial.Fails(t, func(b *engine.Builder) { copied(everything(b), copier{from: "bool"}, nil, false) }, "test.Copy", "rows_test.go")
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(copied(everything(b), copier{from: "boll"}, f64, false), "made")
	}, `no column "boll": did you mean "bool"?`)
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(copied(everything(b), copier{from: "f64", change: func(c *model.Cell) error {
			return fmt.Errorf("%v is too much", c.Float)
		}}, f64, false), "made")
	}, "row 0 of the shard:", "is too much")
}

// TestRowsLeftOut requires that rows that a model leaves out are missing in the output, at all
// batch sizes and numbers of shards.
func TestRowsLeftOut(t *testing.T) {
	build := func(b *engine.Builder) {
		rows := operators.FromSlice(b, []point{{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}})
		engine.Collect(copied(rows, copier{from: "x", change: func(c *model.Cell) error {
			if int(c.Float)%3 != 0 {
				return model.ErrSkip
			}
			return nil
		}}, arrow.PrimitiveTypes.Float64, false), "made")
	}
	trial.SameBits(t, build)
	require.Equal(t, "made\n3\t3\t\n6\t6\t\n9\t9\t\n", trial.Print(t, trial.Run(t, build)))
}

func TestCategories(t *testing.T) {
	var c model.Cell
	for want, set := range map[string]func(){
		"true": func() { c.SetBool(true) }, "-5": func() { c.SetInt(-5) }, "0.1": func() { c.SetFloat(0.1) },
		"0": func() { c.SetFloat(math.Copysign(0, -1)) }, "": func() { c.SetText("") }, "1e+300": func() { c.SetFloat(1e300) },
	} {
		set()
		text, ok := c.Category()
		require.True(t, ok)
		require.Equal(t, want, string(text))
	}
	c.SetNull()
	_, ok := c.Category()
	require.False(t, ok)
	c.MakeDense(3)
	_, ok = c.Category()
	require.False(t, ok)
	require.Equal(t, "a vector", c.Kind.String())
	require.Equal(t, "CellKind(99)", model.CellKind(99).String())
}
