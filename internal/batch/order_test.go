package batch_test

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// refCompare compares two values in the documented order. It uses only Arrow's accessors.
func refCompare(a arrow.Array, i int, b arrow.Array, j int, key batch.SortKey) int {
	if a.IsNull(i) || b.IsNull(j) {
		c := cmp.Compare(flag(a.IsNull(i)), flag(b.IsNull(j)))
		if key.NullsFirst {
			return -c
		}
		return c
	}
	c := 0
	switch a := a.(type) {
	case *array.Boolean:
		c = cmp.Compare(flag(a.Value(i)), flag(b.(*array.Boolean).Value(j)))
	case *array.Int8:
		c = cmp.Compare(a.Value(i), b.(*array.Int8).Value(j))
	case *array.Int16:
		c = cmp.Compare(a.Value(i), b.(*array.Int16).Value(j))
	case *array.Int32:
		c = cmp.Compare(a.Value(i), b.(*array.Int32).Value(j))
	case *array.Int64:
		c = cmp.Compare(a.Value(i), b.(*array.Int64).Value(j))
	case *array.Uint8:
		c = cmp.Compare(a.Value(i), b.(*array.Uint8).Value(j))
	case *array.Uint16:
		c = cmp.Compare(a.Value(i), b.(*array.Uint16).Value(j))
	case *array.Uint32:
		c = cmp.Compare(a.Value(i), b.(*array.Uint32).Value(j))
	case *array.Uint64:
		c = cmp.Compare(a.Value(i), b.(*array.Uint64).Value(j))
	case *array.Float32:
		c = refFloats(float64(a.Value(i)), float64(b.(*array.Float32).Value(j)))
	case *array.Float64:
		c = refFloats(a.Value(i), b.(*array.Float64).Value(j))
	case *array.String:
		c = cmp.Compare(a.Value(i), b.(*array.String).Value(j))
	case *array.Binary:
		c = bytes.Compare(a.Value(i), b.(*array.Binary).Value(j))
	case *array.Date32:
		c = cmp.Compare(a.Value(i), b.(*array.Date32).Value(j))
	case *array.Timestamp:
		c = cmp.Compare(a.Value(i), b.(*array.Timestamp).Value(j))
	default:
		panic(a.DataType())
	}
	if key.Descending {
		return -c
	}
	return c
}

func flag(b bool) int {
	if b {
		return 1
	}
	return 0
}

func refFloats(x, y float64) int {
	if math.IsNaN(x) || math.IsNaN(y) {
		return cmp.Compare(flag(math.IsNaN(x)), flag(math.IsNaN(y)))
	}
	return cmp.Compare(x, y)
}

func refRows(a arrow.Record, i int, b arrow.Record, j int, keys []batch.SortKey) int {
	for _, k := range keys {
		if c := refCompare(a.Column(k.Column), i, b.Column(k.Column), j, k); c != 0 {
			return c
		}
	}
	return 0
}

func drawKeys(t *rapid.T, columns int) []batch.SortKey {
	keys := make([]batch.SortKey, rapid.IntRange(0, 3).Draw(t, "keys"))
	for i := range keys {
		keys[i] = batch.SortKey{Column: rapid.IntRange(0, columns-1).Draw(t, "column"),
			Descending: rapid.Bool().Draw(t, "descending"), NullsFirst: rapid.Bool().Draw(t, "nulls first")}
	}
	return keys
}

