package batch_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

type celsius float64

type everything struct {
	Flag     bool
	I8       int8
	I16      int16
	I32      int32
	I64      int64
	Int      int
	U8       uint8
	U16      uint16
	U32      uint32
	U64      uint64
	Uint     uint
	F32      float32
	F64      celsius
	Name     string
	Raw      []byte
	At       time.Time
	Vec      []float64
	Fixed    []float64          `column:"fixed,dim=2"`
	Vec32    []float32          `column:",dim=3"`
	Ragged32 []float32          `column:"ragged32"`
	Sparse   batch.SparseVector `column:"sp,size=9"`
	_        int                // unexported, so no column
	Ignored  map[string]int     `column:"-"`
	MaybeB   *bool
	MaybeI   *int64
	MaybeS   *string
	MaybeT   *time.Time
	MaybeV   *[]float64          `column:"maybe_v,dim=2"`
	MaybeSp  *batch.SparseVector `column:"maybe_sp"`
	Array    [3]float64
	Array32  [2]float32  `column:"array32,dim=2"`
	Degrees  [1]celsius  `column:"degrees"`
	MaybeA   *[2]float64 `column:"maybe_a"`
}

func TestCodecSchema(t *testing.T) {
	codec, err := batch.NewCodec[everything]()
	require.NoError(t, err)
	var got []string
	for _, c := range batch.Columns(codec.Schema()) {
		got = append(got, c.String())
	}
	require.Equal(t, strings.Fields(strings.ReplaceAll(`flag.bool i8.int8 i16.int16 i32.int32 i64.int64 int.int64 u8.uint8 u16.uint16
		u32.uint32 u64.uint64 uint.uint64 f32.float32 f64.float64 name.utf8 raw.binary at.timestamp[us,_UTC] vec.vector
		fixed.vector[2] vec32.vector32[3] ragged32.vector32 sp.sparse[9] maybe_b.bool.null maybe_i.int64.null maybe_s.utf8.null
		maybe_t.timestamp[us,_UTC].null maybe_v.vector[2].null maybe_sp.sparse.null
		array.vector[3] array32.vector32[2] degrees.vector[1] maybe_a.vector[2].null`, ".", ".")),
		strings.Fields(strings.ReplaceAll(strings.ReplaceAll(strings.Join(got, "\n"), ", ", ",_"), " ", ".")))
}

func drawEverything(t *rapid.T) everything {
	maybe := func() bool { return rapid.Bool().Draw(t, "present") }
	text := drawText(t)
	at := time.UnixMicro(drawInt(t, -1<<50, 1<<50)).UTC()
	e := everything{
		Flag: rapid.Bool().Draw(t, "flag"), I8: int8(drawInt(t, math.MinInt8, math.MaxInt8)), I16: int16(drawInt(t, math.MinInt16, math.MaxInt16)),
		I32: int32(drawInt(t, math.MinInt32, math.MaxInt32)), I64: drawInt(t, math.MinInt64, math.MaxInt64), Int: int(drawInt(t, math.MinInt64, math.MaxInt64)),
		U8: uint8(drawInt(t, 0, math.MaxUint8)), U16: uint16(drawInt(t, 0, math.MaxUint16)), U32: uint32(drawInt(t, 0, math.MaxUint32)),
		U64: uint64(drawInt(t, math.MinInt64, math.MaxInt64)), Uint: uint(drawInt(t, 0, math.MaxInt64)),
		F32: rapid.Float32().Draw(t, "f32"), F64: celsius(rapid.Float64().Draw(t, "f64")), Name: text, Raw: []byte(text), At: at,
		Vec: rapid.SliceOfN(rapid.Float64(), 0, 3).Draw(t, "vec"), Fixed: []float64{1, float64(drawInt(t, 0, 9))},
		Array: [3]float64{drawFinite(t), 0, drawFinite(t)}, Array32: [2]float32{1, rapid.Float32().Draw(t, "array32")}, Degrees: [1]celsius{celsius(drawFinite(t))},
		Vec32: []float32{1, 2, 3}, Ragged32: rapid.SliceOfN(rapid.Float32(), 0, 3).Draw(t, "vec32"),
		Sparse: batch.SparseVector{Size: 9, Indices: []int32{int32(drawInt(t, 0, 7)), 8}, Values: []float64{1, float64(drawInt(t, 0, 9))}},
	}
	if maybe() {
		e.MaybeB, e.MaybeI, e.MaybeS = &e.Flag, new(e.I64), new(text)
	}
	if maybe() {
		e.MaybeT, e.MaybeV = new(at), new([]float64{3, 4})
		e.MaybeSp = &batch.SparseVector{Indices: []int32{7}, Values: []float64{1}}
		e.MaybeA = &[2]float64{drawFinite(t), 5}
	}
	return e
}

