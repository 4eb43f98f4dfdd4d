package columnar_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

func schemaOf(t require.TestingT, columns ...columnar.Column) columnar.Schema {
	s, err := columnar.NewSchema(columns...)
	require.NoError(t, err)
	return s
}

// everyType has a column of each type, with values for two rows as NewBatch takes them.
var everyType = []struct {
	column string
	values any
	json   [2]string // the values of the two rows as JSON
}{
	{"bool", []bool{true, false}, [2]string{`true`, `false`}},
	{"int8", []int8{-1, 2}, [2]string{`-1`, `2`}},
	{"int16", []int16{-300, 2}, [2]string{`-300`, `2`}},
	{"int32", []int32{-70000, 2}, [2]string{`-70000`, `2`}},
	{"int64", []int64{math.MinInt64, 2}, [2]string{`-9223372036854775808`, `2`}},
	{"uint8", []uint8{255, 2}, [2]string{`255`, `2`}},
	{"uint16", []uint16{65535, 2}, [2]string{`65535`, `2`}},
	{"uint32", []uint32{1 << 31, 2}, [2]string{`2147483648`, `2`}},
	{"uint64", []uint64{1 << 62, 2}, [2]string{`4611686018427387904`, `2`}},
	{"float32", []float32{0.5, 2}, [2]string{`0.5`, `2`}},
	{"float64", []float64{0.1, 2}, [2]string{`0.1`, `2`}},
	{"utf8", []string{"", "zwölf"}, [2]string{`""`, `"zwölf"`}},
	{"binary", [][]byte{{}, {0, 255}}, [2]string{`""`, `"AP8="`}},
	{"date32", []int32{0, 19000}, [2]string{`"1970-01-01"`, `"2022-01-08"`}},
	{"timestamp[us]", []int64{0, 1}, [2]string{`"1970-01-01 00:00:00"`, `"1970-01-01 00:00:00.000001"`}},
	{"vector[2]", columnar.Matrix{Rows: 2, Cols: 2, Data: []float64{1, 2, 3, 4}}, [2]string{`[1,2]`, `[3,4]`}},
	{"vector", columnar.Vectors{Offsets: []int32{1, 1, 3}, Values: []float64{9, 1, 2, 9}}, [2]string{`[]`, `[1,2]`}},
	{"sparse[5]", columnar.Sparse{Rows: 2, Cols: 5, Offsets: []int32{0, 1, 3}, Indices: []int32{4, 0, 1}, Values: []float64{1, 2, 3}},
		[2]string{`{"indices":[4],"values":[1]}`, `{"indices":[0,1],"values":[2,3]}`}},
	{"sparse", columnar.Sparse{Rows: 2, Offsets: []int32{0, 0, 1}, Indices: []int32{70}, Values: []float64{1}},
		[2]string{`{"indices":[],"values":[]}`, `{"indices":[70],"values":[1]}`}},
}

// TestNewBatch compares batches made from slices with batches read from JSON.
func TestNewBatch(t *testing.T) {
	for _, c := range everyType {
		t.Run(c.column, func(t *testing.T) {
			schema := schemaOf(t, columnar.Column{Name: "x", Type: c.column})
			mem := batchtest.Allocator(t)
			made, err := columnar.NewBatch(mem, schema, c.values)
			require.NoError(t, err)
			defer made.Release()
			want := batchtest.Record(t, memory.NewGoAllocator(), arrowrows.Arrow(schema), fmt.Sprintf(`[{"x":%s},{"x":%s}]`, c.json[0], c.json[1]))
			defer want.Release()
			require.Empty(t, batch.Diff(want, arrowrows.Record(made)))
			require.NoError(t, batch.Validate(arrowrows.Record(made)))

			// NewBatch accepts the Values of another batch.
			values, err := made.Values("x")
			require.NoError(t, err)
			again, err := columnar.NewBatch(mem, schema, values)
			require.NoError(t, err)
			defer again.Release()
			require.Empty(t, batch.Diff(arrowrows.Record(made), arrowrows.Record(again)))
		})
	}
}

