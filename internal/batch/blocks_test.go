package batch_test

import (
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// TestBlockRoundTrip requires that blocks can be read in any order, also blocks of slices and
// of empty batches, and that the reader holds no memory between two reads.
func TestBlockRoundTrip(t *testing.T) {
	check(t, func(t *rapid.T, mem memory.Allocator) {
		schema := drawSchema(t, allTypes, 0)
		w, err := batch.NewBlockWriter(schema, mem)
		require.NoError(t, err)
		var blocks [][]byte
		var recs []arrow.Record
		for range rapid.IntRange(1, 4).Draw(t, "batches") {
			whole := drawRecord(t, mem, schema)
			lo := rapid.IntRange(0, int(whole.NumRows())).Draw(t, "lo")
			rec, err := batch.Slice(whole, lo, rapid.IntRange(lo, int(whole.NumRows())).Draw(t, "hi"))
			whole.Release()
			require.NoError(t, err)
			defer rec.Release()
			var block bytes.Buffer
			require.NoError(t, w.Write(&block, rec))
			blocks, recs = append(blocks, block.Bytes()), append(recs, rec)
		}
		r, err := batch.NewBlockReader(schema, mem)
		require.NoError(t, err)
		for _, i := range rapid.SliceOfN(rapid.IntRange(0, len(recs)-1), 1, 8).Draw(t, "order") {
			rec, err := r.Read(blocks[i], recs[i].NumRows())
			require.NoError(t, err)
			require.Equal(t, lines(recs[i]), lines(rec))
			require.Same(t, schema, rec.Schema())
			rec.Release()
		}
	})
}

// TestDamagedBlocksAreErrors requires an error, which is not io.EOF, for a block that is cut,
// too long or has another number of rows; further reads must return the same error. For a block
// with any one byte altered, it requires an error or a batch with the expected number of rows.
// Reading must take no more memory than the block has bytes, and release all of it.
func TestDamagedBlocksAreErrors(t *testing.T) {
	mem := batchtest.Allocator(t)
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "id int64 null", "name utf8", "v vector[2]", "s sparse[9]", "l vector", "b bool null"), `[
		{"id": 1, "name": "a", "v": [1, 2], "s": {"indices": [1, 8], "values": [1, 2]}, "l": [1], "b": true},
		{"name": "bc", "v": [3, 4], "s": {"indices": [], "values": []}, "l": []}]`)
	defer rec.Release()
	w, err := batch.NewBlockWriter(rec.Schema(), mem)
	require.NoError(t, err)
	var block bytes.Buffer
	require.NoError(t, w.Write(&block, rec))
	good := block.Bytes()
	read := func(b []byte, rows int64) error {
		r, err := batch.NewBlockReader(rec.Schema(), mem)
		require.NoError(t, err)
		got, err := r.Read(b, rows)
		if err != nil {
			require.NotErrorIs(t, err, io.EOF)
			_, again := r.Read(good, 2)
			require.Equal(t, err, again)
			return err
		}
		require.Equal(t, rows, got.NumRows())
		for i, col := range got.Columns() {
			require.EqualValues(t, rows, col.Len(), got.ColumnName(i))
		}
		got.Release()
		return nil
	}
	require.NoError(t, read(good, 2))
	require.ErrorContains(t, read(good, 3), "does not hold 3 rows: it holds 2")
	require.ErrorContains(t, read(good, 1), "does not hold 1 rows: it holds 2")
	require.ErrorContains(t, read(append(bytes.Clone(good), 0), 2), "bytes where")
	for n := range good {
		require.Error(t, read(good[:n], 2), "a block cut to %d bytes must be an error", n)
	}
	for i := range good {
		for _, x := range []byte{0xff, 0x80, 0x01} {
			bad := bytes.Clone(good)
			bad[i] ^= x
			_ = read(bad, 2)
		}
	}
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0, 0, 0, 0}
	require.ErrorIs(t, read(huge, 2), io.ErrUnexpectedEOF)
}

// TestBlocksThatLie requires an error for well-formed metadata that are inconsistent: the
// length of a column differs from the number of rows, or buffers overlap.
func TestBlocksThatLie(t *testing.T) {
	mem := batchtest.Allocator(t)
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "a int64", "b int64"), `[{"a": 1, "b": 4}, {"a": 2, "b": 5}, {"a": 3, "b": 6}]`)
	defer rec.Release()
	w, err := batch.NewBlockWriter(rec.Schema(), mem)
	require.NoError(t, err)
	var block bytes.Buffer
	require.NoError(t, w.Write(&block, rec))
	numbers := func(ns ...uint64) (b []byte) {
		for _, n := range ns {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		return b
	}
	const size = 3 * 8 // bytes per column; the body has two columns
	a := bytes.Index(block.Bytes(), numbers(0, size))
	nodes := bytes.Index(block.Bytes(), numbers(3, 0, 3, 0)) // length and number of nulls of each column
	require.Positive(t, a)
	require.Positive(t, nodes)
	for name, c := range map[string]struct {
		at   int
		lie  []byte
		says string
	}{
		"the truth":             {nodes, numbers(3, 0, 3, 0), ""},
		"a value more in a":     {nodes, numbers(4, 0, 3, 0), `column "a" has 4 values`},
		"a value more in b":     {nodes, numbers(3, 0, 4, 0), `column "b" has 4 values`},
		"a value fewer in a":    {nodes, numbers(2, 0, 3, 0), "a block of"},
		"a value more in both":  {nodes, numbers(4, 0, 4, 0), `column "a" has 4 values`},
		"one buffer over other": {a, numbers(0, 2*size), "its metadata is damaged"},
		"a buffer half outside": {a, numbers(size+8, size), "its metadata is damaged"},
		"a buffer outside":      {a, numbers(3*size, 0), "its metadata is damaged"},
		"a buffer before":       {a, numbers(math.MaxUint64-7, size), "its metadata is damaged"},
		"a buffer of less":      {a, numbers(0, math.MaxUint64-7), "its metadata is damaged"},
	} {
		t.Run(name, func(t *testing.T) {
			lying := bytes.Clone(block.Bytes())
			copy(lying[c.at:], c.lie)
			r, err := batch.NewBlockReader(rec.Schema(), mem)
			require.NoError(t, err)
			got, err := r.Read(lying, 3)
			if c.says == "" {
				require.NoError(t, err)
				require.Equal(t, lines(rec), lines(got))
				got.Release()
				return
			}
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, "does not hold 3 rows: ")
		})
	}
}
