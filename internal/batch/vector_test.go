package batch_test

import (
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

func TestViewsEqualRowByRow(t *testing.T) {
	check(t, func(t *rapid.T, mem memory.Allocator) {
		cols := []batch.Column{{Name: "d", Type: "vector[3]"}, {Name: "f", Type: "vector32[2]"}, {Name: "l", Type: "vector"}, {Name: "s", Type: "sparse[9]"}}
		schema, err := batch.Schema(cols)
		require.NoError(t, err)
		rec := drawRecord(t, mem, schema)
		defer rec.Release()
		rows := int(rec.NumRows())

		data, dim, ok := batch.DenseView(rec.Column(0))
		require.True(t, ok)
		require.Equal(t, 3, dim)
		require.Len(t, data, rows*3)
		data32, dim32, ok := batch.DenseView32(rec.Column(1))
		require.True(t, ok)
		require.Equal(t, 2, dim32)
		require.Len(t, data32, rows*2)
		indptr, values, ok := batch.RaggedView(rec.Column(2))
		require.True(t, ok)
		csr, ok := batch.SparseView(rec.Column(3))
		require.True(t, ok)
		require.Equal(t, rows, csr.Rows())
		require.Equal(t, 9, csr.Size)

		for i := range rows {
			sameBits(t, rec.Column(0), i, data[i*3:(i+1)*3])
			list := rec.Column(1).(*array.FixedSizeList)
			lo, _ := list.ValueOffsets(i)
			for k := range 2 {
				require.Equal(t, math.Float32bits(list.ListValues().(*array.Float32).Value(int(lo)+k)), math.Float32bits(data32[i*2+k]))
			}
			sameBits(t, rec.Column(2), i, values[indptr[i]:indptr[i+1]])
			indices, values := csr.Indices[csr.Indptr[i]:csr.Indptr[i+1]], csr.Values[csr.Indptr[i]:csr.Indptr[i+1]]
			s := rec.Column(3).(*array.Struct)
			sameBits(t, s.Field(1), i, values)
			at := s.Field(0).(*array.List)
			lo, hi := at.ValueOffsets(i)
			require.Len(t, indices, int(hi-lo))
			for k := range indices {
				require.Equal(t, at.ListValues().(*array.Int32).Value(int(lo)+k), indices[k])
			}
		}
		again, err := batch.NewSparseArray(mem, csr)
		require.NoError(t, err)
		defer again.Release()
		for i := range rows {
			require.Equal(t, cell(rec.Column(3), i), cell(again, i))
		}
	})
}

func sameBits(t *rapid.T, list arrow.Array, i int, got []float64) {
	l := list.(array.ListLike)
	lo, hi := l.ValueOffsets(i)
	require.Len(t, got, int(hi-lo))
	for k, x := range got {
		require.Equal(t, math.Float64bits(l.ListValues().(*array.Float64).Value(int(lo)+k)), math.Float64bits(x))
	}
}

func TestViewsRefuseNullsAndOtherTypes(t *testing.T) {
	mem := batchtest.Allocator(t)
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "d vector[1] null", "f vector32[1] null", "l vector null", "s sparse null"), `[
		{"d": [1], "f": [1], "l": [1], "s": {"indices": [], "values": []}}, {}]`)
	defer rec.Release()
	ok := func(rec arrow.Record) []bool {
		_, _, a := batch.DenseView(rec.Column(0))
		_, _, b := batch.DenseView32(rec.Column(1))
		_, _, c := batch.RaggedView(rec.Column(2))
		_, d := batch.SparseView(rec.Column(3))
		return []bool{a, b, c, d}
	}
	require.Equal(t, []bool{false, false, false, false}, ok(rec))
	first, err := batch.Slice(rec, 0, 1)
	require.NoError(t, err)
	defer first.Release()
	require.Equal(t, []bool{true, true, true, true}, ok(first), "all views of a slice without the null must be possible")
	turned, err := batch.Select(first, []int{3, 0, 1, 2})
	require.NoError(t, err)
	defer turned.Release()
	require.Equal(t, []bool{false, false, false, false}, ok(turned))
}