// TestNullsAreOfTheirRows requires that exactly the values that WithNulls marks as missing are
// null. If no value is missing, the batch must be the same as without WithNulls.
func TestNullsAreOfTheirRows(t *testing.T) {
	for _, c := range everyType {
		schema := schemaOf(t, columnar.Column{Name: "x", Type: c.column, Nullable: true})
		for missing := range 4 {
			mem := batchtest.Allocator(t)
			made, err := columnar.NewBatch(mem, schema, columnar.WithNulls(c.values, func(i int) bool { return missing>>i&1 == 1 }))
			require.NoError(t, err, c.column)
			nulls, err := made.Nulls("x")
			require.NoError(t, err)
			require.Equal(t, missing > 0, nulls.Any())
			whole, err := columnar.NewBatch(mem, schema, c.values)
			require.NoError(t, err)
			for i := range 2 {
				require.Equal(t, missing>>i&1 == 1, nulls.At(i))
				if !nulls.At(i) {
					require.Equal(t, whole.Format(0, i), made.Format(0, i), c.column)
				}
			}
			if missing == 0 {
				require.Empty(t, batch.Diff(arrowrows.Record(whole), arrowrows.Record(made)))
			}
			whole.Release()
			made.Release()
		}
	}
	_, err := columnar.NewBatch(nil, schemaOf(t, columnar.Column{Name: "x", Type: "int64"}), columnar.WithNulls([]int64{1}, func(int) bool { return true }))
	require.ErrorContains(t, err, `column "x": 1 nulls in a column that is not nullable`)
}

// TestVectorsWithNullsHaveNoView requires that GetNullable fails for vectors with nulls, as the
// components of a missing vector would be undefined.
func TestVectorsWithNullsHaveNoView(t *testing.T) {
	for column, values := range map[string]any{
		"vector[1]": columnar.Matrix{Rows: 2, Cols: 1, Data: []float64{1, 2}},
		"vector":    columnar.Vectors{Offsets: []int32{0, 1, 2}, Values: []float64{1, 2}},
		"sparse":    columnar.Sparse{Rows: 2, Offsets: []int32{0, 1, 2}, Indices: []int32{0, 1}, Values: []float64{1, 2}},
	} {
		rows, err := columnar.NewBatch(nil, schemaOf(t, columnar.Column{Name: "x", Type: column, Nullable: true}),
			columnar.WithNulls(values, func(i int) bool { return i == 1 }))
		require.NoError(t, err)
		defer rows.Release()
		_, _, matrix := columnar.GetNullable[columnar.Matrix](rows, "x")
		_, _, vectors := columnar.GetNullable[columnar.Vectors](rows, "x")
		_, _, sparse := columnar.GetNullable[columnar.Sparse](rows, "x")
		for _, err := range []error{matrix, vectors, sparse} {
			require.ErrorContains(t, err, `column "x": vectors with nulls have no view: leave such rows out`, column)
		}
	}
}

// roundTrip requires that NewBatch makes the same column again from the result of Get.
func roundTrip[V columnar.View](t *testing.T, b columnar.Batch, column string) {
	t.Helper()
	values, err := columnar.Get[V](b, column)
	require.NoError(t, err)
	i := b.Schema().Index(column)
	made, err := columnar.NewBatch(nil, schemaOf(t, b.Schema().Column(i)), values)
	require.NoError(t, err)
	defer made.Release()
	only, err := batch.Select(arrowrows.Record(b), []int{i})
	require.NoError(t, err)
	defer only.Release()
	require.Empty(t, batch.Diff(only, arrowrows.Record(made)))
}