func drawFinite(t *rapid.T) float64 { return rapid.Float64().Draw(t, "float") }

func TestCodecRoundTrip(t *testing.T) {
	codec, err := batch.NewCodec[everything]()
	require.NoError(t, err)
	check(t, func(t *rapid.T, mem memory.Allocator) {
		app := codec.Appender(mem)
		defer app.Release()
		for range 2 { // in the second iteration, the appender is reused
			rows := make([]everything, rapid.IntRange(0, 20).Draw(t, "rows"))
			for i := range rows {
				rows[i] = drawEverything(t)
				require.NoError(t, app.Append(rows[i]))
				require.Equal(t, i+1, app.Len())
				if rapid.IntRange(0, 4).Draw(t, "bad") == 0 {
					// If a field of a row cannot be appended, Append must remove the fields
					// before it.
					bad := rows[i]
					bad.Sparse.Indices = []int32{1, 2, 3}
					bad.Sparse.Values = []float64{4, 5, 6}
					bad.MaybeV = &[]float64{1}
					require.Error(t, app.Append(bad))
				}
			}
			whole := app.NewRecord()
			require.Zero(t, app.Len())
			require.NoError(t, batch.Validate(whole))
			from := rapid.IntRange(0, len(rows)).Draw(t, "from")
			rec := whole.NewSlice(int64(from), int64(len(rows)))
			whole.Release()
			got, err := codec.Rows(rec)
			rec.Release()
			require.NoError(t, err)
			require.Equal(t, rows[from:], got)
		}
	})
}

func TestCodecOfScalars(t *testing.T) {
	mem := batchtest.Allocator(t)
	scalar(t, mem, []float64{1, 2.5}, "value float64")
	scalar(t, mem, []string{"", "x"}, "value utf8")
	scalar(t, mem, []int{-1, 7}, "value int64")
	scalar(t, mem, [][]float64{{1}, {}}, "value vector")
	scalar(t, mem, [][2]float64{{1, 2}, {3, 4}}, "value vector[2]")
	scalar(t, mem, []*[1]float32{nil, {4}}, "value vector32[1] null")
	scalar(t, mem, []time.Time{time.Unix(0, 0).UTC()}, "value timestamp[us, UTC]")
	scalar(t, mem, []*bool{nil, new(true)}, "value bool null")
	scalar(t, mem, []batch.SparseVector{{Indices: []int32{}, Values: []float64{}}}, "value sparse")
}

func scalar[T any](t *testing.T, mem memory.Allocator, rows []T, column string) {
	codec, err := batch.NewCodec[T]()
	require.NoError(t, err)
	require.Equal(t, column, batch.Columns(codec.Schema())[0].String())
	rec, err := codec.Record(mem, rows)
	require.NoError(t, err)
	defer rec.Release()
	got, err := codec.Rows(rec)
	require.NoError(t, err)
	require.Equal(t, rows, got)
}

func codecError[T any]() string {
	_, err := batch.NewCodec[T]()
	return fmt.Sprint(err)
}