// TestSparseViewOfShiftedLists tests a sparse column whose two lists have different offsets, as
// other programs may write it.
func TestSparseViewOfShiftedLists(t *testing.T) {
	mem := batchtest.Allocator(t)
	dt, err := batch.SparseType(5)
	require.NoError(t, err)
	list := func(field int, offs []int32, n int, buf *memory.Buffer) arrow.ArrayData {
		lt := dt.(*arrow.StructType).Field(field).Type.(*arrow.ListType)
		child := array.NewData(lt.Elem(), n, []*memory.Buffer{nil, buf}, nil, 0, 0)
		defer child.Release()
		return array.NewData(lt, 2, []*memory.Buffer{nil, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(offs))}, []arrow.ArrayData{child}, 0, 0)
	}
	for _, c := range []struct {
		ioffs, voffs []int32
		ok           bool
	}{{[]int32{0, 1, 3}, []int32{2, 3, 5}, true}, {[]int32{2, 3, 5}, []int32{0, 1, 3}, true}} {
		idx, val := make([]int32, 5), make([]float64, 5)
		for k := range 3 {
			idx[int(c.ioffs[0])+k], val[int(c.voffs[0])+k] = int32(k), float64(k)+0.5
		}
		i := list(0, c.ioffs, 5, memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(idx)))
		v := list(1, c.voffs, 5, memory.NewBufferBytes(arrow.Float64Traits.CastToBytes(val)))
		d := array.NewData(dt, 2, []*memory.Buffer{nil}, []arrow.ArrayData{i, v}, 0, 0)
		arr := array.NewStructData(d)
		csr, ok := batch.SparseView(arr)
		require.True(t, ok)
		require.Equal(t, []int32{1, 2}, csr.Indices[csr.Indptr[1]:csr.Indptr[2]])
		require.Equal(t, []float64{1.5, 2.5}, csr.Values[csr.Indptr[1]:csr.Indptr[2]])
		copied, err := batch.NewSparseArray(mem, csr)
		require.NoError(t, err)
		require.Equal(t, "[1:1.5 2:2.5]", batch.FormatValue(copied, 1))
		for _, r := range []interface{ Release() }{copied, arr, d, i, v} {
			r.Release()
		}
	}
}

func TestVectorArrays(t *testing.T) {
	mem := batchtest.Allocator(t)
	data := []float64{1, 2, 3, 4}
	copied, wrapped := batch.NewVectorArray(mem, data, 2), batch.WrapVectorArray(data, 2)
	defer copied.Release()
	defer wrapped.Release()
	data[0] = 9
	require.Equal(t, "[1 2]", batch.FormatValue(copied, 0))
	require.Equal(t, "[9 2]", batch.FormatValue(wrapped, 0))
	require.Equal(t, 2, batch.VectorDim(copied.DataType()))
	require.Panics(t, func() { batch.NewVectorArray(mem, data, 3) })
	require.Panics(t, func() { batch.NewVectorArray(mem, data, 0) })

	for want, c := range map[string]batch.CSR{
		"at least one row pointer": {Size: 3},
		"spans 0 to 2":             {Size: 3, Indptr: []int32{0, 2}, Indices: []int32{1}, Values: []float64{1}},
		"spans 1 to 0":             {Size: 3, Indptr: []int32{1, 0}, Indices: []int32{1}, Values: []float64{1}},
		"index 3 but size 3":       {Size: 3, Indptr: []int32{0, 1}, Indices: []int32{3}, Values: []float64{1}},
		"negative index":           {Size: 3, Indptr: []int32{0, 1}, Indices: []int32{-3}, Values: []float64{1}},
		"size -1":                  {Size: -1, Indptr: []int32{0}},
	} {
		_, err := batch.NewSparseArray(mem, c)
		require.ErrorContains(t, err, want)
	}
}

func TestVectorsReadAnyKind(t *testing.T) {
	mem := batchtest.Allocator(t)
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "v vector[2] null", "w vector32[2] null", "l vector null", "m vector32 null", "s sparse null"), `[
		{"v": [1, 2], "w": [1, 2], "l": [1, 2], "m": [1, 2], "s": {"indices": [4], "values": [7]}}, {},
		{"v": [3, 4.5], "w": [3, 4.5], "l": [3, 4.5], "m": [3, 4.5], "s": {"indices": [2, 5], "values": [1, 9]}}]`)
	defer rec.Release()
	moved := batchtest.WithOffset(t, mem, rec)
	defer moved.Release()
	for _, r := range []arrow.Record{rec, moved} {
		for c := range 4 {
			v := batch.VectorsOf(r.Column(c))
			require.Equal(t, []float64{1, 2}, v.Dense(0))
			require.Equal(t, []float64{3, 4.5}, v.Dense(2))
			require.Equal(t, 4.5, v.Component(2, 1))
			require.True(t, v.Null(1) && !v.Null(2))
			indices, _ := v.Sparse(0)
			require.Nil(t, indices)
		}
		v := batch.VectorsOf(r.Column(4))
		indices, values := v.Sparse(2)
		require.Equal(t, []int32{2, 5}, indices)
		require.Equal(t, []float64{1, 9}, values)
		require.Equal(t, []float64{9, 0}, []float64{v.Component(2, 5), v.Component(2, 3)})
		require.True(t, v.Null(1) && !v.Null(0))
		require.Nil(t, v.Dense(0))
	}
}