func TestSortIndicesEqualsStableSort(t *testing.T) {
	check(t, func(t *rapid.T, mem memory.Allocator) {
		rec := drawRecord(t, mem, drawSchema(t, keyTypes, 1))
		defer rec.Release()
		keys := drawKeys(t, int(rec.NumCols()))
		want := make([]int32, rec.NumRows())
		for i := range want {
			want[i] = int32(i)
		}
		slices.SortStableFunc(want, func(i, j int32) int { return refRows(rec, int(i), rec, int(j), keys) })
		got, err := batch.SortIndices(rec, keys, make([]int32, 2))
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func TestCompareEqualsReference(t *testing.T) {
	check(t, func(t *rapid.T, mem memory.Allocator) {
		schema := drawSchema(t, keyTypes, 1)
		a, b := drawRecord(t, mem, schema), drawRecord(t, mem, schema)
		defer a.Release()
		defer b.Release()
		keys := drawKeys(t, schema.NumFields())
		c, err := batch.NewComparer(a, b, keys)
		require.NoError(t, err)
		for i := range int(a.NumRows()) {
			for j := range int(b.NumRows()) {
				want := refRows(a, i, b, j, keys)
				require.Equal(t, want, c.Compare(i, j))
			}
		}
	})
}

// TestSortKeepsTheOrderOfTies sorts so many rows with so few different values that an unstable
// sort would change the order of equal rows.
func TestSortKeepsTheOrderOfTies(t *testing.T) {
	type row struct {
		A *int64
		B int64
	}
	codec, err := batch.NewCodec[row]()
	require.NoError(t, err)
	rows := make([]row, 2000)
	for i := range rows {
		if k := int64(i * 7 % 5); k > 0 {
			rows[i].A = &k
		}
		rows[i].B = int64(i * 31 % 97 % 3)
	}
	rec, err := codec.Record(batchtest.Allocator(t), rows)
	require.NoError(t, err)
	defer rec.Release()
	for _, descending := range []bool{false, true} {
		keys := []batch.SortKey{{Descending: descending}, {Column: 1, Descending: !descending}}
		got, err := batch.SortIndices(rec, keys, nil)
		require.NoError(t, err)
		for k := 1; k < len(got); k++ {
			c := refRows(rec, int(got[k-1]), rec, int(got[k]), keys)
			require.True(t, c < 0 || (c == 0 && got[k-1] < got[k]), "the row at position %d must come after the row before it", k)
		}
	}
}

func TestSortSpelledOut(t *testing.T) {
	mem := batchtest.Allocator(t)
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "x float64 null", "id int32"), `[
		{"x": "NaN", "id": 0}, {"x": 0.0, "id": 1}, {"id": 2}, {"x": -0.0, "id": 3}, {"x": "-Inf", "id": 4}, {"x": "+Inf", "id": 5}, {"x": 1, "id": 6}]`)
	defer rec.Release()
	for _, c := range []struct {
		key  batch.SortKey
		want []int32
	}{
		{batch.SortKey{}, []int32{4, 1, 3, 6, 5, 0, 2}},
		{batch.SortKey{Descending: true}, []int32{0, 5, 6, 1, 3, 4, 2}},
		{batch.SortKey{NullsFirst: true}, []int32{2, 4, 1, 3, 6, 5, 0}},
		{batch.SortKey{Descending: true, NullsFirst: true}, []int32{2, 0, 5, 6, 1, 3, 4}},
	} {
		got, err := batch.SortIndices(rec, []batch.SortKey{c.key}, nil)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%+v", c.key)
	}
}

func TestSortRefusesVectors(t *testing.T) {
	schema := batchtest.Schema(t, "v vector[2]", "s sparse")
	require.ErrorContains(t, batch.CheckSortable(schema, []batch.SortKey{{Column: 0}}), `sort key: column "v" is vector[2]`)
	require.ErrorContains(t, batch.CheckSortable(schema, []batch.SortKey{{Column: 2}}), "no column 2")
	rec := batch.Empty(schema)
	defer rec.Release()
	_, err := batch.SortIndices(rec, []batch.SortKey{{Column: 1}}, nil)
	require.ErrorContains(t, err, `column "s" is sparse`)
	_, err = batch.NewComparer(rec, rec, []batch.SortKey{{Column: -1}})
	require.ErrorContains(t, err, "no column -1")
}