func TestNewCodecRefuses(t *testing.T) {
	type inner struct{ X int }
	require.Contains(t, codecError[struct{ In inner }](), ".In of type batch_test.inner: not supported as a column")
	require.Contains(t, codecError[struct{ M map[string]int }](), "map[string]int")
	require.Contains(t, codecError[struct{ P **int }](), "**int")
	require.Contains(t, codecError[struct{ S []string }](), "[]string")
	require.Contains(t, codecError[struct{ A any }](), ".A of type interface {}")
	require.Contains(t, codecError[struct {
		A int `column:"x"`
		B int `column:"x"`
	}](), "are both column \"x\"")
	require.Contains(t, codecError[struct {
		A []float64 `column:"x,dim=zero"`
	}](), "is neither dim=n nor size=n")
	require.Contains(t, codecError[struct {
		A int `column:"x,dim=3"`
	}](), "dim is for []float64")
	require.Contains(t, codecError[struct {
		A [2]float64 `column:"x,dim=3"`
	}](), "A of type [2]float64: the tag says dim=3, the array has 2 elements")
	require.Contains(t, codecError[struct{ A [0]float64 }](), "A of type [0]float64: an array without elements is no vector")
	require.Contains(t, codecError[struct{ A [2]int64 }](), "A of type [2]int64: not supported as a column")
	require.Contains(t, codecError[struct{ A [2][2]float64 }](), "A of type [2][2]float64: not supported as a column")
	require.Contains(t, codecError[struct{ A []int }](), "A of type []int: not supported as a column")
	require.Contains(t, codecError[struct{ a int }](), "no exported field")
	require.Contains(t, codecError[struct {
		a int `column:"a"`
	}](), "not exported")
	require.Contains(t, codecError[chan int](), "chan int")
}

func TestAppendRefuses(t *testing.T) {
	mem := batchtest.Allocator(t)
	type row struct {
		ID int64
		V  []float64          `column:"v,dim=2"`
		S  batch.SparseVector `column:"s,size=3"`
		T  time.Time
	}
	codec, err := batch.NewCodec[row]()
	require.NoError(t, err)
	app := codec.Appender(mem)
	defer app.Release()
	ok := row{ID: 1, V: []float64{1, 2}}
	require.NoError(t, app.Append(ok))

	bad := ok
	bad.V = []float64{1}
	require.ErrorContains(t, app.Append(bad), `column "v" (batch_test.row.V): want 2 components for vector[2], got 1`)
	bad = ok
	bad.S = batch.SparseVector{Size: 4}
	require.ErrorContains(t, app.Append(bad), "size 4 in a column of sparse[3]")
	bad.S = batch.SparseVector{Indices: []int32{3}, Values: []float64{1}}
	require.ErrorContains(t, app.Append(bad), "index 3 is not below the size")
	bad.S = batch.SparseVector{Indices: []int32{1, 1}, Values: []float64{1, 1}}
	require.ErrorContains(t, app.Append(bad), "indices must ascend")
	bad = ok
	bad.T = time.Unix(math.MaxInt64/1000, 0)
	require.ErrorContains(t, app.Append(bad), "does not fit microseconds")

	require.NoError(t, app.Append(ok))
	rec := app.NewRecord()
	defer rec.Release()
	require.EqualValues(t, 2, rec.NumRows())
	require.NoError(t, batch.Validate(rec))
}

// widen reads a column with one row, of type typ, into a value of T.
func widen[T any](t *testing.T, mem memory.Allocator, typ, value string) (T, error) {
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "value "+typ+" null"), `[{"value": `+value+`}]`)
	defer rec.Release()
	codec, err := batch.NewCodec[T]()
	require.NoError(t, err)
	rows, err := codec.Rows(rec)
	if err != nil {
		return *new(T), err
	}
	return rows[0], nil
}