// TestGet reads the columns of slices of a batch. The values of a slice need not begin at the
// start of the memory that it refers to.
func TestGet(t *testing.T) {
	var columns []columnar.Column
	var values []any
	for _, c := range everyType {
		columns = append(columns, columnar.Column{Name: c.column, Type: c.column})
		values = append(values, c.values)
	}
	whole, err := columnar.NewBatch(nil, schemaOf(t, columns...), values...)
	require.NoError(t, err)
	defer whole.Release()
	for lo := range 3 {
		for hi := lo; hi <= 2; hi++ {
			rows, err := whole.Slice(lo, hi)
			require.NoError(t, err)
			require.Equal(t, hi-lo, rows.Len())
			require.True(t, rows.Schema().Equal(whole.Schema()))
			roundTrip[columnar.Bools](t, rows, "bool")
			roundTrip[[]int8](t, rows, "int8")
			roundTrip[[]int16](t, rows, "int16")
			roundTrip[[]int32](t, rows, "int32")
			roundTrip[[]int64](t, rows, "int64")
			roundTrip[[]uint8](t, rows, "uint8")
			roundTrip[[]uint16](t, rows, "uint16")
			roundTrip[[]uint32](t, rows, "uint32")
			roundTrip[[]uint64](t, rows, "uint64")
			roundTrip[[]float32](t, rows, "float32")
			roundTrip[[]float64](t, rows, "float64")
			roundTrip[columnar.Texts](t, rows, "utf8")
			roundTrip[columnar.Bytes](t, rows, "binary")
			roundTrip[[]int32](t, rows, "date32")
			roundTrip[[]int64](t, rows, "timestamp[us]")
			roundTrip[columnar.Matrix](t, rows, "vector[2]")
			roundTrip[columnar.Vectors](t, rows, "vector")
			roundTrip[columnar.Sparse](t, rows, "sparse[5]")
			roundTrip[columnar.Sparse](t, rows, "sparse")
			rows.Release()
		}
	}
	_, err = whole.Slice(1, 3)
	require.ErrorContains(t, err, "rows 1 to 3 of a batch of 2")
}

// TestGetReadsWhatIsThere requires that Get returns the values from which the batch was made,
// and that neither NewBatch nor Get copies a slice of numbers.
func TestGetReadsWhatIsThere(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		numbers := rapid.SliceOf(rapid.Float64()).Draw(rt, "numbers")
		texts := make([]string, len(numbers))
		flags := make([]bool, len(numbers))
		for i := range texts {
			texts[i] = rapid.String().Draw(rt, "text")
			flags[i] = rapid.Bool().Draw(rt, "flag")
		}
		schema := schemaOf(rt, columnar.Column{Name: "n", Type: "float64"}, columnar.Column{Name: "t", Type: "utf8"}, columnar.Column{Name: "f", Type: "bool"})
		rows, err := columnar.NewBatch(nil, schema, numbers, texts, flags)
		require.NoError(rt, err)
		defer rows.Release()
		n, err := columnar.Get[[]float64](rows, "n")
		require.NoError(rt, err)
		require.Len(rt, n, len(numbers))
		if len(n) > 0 {
			require.Same(rt, &numbers[0], &n[0])
		}
		s, err := columnar.Get[columnar.Texts](rows, "t")
		require.NoError(rt, err)
		f, err := columnar.Get[columnar.Bools](rows, "f")
		require.NoError(rt, err)
		require.Equal(rt, len(texts), s.Len())
		for i := range texts {
			require.Equal(rt, texts[i], s.At(i))
			require.Equal(rt, flags[i], f.At(i))
		}
	})
}

