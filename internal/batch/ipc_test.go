package batch_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

func TestStreamRoundTrip(t *testing.T) {
	check(t, func(t *rapid.T, mem memory.Allocator) {
		schema := drawSchema(t, allTypes, 0)
		var stream bytes.Buffer
		w := batch.NewStreamWriter(&stream, schema, mem)
		var recs []arrow.Record
		for range rapid.IntRange(0, 3).Draw(t, "batches") {
			rec := drawRecord(t, mem, schema)
			defer rec.Release()
			require.NoError(t, w.Write(rec))
			recs = append(recs, rec)
		}
		require.NoError(t, w.Close())
		require.NoError(t, w.Close())

		r, err := batch.NewStreamReader(&stream, mem)
		require.NoError(t, err)
		require.True(t, schema.Equal(r.Schema()), "%s\n%s", schema, r.Schema())
		var got []arrow.Record
		for range recs {
			rec, err := r.Read()
			require.NoError(t, err)
			defer rec.Release()
			got = append(got, rec)
		}
		for range 2 {
			_, err = r.Read()
			require.Equal(t, io.EOF, err)
		}
		r.Release() // batches remain valid after Release
		for i := range recs {
			require.Equal(t, lines(recs[i]), lines(got[i]))
			require.True(t, got[i].Schema().Equal(schema))
		}
	})
}

func stream(t testing.TB, mem memory.Allocator) []byte {
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "id int64 null", "name utf8", "v vector[2]", "s sparse[9]", "l vector", "b bool null"), `[
		{"id": 1, "name": "a", "v": [1, 2], "s": {"indices": [1, 8], "values": [1, 2]}, "l": [1], "b": true},
		{"name": "bc", "v": [3, 4], "s": {"indices": [], "values": []}, "l": []}]`)
	defer rec.Release()
	var buf bytes.Buffer
	w := batch.NewStreamWriter(&buf, rec.Schema(), mem)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	return buf.Bytes()
}

// readAll reads a stream up to its end or an error, passes every batch to use, releases
// everything, and returns the number of rows.
func readAll(mem memory.Allocator, raw []byte) (rows int64, err error) {
	r, err := batch.NewStreamReader(bytes.NewReader(raw), mem)
	if err != nil {
		return 0, err
	}
	defer r.Release()
	for {
		rec, err := r.Read()
		if err == io.EOF {
			return rows, nil
		}
		if err != nil {
			return rows, err
		}
		rows += rec.NumRows()
		use(mem, rec)
		rec.Release()
	}
}

// use calls functions that would panic or read out of bounds for a batch with wrong buffers.
func use(mem memory.Allocator, rec arrow.Record) {
	batchtest.Rows(rec)
	batch.Size(rec)
	for c := range int(rec.NumCols()) {
		batch.FirstNonFinite(rec.Column(c), 0)
		batch.DenseView(rec.Column(c))
		batch.SparseView(rec.Column(c))
	}
	if again, err := batch.Concat(mem, []arrow.Record{rec, rec}); err == nil {
		again.Release()
	}
}

func TestDamagedStreamsAreErrors(t *testing.T) {
	mem := batchtest.Allocator(t)
	raw := stream(t, mem)
	rows, err := readAll(mem, raw)
	require.NoError(t, err)
	require.EqualValues(t, 2, rows)

	for n := range raw {
		_, err := readAll(mem, raw[:n])
		require.ErrorIs(t, err, io.ErrUnexpectedEOF, "a stream cut to %d of %d bytes must be an unexpected end", n, len(raw))
	}
	// With any one byte damaged, there must be an error, or batches that are safe to use.
	for i := range raw {
		for _, x := range []byte{0xff, 0x80, 0x01} {
			bad := bytes.Clone(raw)
			bad[i] ^= x
			_, _ = readAll(mem, bad)
		}
	}
	huge := append(bytes.Clone(raw[:0]), 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f)
	_, err = readAll(mem, huge)
	require.ErrorContains(t, err, "unexpected EOF")
	negative := []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0x80}
	_, err = readAll(mem, negative)
	require.ErrorContains(t, err, "length -2147483648 is not between 0 and")
	_, err = readAll(mem, nil)
	require.ErrorIs(t, err, io.ErrUnexpectedEOF)
	_, err = readAll(mem, []byte("id,name\n1,a\n"))
	require.Error(t, err)
}