func TestFirstNonFinite(t *testing.T) {
	mem := batchtest.Allocator(t)
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "x float64 null", "f float32", "v vector[2]", "w vector32[1]", "s sparse", "l vector", "i int64", "ok float64"), `[
		{"x": 1, "f": 1, "v": [1, 2], "w": [1], "s": {"indices": [4], "values": [1]}, "l": [], "i": 1, "ok": 1e308},
		{"f": 1, "v": [3, "NaN"], "w": [1], "s": {"indices": [2, 4], "values": [1, "-Inf"]}, "l": [1], "i": 2, "ok": -1e308},
		{"x": "+Inf", "f": "NaN", "v": ["NaN", 1], "w": ["+Inf"], "s": {"indices": [], "values": []}, "l": [1, 2, "NaN"], "i": 3, "ok": 0}]`)
	defer rec.Release()
	moved := batchtest.WithOffset(t, mem, rec)
	defer moved.Release()
	for c, want := range [][2]int{{2, 0}, {2, 0}, {1, 1}, {2, 0}, {1, 4}, {2, 2}, {-1, 0}, {-1, 0}} {
		for _, r := range []arrow.Record{rec, moved} {
			row, component, bad := batch.FirstNonFinite(r.Column(c), 0)
			require.Equal(t, want[0] >= 0, bad, r.ColumnName(c))
			if bad {
				require.Equal(t, want, [2]int{row, component}, r.ColumnName(c))
			}
			next, _, more := batch.FirstNonFinite(r.Column(c), row+1)
			require.Equal(t, r.ColumnName(c) == "v", more && next == 2, "only column v must have another NaN or infinity, in row 2")
		}
	}
}

func TestNormalize(t *testing.T) {
	mem := batchtest.Allocator(t)
	b := array.NewFixedSizeListBuilder(mem, 2, arrow.PrimitiveTypes.Float64)
	defer b.Release()
	values := b.ValueBuilder().(*array.Float64Builder)
	b.Append(true)
	values.AppendValues([]float64{1, 2}, nil)
	b.AppendNull() // a null row, with null items
	b.Append(true)
	values.AppendValues([]float64{3, 4}, nil)
	arr := b.NewArray()
	defer arr.Release()
	rec := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "v", Type: arr.DataType(), Nullable: true}}, nil), []arrow.Array{arr}, 3)
	defer rec.Release()

	got, err := batch.Normalize(rec)
	require.NoError(t, err)
	defer got.Release()
	require.Equal(t, []string{"[1 2]", "null", "[3 4]"}, batchtest.Rows(got))
	require.True(t, got.Schema().Equal(batchtest.Schema(t, "v vector[2] null")))

	b.Append(true)
	values.Append(1)
	values.AppendNull()
	holed := b.NewArray()
	defer holed.Release()
	bad := array.NewRecord(rec.Schema(), []arrow.Array{holed}, 1)
	defer bad.Release()
	_, err = batch.Normalize(bad)
	require.ErrorContains(t, err, `column "v": row 0 has a null component`)
}

func TestSparseVectorClone(t *testing.T) {
	v := batch.SparseVector{Size: 3, Indices: []int32{1}, Values: []float64{2}}
	c := v.Clone()
	c.Indices[0], c.Values[0] = 2, 9
	require.Equal(t, batch.SparseVector{Size: 3, Indices: []int32{1}, Values: []float64{2}}, v)
	require.ErrorContains(t, (&batch.SparseVector{Indices: []int32{1}}).Validate(), "1 indices but 0 values")
}

func TestIsNumber(t *testing.T) {
	for dt, want := range map[arrow.DataType]bool{
		arrow.FixedWidthTypes.Boolean: true, arrow.PrimitiveTypes.Int8: true, arrow.PrimitiveTypes.Uint64: true, arrow.PrimitiveTypes.Float32: true,
		arrow.BinaryTypes.String: false, arrow.FixedWidthTypes.Date32: false, batch.VariableVectorType(): false,
	} {
		require.Equal(t, want, batch.IsNumber(dt), dt)
	}
}