// TestMistakes requires that the errors of Get, NewBatch and NewSchema say what is wrong.
func TestMistakes(t *testing.T) {
	columns := []columnar.Column{{Name: "n", Type: "int64"}, {Name: "v", Type: "vector"}}
	schema := schemaOf(t, columns...)
	rows, err := columnar.NewBatch(nil, schema, []int64{1, 2}, columnar.Vectors{Offsets: []int32{0, 1, 3}, Values: []float64{1, 2, 3}})
	require.NoError(t, err)
	defer rows.Release()
	get := func(err error) func(columnar.Batch, string) error {
		return func(columnar.Batch, string) error { return err }
	}
	_, floats := columnar.Get[[]float64](rows, "n")
	_, matrix := columnar.Get[columnar.Matrix](rows, "v")
	_, absent := columnar.Get[[]int64](rows, "m")
	_, none := columnar.Get[[]int64](columnar.Batch{}, "n")
	for _, c := range []struct {
		err  error
		want string
	}{
		{floats, `column "n" is int64, which []float64 does not read`},
		{matrix, `column "v": row 0 has 1 components and row 1 has 2`},
		{absent, `no column "m"`},
		{none, `column "n": there is no batch`},
	} {
		require.ErrorContains(t, get(c.err)(rows, ""), c.want)
	}
	for want, values := range map[string][]any{
		"1 columns are given, the schema has 2":                               {[]int64{1}},
		`column "n": is int64, and a []float64 of float64 is given`:           {[]float64{1}, columnar.Vectors{}},
		`column "n": is int64, and a string is given`:                         {"1", columnar.Vectors{}},
		`column "v" has 1 values, column "n" has 2`:                           {[]int64{1, 2}, columnar.Vectors{Offsets: []int32{0, 0}}},
		`column "v": offsets of vectors, from 0 to 4, do not ascend`:          {[]int64{1}, columnar.Vectors{Offsets: []int32{0, 4}, Values: []float64{1}}},
		`column "v": offsets of vectors, from 0 to 0, do not ascend`:          {[]int64{1, 2}, columnar.Vectors{Offsets: []int32{0, 1, 0}, Values: []float64{1}}},
		`column "v": a matrix of 2 x 2 has 3 values`:                          {[]int64{1, 2}, columnar.Matrix{Rows: 2, Cols: 2, Data: []float64{1, 2, 3}}},
		`column "n": it is the zero Values`:                                   {columnar.Values{}, columnar.Vectors{}},
		`column "n": WithNulls is given no function`:                          {columnar.WithNulls([]int64{1}, nil), columnar.Vectors{}},
		`column "n": WithNulls takes slices and vectors, not columnar.Values`: {columnar.WithNulls(columnar.Values{}, func(int) bool { return true }), columnar.Vectors{}},
		`column "n": is int64, and a columnar.Sparse of sparse is given`:      {columnar.Sparse{Offsets: []int32{0}}, columnar.Vectors{}},
		`column "n": is int64, and a columnar.Matrix of vector[1] is given`:   {columnar.Matrix{Rows: 1, Cols: 1, Data: []float64{1}}, columnar.Vectors{}},
		`column "n": is int64, and a matrix of 0 columns is given`:            {columnar.Matrix{}, columnar.Vectors{}},
	} {
		mem := batchtest.Allocator(t)
		_, err := columnar.NewBatch(mem, schema, values...)
		require.ErrorContains(t, err, want)
	}
	for _, typ := range []string{"vector[4]", "vector"} {
		for _, m := range []columnar.Matrix{{Rows: 1 << 62, Cols: 4}, {Rows: 1 << 40}, {Rows: -1, Cols: -1, Data: []float64{1}}, {Cols: 4, Data: []float64{1}}} {
			_, err := columnar.NewBatch(nil, schemaOf(t, columnar.Column{Name: "x", Type: typ}), m)
			require.ErrorContains(t, err, fmt.Sprintf(`column "x": a matrix of %d x %d has %d values`, m.Rows, m.Cols, len(m.Data)))
		}
	}
	_, err = columnar.NewBatch(nil, schemaOf(t, columnar.Column{Name: "x", Type: "vector[4]"}), columnar.Matrix{Cols: 1 << 40})
	require.ErrorContains(t, err, `column "x": is vector[4], and a matrix of 1099511627776 columns is given`)
	_, err = columnar.NewBatch(nil, columnar.Schema{}, 1)
	require.ErrorContains(t, err, "the schema is the zero value")
	_, err = columnar.NewBatch(nil, schemaOf(t, columnar.Column{Name: "t", Type: "utf8"}), []string{"\xff"})
	require.ErrorContains(t, err, `column "t"`)
	_, err = columnar.NewSchema(columnar.Column{Name: "x", Type: "flaot64"})
	require.ErrorContains(t, err, `column "x": unknown type "flaot64"; did you mean float64`)
	_, err = columnar.NewSchema(columns[0], columns[0])
	require.ErrorContains(t, err, `both named "n"`)
}

// TestReferences requires that the memory is freed when the last reference is dropped, and not
// before.
func TestReferences(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	schema := schemaOf(t, columnar.Column{Name: "t", Type: "utf8"})
	rows, err := columnar.NewBatch(mem, schema, []string{"a", "b"})
	require.NoError(t, err)
	part, err := rows.Slice(1, 2)
	require.NoError(t, err)
	rows.Retain()
	rows.Release()
	rows.Release()
	require.Positive(t, mem.CurrentAlloc(), "the slice part still refers to the memory")
	text, err := columnar.Get[columnar.Texts](part, "t")
	require.NoError(t, err)
	require.Equal(t, "b", text.At(0))
	part.Release()
	mem.AssertSize(t, 0)

	values, err := columnar.NewValues(mem, columnar.Column{Name: "t", Type: "utf8"}, []string{"x"})
	require.NoError(t, err)
	require.Equal(t, 1, values.Len())
	values.Release()
	mem.AssertSize(t, 0)
	_, err = columnar.NewValues(mem, columnar.Column{Name: "t", Type: "utf8"}, columnar.WithNulls([]string{"x"}, func(int) bool { return true }))
	require.ErrorContains(t, err, `column "t": has 1 nulls and is not nullable`)
	mem.AssertSize(t, 0)
}

