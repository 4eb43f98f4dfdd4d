package rows_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// checked checks the columns of rec as a batch after 10 other rows of its shard, and returns
// the checker.
func checked(t *testing.T, k rows.Checker, rec arrow.Record) *rows.Checker {
	t.Helper()
	k.Begin(10, int(rec.NumRows()))
	for i := range k.Columns {
		require.NoError(t, k.Columns[i].Bind(rec.Schema()))
		column := rec.Column(k.Columns[i].At)
		k.Check(i, column, column)
	}
	return &k
}

// TestWhatColumnsMustBe requires that a Checker finds the first row of a record that breaks the
// conditions of a Column, for each Use.
func TestWhatColumnsMustBe(t *testing.T) {
	mem := batchtest.Allocator(t)
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "x float64 null", "i int32", "b bool", "s utf8 null", "v vector32[2] null"), `[
		{"x": 1, "i": 3, "b": true, "s": "a", "v": [1, 2]},
		{"x": "-Inf", "i": -1, "b": false, "s": "b", "v": [1, "+Inf"]},
		{"x": "NaN", "i": 3, "b": true, "s": "c", "v": [1, 2]},
		{"i": 3, "b": true}]`)
	defer rec.Release()
	whole := rows.Range{Least: 1, Most: 3, Whole: true, Want: "want 1, 2 or 3"}
	for _, c := range []struct {
		column rows.Column
		want   string // a part of the error about the first row that is refused; empty if no row is refused
		cure   engine.Cure
	}{
		{rows.Column{Name: "x", Range: rows.Finite}, `row 11 of the shard: column "x" is -Inf; leave it`, engine.LeaveOut},
		{rows.Column{Name: "x", Role: "margin", Range: rows.Any}, `row 12 of the shard: column "x": the margin is NaN; leave it`, engine.LeaveOut},
		{rows.Column{Name: "x", Range: rows.Any, Missing: true}, "", engine.NoCure},
		{rows.Column{Name: "x", Range: rows.Finite, Required: true}, `column "x" is -Inf`, engine.NoCure},
		{rows.Column{Name: "x", Use: rows.Scalar, Range: rows.Any}, `row 12 of the shard: column "x" is NaN`, engine.LeaveOut},
		{rows.Column{Name: "i", Range: rows.Finite}, "", engine.NoCure},
		{rows.Column{Name: "i", Range: whole}, `row 11 of the shard: column "i" is -1; want 1, 2 or 3`, engine.NoCure},
		{rows.Weights("i"), `row 11 of the shard: column "i": the weight is -1; a weight is 0 or more`, engine.NoCure},
		{rows.Weights("b"), "", engine.NoCure},
		{rows.Column{Name: "s", Use: rows.Class, Range: rows.Finite}, `row 13 of the shard: column "s" is null`, engine.LeaveOut},
		{rows.Column{Name: "s", Use: rows.Class, Range: rows.Finite, Missing: true}, "", engine.NoCure},
		{rows.Column{Name: "v", Use: rows.Vector, Range: rows.Finite}, `row 11 of the shard: column "v": component 1 is +Inf`, engine.LeaveOut},
		{rows.Column{Name: "v", Use: rows.Vector, Range: rows.Any}, `row 13 of the shard: column "v" is null`, engine.LeaveOut},
	} {
		err := checked(t, rows.Checker{Columns: []rows.Column{c.column}, Advice: "leave it"}, rec).Err()
		if c.want == "" {
			require.NoError(t, err, "the column must be accepted: %v", c.column)
			continue
		}
		require.ErrorContains(t, err, c.want)
		var bad *engine.RowError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, c.cure, bad.Cure, c.want)
	}
}

func TestRowsAreLeftOutForTheFirstColumnThatTheyLack(t *testing.T) {
	mem := batchtest.Allocator(t)
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "x float64 null", "v vector[1] null", "w float64 null"), `[
		{"x": 1, "v": [1], "w": 1}, {"x": "NaN", "v": ["NaN"], "w": 1}, {"x": 1, "w": 1}, {"x": 1, "v": [1], "w": "+Inf"}, {}]`)
	defer rec.Release()
	columns := []rows.Column{{Name: "x", Range: rows.Finite}, {Name: "v", Use: rows.Vector, Range: rows.Finite}, rows.Weights("w")}
	k := checked(t, rows.Checker{Columns: columns, Skip: true}, rec)
	require.NoError(t, k.Err())
	require.Equal(t, []bool{false, true, true, true, true}, k.LeftOut())
	require.Equal(t, []int64{2, 1, 1}, k.Lacking)
	columns[2].Required = true
	require.ErrorContains(t, checked(t, rows.Checker{Columns: columns, Skip: true}, rec).Err(), `row 13 of the shard: column "w": the weight is +Inf; a weight is 0 or more`)
	none := rec.NewSlice(0, 1)
	defer none.Release()
	k = checked(t, rows.Checker{Columns: columns, Skip: true}, none)
	require.Nil(t, k.LeftOut())
	require.Nil(t, k.Lacking)
}

// TestIndicesWithoutASize requires that bad indices of sparse vectors without a declared size
// are refused.
func TestIndicesWithoutASize(t *testing.T) {
	for text, indices := range map[string][]int32{
		"index 2147483647 is too large": {0, math.MaxInt32}, "index 2 occurs twice": {2, 2}, "": {0, math.MaxInt32 - 1},
	} {
		arr, err := batch.NewSparseArray(memory.NewGoAllocator(), batch.CSR{Indptr: []int32{0, 2}, Indices: []int32{0, 1}, Values: []float64{1, 1}})
		require.NoError(t, err)
		view, ok := batch.SparseView(arr)
		require.True(t, ok)
		copy(view.Indices, indices) // NewSparseArray would have refused these indices
		rec := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "v", Type: arr.DataType()}}, nil), []arrow.Array{arr}, 1)
		got := fmt.Sprint(checked(t, rows.Checker{Columns: []rows.Column{{Name: "v", Use: rows.Vector, Range: rows.Finite}}}, rec).Err())
		if text == "" {
			require.Equal(t, "<nil>", got)
			continue
		}
		require.Contains(t, got, text)
	}
}