func TestStreamErrorsRepeat(t *testing.T) {
	mem := batchtest.Allocator(t)
	raw := stream(t, mem)
	r, err := batch.NewStreamReader(bytes.NewReader(raw[:len(raw)-9]), mem)
	require.NoError(t, err)
	defer r.Release()
	_, err = r.Read()
	require.Error(t, err)
	_, again := r.Read()
	require.Equal(t, err, again)
	r.Release()
	_, again = r.Read()
	require.Equal(t, err, again)
}

func TestStreamRefusesForeignTypes(t *testing.T) {
	mem := batchtest.Allocator(t)
	schema := arrow.NewSchema([]arrow.Field{{Name: "d", Type: &arrow.Decimal128Type{Precision: 9, Scale: 2}}}, nil)
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(schema))
	require.NoError(t, w.Close())
	_, err := batch.NewStreamReader(&buf, mem)
	require.EqualError(t, err, `read arrow stream: column "d": type decimal(9, 2) is not supported`)
}

func TestStreamReadsLargeText(t *testing.T) {
	mem := batchtest.Allocator(t)
	schema := arrow.NewSchema([]arrow.Field{{Name: "t", Type: arrow.BinaryTypes.LargeString, Nullable: true}}, nil)
	offsets := arrow.Int64Traits.CastToBytes([]int64{0, 1, 1, 4})
	data := array.NewData(arrow.BinaryTypes.LargeString, 3, []*memory.Buffer{
		memory.NewBufferBytes([]byte{0b101}), memory.NewBufferBytes(offsets), memory.NewBufferBytes([]byte("abcd")),
	}, nil, 1, 0)
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(schema))
	require.NoError(t, w.Write(array.NewRecord(schema, []arrow.Array{array.MakeFromData(data)}, 3)))
	require.NoError(t, w.Close())
	read := func(raw []byte) (arrow.Record, error) {
		r, err := batch.NewStreamReader(bytes.NewReader(raw), mem)
		require.NoError(t, err)
		defer r.Release()
		return r.Read()
	}
	rec, err := read(buf.Bytes())
	require.NoError(t, err)
	defer rec.Release()
	require.Equal(t, []string{"a", "null", "bcd"}, batchtest.Rows(rec))
	require.Equal(t, "t utf8 null", batch.Columns(rec.Schema())[0].String())

	for _, bad := range [][]int64{{-1, 1, 1, 4}, {0, 2, 1, 4}, {0, 1, 1, 5}, {0, 1, 1, 1 << 40}} {
		raw := bytes.Replace(buf.Bytes(), offsets, arrow.Int64Traits.CastToBytes(bad), 1)
		_, err := read(raw)
		require.ErrorContains(t, err, "offset")
	}
}

// compressed returns a compressed stream of three batches, and the largest of them. The writer
// leaves some small buffers uncompressed.
func compressed(t testing.TB, option ipc.Option) (raw []byte, rec arrow.Record) {
	mem := memory.NewGoAllocator()
	rows := make([]string, 300)
	for i := range rows {
		rows[i] = fmt.Sprintf(`{"x": %d, "t": "row %d"}`, i, i%3)
		if i%5 == 0 {
			rows[i] = fmt.Sprintf(`{"x": %d}`, i)
		}
	}
	rec = batchtest.Record(t, mem, batchtest.Schema(t, "x float64", "t utf8 null"), "["+strings.Join(rows, ",")+"]")
	var buf bytes.Buffer
	w := ipc.NewWriter(&buf, ipc.WithSchema(rec.Schema()), option)
	for _, n := range []int64{300, 0, 1} {
		part := rec.NewSlice(0, n)
		if n == 0 {
			part = batch.Empty(rec.Schema())
		}
		require.NoError(t, w.Write(part))
	}
	require.NoError(t, w.Close())
	return buf.Bytes(), rec
}