// TestZeroValues requires that zero values behave as if they were empty.
func TestZeroValues(t *testing.T) {
	var b columnar.Batch
	var s columnar.Schema
	var v columnar.Values
	require.True(t, b.IsZero() && s.IsZero() && v.IsZero())
	require.Zero(t, b.Len()+s.Len()+v.Len())
	require.True(t, b.Schema().Equal(s))
	require.False(t, s.Equal(schemaOf(t)), "a schema without columns must differ from the zero Schema")
	require.Equal(t, -1, s.Index("x"))
	require.Empty(t, s.String())
	b.Retain()
	b.Release()
	v.Release()
	require.Zero(t, columnar.Texts{}.Len()+columnar.Bools{}.Len()+columnar.Bytes{}.Len()+columnar.Vectors{}.Len())
	require.False(t, columnar.Nulls{}.Any())
	require.False(t, columnar.Nulls{}.At(3))
	none, err := columnar.NewBatch(nil, schemaOf(t))
	require.NoError(t, err)
	require.Zero(t, none.Len())
	require.Equal(t, fmt.Sprint(arrow.NewSchema(nil, nil)), fmt.Sprint(arrowrows.Arrow(none.Schema())))
}

// TestReleasedBatches requires that functions called on a released batch return an error, or
// panic with a clear message if they return no error.
func TestReleasedBatches(t *testing.T) {
	schema := schemaOf(t, columnar.Column{Name: "x", Type: "int64"})
	rows, err := columnar.NewBatch(nil, schema, []int64{7, 8})
	require.NoError(t, err)
	rows.Release()
	const why = "it was released already"
	_, err = columnar.Get[[]int64](rows, "x")
	require.ErrorContains(t, err, `column "x": the batch is of no use: `+why)
	_, _, err = columnar.GetNullable[[]int64](rows, "x")
	require.ErrorContains(t, err, why)
	_, err = rows.Nulls("x")
	require.ErrorContains(t, err, why)
	_, err = rows.Values("x")
	require.ErrorContains(t, err, why)
	_, err = rows.Slice(0, 2)
	require.ErrorContains(t, err, "columnar: Slice: "+why)
	_, err = rows.Slice(0, 1)
	require.ErrorContains(t, err, why)
	requirePanic(t, "columnar: Format: column 0, row 1: "+why, func() { rows.Format(0, 1) })
}

// TestPlacesThatAreNone requires that Format and Column panic with a clear message for a row or
// a column that does not exist.
func TestPlacesThatAreNone(t *testing.T) {
	rows, err := columnar.NewBatch(nil, schemaOf(t, columnar.Column{Name: "x", Type: "int64"}), []int64{7, 8})
	require.NoError(t, err)
	defer rows.Release()
	require.Equal(t, "8", rows.Format(0, 1))
	for _, at := range [][2]int{{4, 0}, {-1, 0}, {0, 2}, {0, -1}} {
		requirePanic(t, fmt.Sprintf("columnar: Format: column %d, row %d of a batch of 1 columns and 2 rows", at[0], at[1]), func() { rows.Format(at[0], at[1]) })
	}
	requirePanic(t, "columnar: Format: column 0, row 0: there is no batch", func() { columnar.Batch{}.Format(0, 0) })
	requirePanic(t, "columnar: there is no column 0 in a schema of 0 columns", func() { columnar.Schema{}.Column(0) })
	requirePanic(t, "columnar: there is no column 1 in a schema of 1 columns", func() { rows.Schema().Column(1) })
	requirePanic(t, "columnar: there is no column -1 in a schema of 1 columns", func() { rows.Schema().Column(-1) })
}

func requirePanic(t *testing.T, want string, f func()) {
	t.Helper()
	defer func() {
		t.Helper()
		err, _ := recover().(error)
		require.ErrorContains(t, err, want)
	}()
	f()
}