func TestBindWidens(t *testing.T) {
	mem := batchtest.Allocator(t)
	for _, typ := range []string{"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"} {
		n, err := widen[int64](t, mem, typ, "100")
		require.NoError(t, err, typ)
		require.EqualValues(t, 100, n)
	}
	for _, typ := range []string{"int8", "int16", "int32", "uint8", "uint16", "uint32", "float32", "float64"} {
		x, err := widen[float64](t, mem, typ, "100")
		require.NoError(t, err, typ)
		require.EqualValues(t, 100, x)
	}
	for typ, value := range map[string]string{
		"vector[2]": "[1, 0]", "vector32[2]": "[1, 0]", "vector": "[1, 0]", "vector32": "[1, 0]",
		"sparse[2]": `{"indices": [0], "values": [1]}`,
	} {
		v, err := widen[[]float64](t, mem, typ, value)
		require.NoError(t, err, typ)
		require.Equal(t, []float64{1, 0}, v, typ)
	}
	for typ, value := range map[string]string{
		"vector[2]": "[1, 0]", "vector32[2]": "[1, 0]", "vector": "[1, 0]", "vector32": "[1, 0]",
		"sparse[2]": `{"indices": [0], "values": [1]}`,
	} {
		v, err := widen[[2]float64](t, mem, typ, value)
		require.NoError(t, err, typ)
		require.Equal(t, [2]float64{1, 0}, v, typ)
		p, err := widen[*[2]float64](t, mem, typ, value)
		require.NoError(t, err, typ)
		require.Equal(t, &[2]float64{1, 0}, p, typ)
		p, err = widen[*[2]float64](t, mem, typ, "null")
		require.NoError(t, err, typ)
		require.Nil(t, p, typ)
	}
	for _, typ := range []string{"vector32[2]", "vector32"} {
		v, err := widen[[2]float32](t, mem, typ, "[1, 0.5]")
		require.NoError(t, err, typ)
		require.Equal(t, [2]float32{1, 0.5}, v, typ)
	}
	for _, typ := range []string{"vector", "vector32"} {
		require.EqualError(t, second(widen[[2]float64](t, mem, typ, "[1]")), `column "value" in row 0: want 2 components for [2]float64, got 1`)
		require.EqualError(t, second(widen[*[2]float64](t, mem, typ, "[]")), `column "value" in row 0: want 2 components for *[2]float64, got 0`)
	}
	raw, err := widen[[]byte](t, mem, "utf8", `"x"`)
	require.NoError(t, err)
	require.Equal(t, []byte("x"), raw)
	day, err := widen[time.Time](t, mem, "date32", `"1969-12-31"`)
	require.NoError(t, err)
	require.Equal(t, time.Unix(-86400, 0).UTC(), day)
	ns, err := widen[time.Time](t, mem, "timestamp[ns]", `"1969-12-31T23:59:59.999999999"`)
	require.NoError(t, err)
	require.Equal(t, time.Unix(0, -1).UTC(), ns)

	for _, err := range []error{
		second(widen[int32](t, mem, "int64", "1")), second(widen[float64](t, mem, "int64", "1")), second(widen[uint64](t, mem, "int8", "1")),
		second(widen[float32](t, mem, "float64", "1")), second(widen[string](t, mem, "binary", `"eA=="`)), second(widen[bool](t, mem, "int8", "1")),
		second(widen[[]float64](t, mem, "sparse", `{"indices": [], "values": []}`)), second(widen[[]float32](t, mem, "vector", "[1]")),
		second(widen[[2]float64](t, mem, "vector[1]", "[1]")), second(widen[[1]float32](t, mem, "vector", "[1]")), second(widen[[2]float64](t, mem, "sparse", `{"indices": [], "values": []}`)),
	} {
		require.ErrorContains(t, err, `column "value" is`)
	}
	_, err = widen[int64](t, mem, "int64", "null")
	require.EqualError(t, err, `column "value" is null in row 0, but int64 is not a pointer`)
}

func second[T any](_ T, err error) error { return err }

func TestBindExplainsWhatIsMissing(t *testing.T) {
	type point struct {
		SepalLength float64
		Species     *string
		Vec         []float64 `column:"vec,dim=3"`
	}
	codec, err := batch.NewCodec[point]()
	require.NoError(t, err)
	_, err = codec.Bind(batchtest.Schema(t, "sepal_lenght float64", "species int64", "vec vector[2]"))
	require.EqualError(t, err, `batch_test.point wants sepal_length float64, species utf8 null, vec vector[3]; `+
		`found columns: sepal_lenght float64, species int64, vec vector[2]: `+
		`no column "sepal_length" for batch_test.point.SepalLength, did you mean "sepal_lenght"?; `+
		`column "species" is int64, which does not fit batch_test.point.Species of type *string (column type utf8); `+
		`column "vec" is vector[2], which does not fit batch_test.point.Vec of type []float64 (column type vector[3])`)
}