func TestCompressedStreams(t *testing.T) {
	for _, option := range []ipc.Option{ipc.WithLZ4(), ipc.WithZstd()} {
		raw, want := compressed(t, option)
		mem := batchtest.Allocator(t)
		r, err := batch.NewStreamReader(bytes.NewReader(raw), mem)
		require.NoError(t, err)
		for _, n := range []int64{300, 0, 1} {
			rec, err := r.Read()
			require.NoError(t, err)
			require.True(t, array.RecordEqual(want.NewSlice(0, n), rec))
			rec.Release()
		}
		_, err = r.Read()
		require.Equal(t, io.EOF, err)
		r.Release()

		// Memory must be allocated only for decompressed bytes, whatever length the message
		// states.
		length := binary.LittleEndian.AppendUint64(nil, 300*8) // the uncompressed length of column x
		at := bytes.Index(raw, length)
		require.Positive(t, at)
		for _, claim := range []int64{300*8 + 1, 300*8 - 1, 1 << 30, 1<<31 - 100, 1 << 40, -2, 1 << 62} {
			forged := bytes.Clone(raw)
			binary.LittleEndian.PutUint64(forged[at:], uint64(claim))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := readAll(batchtest.Allocator(t), forged)
			runtime.ReadMemStats(&after)
			require.ErrorContains(t, err, "of a compressed batch: it", "%d", claim)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20), "%d", claim)
		}
	}
}

type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after -= len(p); f.after < 0 {
		return 0, errors.New("disk full")
	}
	return len(p), nil
}

func TestStreamWriterReportsFailures(t *testing.T) {
	mem := batchtest.Allocator(t)
	rec := batchtest.Record(t, mem, batchtest.Schema(t, "x float64"), `[{"x": 1}]`)
	defer rec.Release()
	w := batch.NewStreamWriter(&failing{after: 100}, rec.Schema(), mem)
	require.ErrorContains(t, w.Write(rec), "disk full")
	require.Error(t, w.Close())

	w = batch.NewStreamWriter(io.Discard, batchtest.Schema(t, "x int64"), mem)
	require.ErrorContains(t, w.Write(rec), "it has columns (x float64), the stream has (x int64)")
	require.NoError(t, w.Close())
	require.ErrorContains(t, w.Write(rec), "closed")
}

func TestLargeBatchesAreSplit(t *testing.T) {
	mem := batchtest.Allocator(t)
	vec := batch.NewVectorArray(mem, make([]float64, 70), 10)
	defer vec.Release()
	rec := array.NewRecord(arrow.NewSchema([]arrow.Field{{Name: "v", Type: vec.DataType()}}, nil), []arrow.Array{vec}, 7)
	defer rec.Release()
	var buf bytes.Buffer
	w := batch.NewStreamWriter(&buf, rec.Schema(), mem)
	w.SetSplit(160)
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	r, err := batch.NewStreamReader(&buf, mem)
	require.NoError(t, err)
	defer r.Release()
	var sizes []int64
	for {
		part, err := r.Read()
		if err != nil {
			require.Equal(t, io.EOF, err)
			break
		}
		sizes = append(sizes, part.NumRows())
		part.Release()
	}
	require.Equal(t, []int64{2, 2, 2, 1}, sizes)
}

func FuzzStreamReader(f *testing.F) {
	raw := stream(f, memory.NewGoAllocator())
	f.Add(raw)
	f.Add(raw[:len(raw)/2])
	for _, option := range []ipc.Option{ipc.WithLZ4(), ipc.WithZstd()} {
		packed, _ := compressed(f, option)
		f.Add(packed)
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, raw []byte) {
		_, _ = readAll(batchtest.Allocator(t), raw)
	})
}
