package batch_test

import (
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

func TestTakeEqualsRowByRow(t *testing.T) {
	check(t, func(t *rapid.T, mem memory.Allocator) {
		rec := drawRecord(t, mem, drawSchema(t, allTypes, 0))
		defer rec.Release()
		var rows []int32
		if rec.NumRows() > 0 {
			rows = rapid.SliceOfN(rapid.Int32Range(0, int32(rec.NumRows())-1), 0, 20).Draw(t, "rows")
		}
		got, err := batch.Take(mem, rec, rows)
		require.NoError(t, err)
		defer got.Release()
		want := []string{}
		for _, i := range rows {
			want = append(want, line(rec, int(i)))
		}
		require.Equal(t, want, lines(got))
		require.NoError(t, batch.Validate(got))
		require.True(t, got.Schema().Equal(rec.Schema()))
	})
}

func TestConcatEqualsRowByRow(t *testing.T) {
	check(t, func(t *rapid.T, mem memory.Allocator) {
		schema := drawSchema(t, allTypes, 0)
		var recs []arrow.Record
		want := []string{}
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			rec := drawRecord(t, mem, schema)
			defer rec.Release()
			recs = append(recs, rec)
			want = append(want, lines(rec)...)
		}
		got, err := batch.Concat(mem, recs)
		require.NoError(t, err)
		defer got.Release()
		require.Equal(t, want, lines(got))
		require.NoError(t, batch.Validate(got))

		again, err := batch.Concat(mem, []arrow.Record{got})
		require.NoError(t, err)
		defer again.Release()
		require.Empty(t, batch.Diff(got, again))
		require.Equal(t, batch.Size(got), batch.Size(again))
	})
}

func TestGatherIsTakeOfConcat(t *testing.T) {
	check(t, func(t *rapid.T, mem memory.Allocator) {
		schema := drawSchema(t, allTypes, 0)
		var recs []arrow.Record
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			rec := drawRecord(t, mem, schema)
			defer rec.Release()
			recs = append(recs, rec)
		}
		var picks []batch.Pick
		want := []string{}
		for range rapid.IntRange(0, 6).Draw(t, "picks") {
			p := batch.Pick{Batch: rapid.IntRange(0, len(recs)-1).Draw(t, "batch")}
			if rec := recs[p.Batch]; rec.NumRows() > 0 {
				p.Rows = rapid.SliceOfN(rapid.Int32Range(0, int32(rec.NumRows())-1), 0, 5).Draw(t, "rows")
			}
			for _, i := range p.Rows {
				want = append(want, line(recs[p.Batch], int(i)))
			}
			picks = append(picks, p)
		}
		got, err := batch.Gather(mem, recs, picks)
		require.NoError(t, err)
		defer got.Release()
		require.Equal(t, want, lines(got))
		require.NoError(t, batch.Validate(got))
		require.True(t, got.Schema().Equal(schema))
	})
}

func TestGatherRefusesWhatIsNotThere(t *testing.T) {
	rec := batch.Empty(arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Int64}}, nil))
	defer rec.Release()
	_, err := batch.Gather(memory.DefaultAllocator, nil, nil)
	require.ErrorContains(t, err, "no batch given")
	_, err = batch.Gather(memory.DefaultAllocator, []arrow.Record{rec}, []batch.Pick{{Batch: 1}})
	require.ErrorContains(t, err, "batch 1 is not among 1 batches")
	_, err = batch.Gather(memory.DefaultAllocator, []arrow.Record{rec}, []batch.Pick{{Rows: []int32{0}}})
	require.ErrorContains(t, err, "row 0 is outside batch 0 of 0 rows")
}

func TestSliceAndRechunkKeepRows(t *testing.T) {
	check(t, func(t *rapid.T, mem memory.Allocator) {
		rec := drawRecord(t, mem, drawSchema(t, allTypes, 0))
		defer rec.Release()
		all := lines(rec)
		start := rapid.IntRange(0, len(all)).Draw(t, "start")
		end := rapid.IntRange(start, len(all)).Draw(t, "end")
		part, err := batch.Slice(rec, start, end)
		require.NoError(t, err)
		require.Equal(t, all[start:end], lines(part))
		require.NoError(t, batch.Validate(part))
		part.Release()

		n := rapid.IntRange(1, 5).Draw(t, "n")
		got := []string{}
		for chunk := range batch.Rechunk(rec, n) {
			require.LessOrEqual(t, chunk.NumRows(), int64(n))
			require.Positive(t, chunk.NumRows())
			got = append(got, lines(chunk)...)
			chunk.Release()
		}
		require.Equal(t, all, got)
	})
}

func TestDiffSeesWhatDiffers(t *testing.T) {
	check(t, func(t *rapid.T, mem memory.Allocator) {
		schema := drawSchema(t, allTypes, 1)
		a, b := drawRecord(t, mem, schema), drawRecord(t, mem, schema)
		defer a.Release()
		defer b.Release()
		same := a.NumRows() == b.NumRows()
		for i := 0; same && i < int(a.NumRows()); i++ {
			same = line(a, i) == line(b, i)
		}
		require.Equal(t, same, batch.Diff(a, b) == "", batch.Diff(a, b))
	})
}