// TestDeclaredLengths reads vector columns of each kind into slices whose tag declares the
// number of components.
func TestDeclaredLengths(t *testing.T) {
	type two struct {
		Value []float64 `column:"value,dim=2"`
	}
	mem := batchtest.Allocator(t)
	codec, err := batch.NewCodec[two]()
	require.NoError(t, err)
	for typ, rows := range map[string]string{
		"vector[2]": `[{"value": [0, 7]}, {"value": [1, 2]}]`,
		"vector32":  `[{"value": [0, 7]}, {"value": [1, 2]}]`,
		"vector":    `[{"value": [0, 7]}, {"value": [1, 2]}]`,
		"sparse[2]": `[{"value": {"indices": [1], "values": [7]}}, {"value": {"indices": [0, 1], "values": [1, 2]}}]`,
	} {
		rec := batchtest.Record(t, mem, batchtest.Schema(t, "value "+typ), rows)
		got, err := codec.Rows(rec)
		rec.Release()
		require.NoError(t, err, typ)
		require.Equal(t, []two{{[]float64{0, 7}}, {[]float64{1, 2}}}, got, typ)
	}
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "value vector"), `[{"value": [0, 7]}, {"value": [1, 2, 3]}]`)
	defer rec.Release()
	_, err = codec.Rows(rec)
	require.EqualError(t, err, `column "value" in row 1: want 2 components for batch_test.two.Value, got 3`)
}

func TestReaderGuardsItsBatch(t *testing.T) {
	mem := batchtest.Allocator(t)
	codec, err := batch.NewCodec[float64]()
	require.NoError(t, err)
	r, err := codec.Bind(batchtest.Schema(t, "value float64"))
	require.NoError(t, err)
	other := batchtest.Record(t, mem, batchtest.Schema(t, "value int64"), `[{"value": 1}]`)
	defer other.Release()
	require.ErrorContains(t, r.Reset(other), "the reader was bound to (value float64)")
	var x float64
	require.ErrorContains(t, r.Read(0, &x), "outside a batch of 0 rows")
	require.ErrorContains(t, r.Read(-1, &x), "row -1")
}

func TestScalarRowsCostNoAllocation(t *testing.T) {
	type row struct {
		A int64
		B float64
		C string
		D bool
		V []float64 `column:"v,dim=2"`
		W [3]float64
		T time.Time
	}
	codec, err := batch.NewCodec[row]()
	require.NoError(t, err)
	app := codec.Appender(memory.NewGoAllocator())
	vec := []float64{1, 2}
	fill := func() {
		for range 100 {
			_ = app.Append(row{V: vec, C: "x"})
		}
	}
	fill()
	rec := app.NewRecord()
	r, err := codec.Bind(rec.Schema())
	require.NoError(t, err)
	require.NoError(t, r.Reset(rec))
	var v row
	require.Zero(t, testing.AllocsPerRun(10, func() {
		for i := range r.Len() {
			_ = r.Read(i, &v)
		}
	}))
	perBatch := testing.AllocsPerRun(10, func() { fill(); app.NewRecord().Release() })
	require.Less(t, perBatch, 60.0, "the number of allocations must depend on the columns, not on the 100 rows")
}

func BenchmarkCodec(b *testing.B) {
	type row struct {
		ID    int64
		X, Y  float64
		Label string
	}
	codec, err := batch.NewCodec[row]()
	require.NoError(b, err)
	const rows = 8192
	mem := memory.NewGoAllocator()
	app := codec.Appender(mem)
	fill := func() arrow.Record {
		for i := range rows {
			_ = app.Append(row{ID: int64(i), X: float64(i), Y: 1, Label: "setosa"})
		}
		return app.NewRecord()
	}
	rec := fill()
	perRow := func(b *testing.B) {
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
	}
	b.Run("append", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			fill().Release()
		}
		perRow(b)
	})
	b.Run("read", func(b *testing.B) {
		b.ReportAllocs()
		r, err := codec.Bind(rec.Schema())
		require.NoError(b, err)
		require.NoError(b, r.Reset(rec))
		var v row
		for b.Loop() {
			for i := range rows {
				_ = r.Read(i, &v)
			}
		}
		perRow(b)
	})
	b.Run("read-by-arrow-accessors", func(b *testing.B) {
		var v row
		for b.Loop() {
			for i := range rows {
				v.ID = rec.Column(0).(*array.Int64).Value(i)
				v.X = rec.Column(1).(*array.Float64).Value(i)
				v.Y = rec.Column(2).(*array.Float64).Value(i)
				v.Label = rec.Column(3).(*array.String).Value(i)
			}
		}
		perRow(b)
	})
}