func TestRowOperationsRefuseBadArguments(t *testing.T) {
	mem := batchtest.Allocator(t)
	schema := batchtest.Schema(t, "id int64", "name utf8 null")
	rec := batchtest.Record(t, mem, schema, `[{"id": 1, "name": "a"}, {"id": 2}]`)
	defer rec.Release()

	_, err := batch.Take(mem, rec, []int32{0, 2})
	require.EqualError(t, err, "take: row 2 (index 1) is outside a batch of 2 rows")
	_, err = batch.Take(mem, rec, []int32{-1})
	require.ErrorContains(t, err, "row -1")
	_, err = batch.Slice(rec, 1, 3)
	require.ErrorContains(t, err, "rows 1 to 3")
	_, err = batch.Concat(mem, nil)
	require.ErrorContains(t, err, "no batch given")
	_, err = batch.Select(rec, []int{2})
	require.ErrorContains(t, err, "no column 2")
	_, err = batch.WithColumn(rec, arrow.Field{Name: "id", Type: arrow.PrimitiveTypes.Int64}, rec.Column(1))
	require.ErrorContains(t, err, "declared int64, but the values are utf8")
	_, err = batch.WithColumn(rec, arrow.Field{Name: "n", Type: arrow.BinaryTypes.String}, rec.Column(1))
	require.ErrorContains(t, err, "1 nulls")

	other := batch.Empty(batchtest.Schema(t, "id int32"))
	defer other.Release()
	_, err = batch.Concat(mem, []arrow.Record{rec, other})
	require.EqualError(t, err, "concat: batch 1 has columns (id int32), batch 0 has (id int64, name utf8 null)")
}

func TestColumnOperations(t *testing.T) {
	mem := batchtest.Allocator(t)
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "id int64", "name utf8 null"), `[{"id": 1, "name": "a"}, {"id": 2}]`)
	defer rec.Release()

	swapped, err := batch.Select(rec, []int{1, 0})
	require.NoError(t, err)
	defer swapped.Release()
	require.Equal(t, []string{"a | 1", "null | 2"}, batchtest.Rows(swapped))

	vectors := batch.NewVectorArray(mem, []float64{1, 2, 3, 4}, 2)
	defer vectors.Release()
	wide, err := batch.WithColumn(rec, arrow.Field{Name: "v", Type: vectors.DataType()}, vectors)
	require.NoError(t, err)
	defer wide.Release()
	require.Equal(t, []string{"1 | a | [1 2]", "2 | null | [3 4]"}, batchtest.Rows(wide))

	replaced, err := batch.WithColumn(wide, arrow.Field{Name: "id", Type: vectors.DataType()}, vectors)
	require.NoError(t, err)
	defer replaced.Release()
	require.Equal(t, []string{"[1 2] | a | [1 2]", "[3 4] | null | [3 4]"}, batchtest.Rows(replaced))

	none, err := batch.Select(rec, nil)
	require.NoError(t, err)
	defer none.Release()
	require.EqualValues(t, 2, none.NumRows())
	require.Zero(t, batch.Size(none))
}

func TestSizeCountsWhatRowsUse(t *testing.T) {
	mem := batchtest.Allocator(t)
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "a int64", "b utf8", "v vector[2]", "s sparse[4]", "f bool"),
		`[{"a":1,"b":"xyz","v":[1,2],"s":{"indices":[1],"values":[2]},"f":true},
		  {"a":2,"b":"","v":[3,4],"s":{"indices":[],"values":[]},"f":false}]`)
	defer rec.Release()
	// Bytes: a 2*8; b 3*4+3; v 4*8; s 3*4+4 + 3*4+8; f 1.
	require.EqualValues(t, 16+15+32+36+1, batch.Size(rec))
	part, err := batch.Slice(rec, 1, 2)
	require.NoError(t, err)
	defer part.Release()
	require.EqualValues(t, 8+8+16+16+1, batch.Size(part))
	moved := batchtest.WithOffset(t, mem, rec)
	defer moved.Release()
	require.Equal(t, batch.Size(rec), batch.Size(moved))
	batchtest.Equal(t, rec, moved)
}

func TestEmpty(t *testing.T) {
	mem := batchtest.Allocator(t)
	for _, name := range allTypes {
		schema := batchtest.Schema(t, "c "+name)
		rec := batch.Empty(schema)
		require.NoError(t, batch.Validate(rec))
		both, err := batch.Concat(mem, []arrow.Record{rec, rec})
		require.NoError(t, err)
		batchtest.Equal(t, rec, both)
		both.Release()
		require.True(t, array.RecordEqual(rec, rec))
		rec.Release()
	}
}

func BenchmarkTake(b *testing.B) {
	mem := memory.NewGoAllocator()
	const rows = 8192
	vec := batch.NewVectorArray(mem, make([]float64, rows*16), 16)
	defer vec.Release()
	rec := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "v", Type: vec.DataType()}}, nil), []arrow.Array{vec}, rows)
	defer rec.Release()
	order := make([]int32, rows)
	for i := range order {
		order[i] = int32((i * 5923) % rows)
	}
	for b.Loop() {
		got, err := batch.Take(mem, rec, order)
		require.NoError(b, err)
		got.Release()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
}
