package arrowbridge_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
)

// The rows of an Arrow record are the input of an operator, and the operator's result is read
// as Arrow records.
func Example() {
	build := array.NewRecordBuilder(memory.DefaultAllocator, arrow.NewSchema([]arrow.Field{{Name: "x", Type: arrow.PrimitiveTypes.Float64}}, nil))
	defer build.Release()
	build.Field(0).(*array.Float64Builder).AppendValues([]float64{1, 2, 3}, nil)
	record := build.NewRecord()
	defer record.Release()

	job := engine.Define("double", func(b *engine.Builder, _ struct{}) error {
		rows := arrowbridge.FromRecords(b, []arrow.Record{record})
		engine.Collect(operators.MapBatch(rows, rows.Schema(), func(c *engine.Context, rows engine.Batch) (engine.Batch, error) {
			x, err := columnar.Get[[]float64](rows, "x")
			if err != nil {
				return engine.Batch{}, err
			}
			twice := make([]float64, len(x))
			for i, v := range x {
				twice[i] = 2 * v
			}
			return columnar.NewBatch(c.Allocator, rows.Schema(), twice)
		}), "doubled")
		return nil
	})
	result, err := engine.Run(context.Background(), job, struct{}{}, engine.Shards(1))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer result.Release()
	records, err := arrowbridge.Records(result, "doubled")
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, r := range records {
		fmt.Println(r.Column(0))
	}
	// Output:
	// [2 4 6]
}

func flowers(t *testing.T, mem memory.Allocator) arrow.Record {
	schema := batchtest.Schema(t, "name utf8 null", "at vector[2]", "open sparse[9]", "when timestamp[us]")
	return batchtest.Record(t, mem, schema, `[
		{"name": "rose", "at": [1, 2], "open": {"indices": [8], "values": [3]}, "when": 17},
		{"name": null, "at": [3, 4], "open": {"indices": [], "values": []}, "when": 18}]`)
}

// TestNothingIsCopied requires that a record and its batch share memory and reference count.
func TestNothingIsCopied(t *testing.T) {
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	rec := flowers(t, mem)
	b := arrowbridge.Batch(rec)
	require.Same(t, rec, arrowbridge.Record(b))
	require.Same(t, rec.Schema(), arrowbridge.Schema(b.Schema()))
	require.True(t, b.Schema().Equal(arrowbridge.SchemaOf(rec.Schema())))
	require.Equal(t, "name utf8 null, at vector[2], open sparse[9], when timestamp[us]", b.Schema().String())
	b.Retain()
	rec.Release()
	require.Positive(t, mem.CurrentAlloc())
	b.Release()
	mem.AssertSize(t, 0)
	require.Nil(t, arrowbridge.Record(engine.Batch{}))
	require.True(t, arrowbridge.Batch(nil).IsZero())
	require.True(t, arrowbridge.SchemaOf(nil).IsZero())
	require.Nil(t, arrowbridge.Schema(engine.Schema{}))
}

// TestStreams requires that Arrow reads streams of WriteStream, and that ReadStream reads
// streams of Arrow.
func TestStreams(t *testing.T) {
	mem := batchtest.Allocator(t)
	rec := flowers(t, mem)
	defer rec.Release()
	rows := arrowbridge.Batch(rec)
	part, err := rows.Slice(1, 2)
	require.NoError(t, err)
	defer part.Release()
	var stream bytes.Buffer
	require.NoError(t, arrowbridge.WriteStream(&stream, rows.Schema(), rows, part))

	theirs, err := ipc.NewReader(bytes.NewReader(stream.Bytes()))
	require.NoError(t, err)
	defer theirs.Release()
	require.True(t, theirs.Next())
	require.Empty(t, batch.Diff(rec, theirs.Record()))
	require.True(t, theirs.Next())
	require.Equal(t, int64(1), theirs.Record().NumRows())
	require.False(t, theirs.Next())

	schema, batches, err := arrowbridge.ReadStream(&stream, mem)
	require.NoError(t, err)
	require.True(t, schema.Equal(rows.Schema()))
	require.Len(t, batches, 2)
	require.Empty(t, batch.Diff(rec, arrowbridge.Record(batches[0])))
	for _, b := range batches {
		b.Release()
	}

	var written bytes.Buffer
	w := ipc.NewWriter(&written, ipc.WithSchema(rec.Schema()))
	require.NoError(t, w.Write(rec))
	require.NoError(t, w.Close())
	_, batches, err = arrowbridge.ReadStream(bytes.NewReader(written.Bytes()), nil)
	require.NoError(t, err)
	require.Empty(t, batch.Diff(rec, arrowbridge.Record(batches[0])))
	batches[0].Release()

	// A stream that is cut off at any byte must give an error and leak no memory.
	for n := range written.Len() {
		_, batches, err := arrowbridge.ReadStream(bytes.NewReader(written.Bytes()[:n]), mem)
		require.ErrorContains(t, err, "arrowbridge: ReadStream: ", n)
		require.Empty(t, batches, n)
	}
	// Metadata must be ignored, even if only one of two batches has it.
	field := rec.Schema().Field(0)
	field.Metadata = arrow.NewMetadata([]string{"unit"}, []string{"m"})
	told := array.NewRecord(arrow.NewSchema(append([]arrow.Field{field}, rec.Schema().Fields()[1:]...), nil), rec.Columns(), rec.NumRows())
	defer told.Release()
	var mixed bytes.Buffer
	require.NoError(t, arrowbridge.WriteStream(&mixed, rows.Schema(), arrowbridge.Batch(told), rows))

	// If WriteStream fails, ReadStream must fail for what was written.
	other := batchtest.Allocator(t)
	foreign, err := columnar.NewBatch(other, schemaOfOne(t), []int64{1})
	require.NoError(t, err)
	defer foreign.Release()
	var broken bytes.Buffer
	require.ErrorContains(t, arrowbridge.WriteStream(&broken, rows.Schema(), rows, foreign, rows), "batch 1: write batch: ")
	_, batches, err = arrowbridge.ReadStream(&broken, mem)
	require.ErrorContains(t, err, "the stream has no end mark")
	require.Empty(t, batches)

	var none bytes.Buffer
	require.NoError(t, arrowbridge.WriteStream(&none, rows.Schema()))
	schema, batches, err = arrowbridge.ReadStream(&none, mem)
	require.NoError(t, err)
	require.Empty(t, batches)
	require.True(t, schema.Equal(rows.Schema()))
}

func schemaOfOne(t *testing.T) engine.Schema {
	schema, err := columnar.NewSchema(columnar.Column{Name: "x", Type: "int64"})
	require.NoError(t, err)
	return schema
}

// TestMistakes requires that wrong arguments and damaged streams are reported.
func TestMistakes(t *testing.T) {
	schema := schemaOfOne(t)
	require.ErrorContains(t, arrowbridge.WriteStream(&bytes.Buffer{}, engine.Schema{}), "the schema is the zero value")
	require.ErrorContains(t, arrowbridge.WriteStream(&bytes.Buffer{}, schema, engine.Batch{}), "batch 0 is the zero value")
	require.EqualError(t, arrowbridge.WriteStream(nil, schema), "arrowbridge: WriteStream: the writer is nil")
	_, _, err := arrowbridge.ReadStream(nil, nil)
	require.EqualError(t, err, "arrowbridge: ReadStream: the reader is nil")
	gone, err := columnar.NewBatch(nil, schema, []int64{1})
	require.NoError(t, err)
	gone.Release()
	require.ErrorContains(t, arrowbridge.WriteStream(&bytes.Buffer{}, schema, gone), "batch 0: it was released already")
	mem := batchtest.Allocator(t)
	rec := flowers(t, mem)
	defer rec.Release()
	require.ErrorContains(t, arrowbridge.WriteStream(&bytes.Buffer{}, schema, arrowbridge.Batch(rec)), "batch 0: write batch: it has columns (name utf8 null")
	interval := arrowbridge.SchemaOf(arrow.NewSchema([]arrow.Field{{Name: "i", Type: &arrow.MonthIntervalType{}}}, nil))
	require.ErrorContains(t, arrowbridge.WriteStream(&bytes.Buffer{}, interval), `column "i": type month_interval is not supported`)
	_, _, err = arrowbridge.ReadStream(strings.NewReader("no stream"), nil)
	require.ErrorContains(t, err, "arrowbridge: ReadStream")

	field := arrow.Field{Name: strings.Repeat("x", 10_000), Type: arrow.PrimitiveTypes.Int64}
	var twice bytes.Buffer
	require.NoError(t, ipc.NewWriter(&twice, ipc.WithSchema(arrow.NewSchema([]arrow.Field{field, field}, nil))).Close())
	_, _, err = arrowbridge.ReadStream(&twice, nil)
	require.EqualError(t, err, "arrowbridge: ReadStream: columns 1 and 2 are both named \""+strings.Repeat("x", 60)+"\"…")

	var many bytes.Buffer
	empty := arrow.NewSchema(nil, nil)
	w := ipc.NewWriter(&many, ipc.WithSchema(empty))
	require.NoError(t, w.Write(array.NewRecord(empty, nil, 5)))
	require.NoError(t, w.Write(array.NewRecord(empty, nil, 1<<62)))
	require.NoError(t, w.Close())
	_, batches, err := arrowbridge.ReadStream(&many, nil)
	require.ErrorContains(t, err, "batch 1: read arrow stream: 4611686018427387904 rows, where a batch holds at most 2147483647")
	require.Empty(t, batches)

	job := engine.Define("none", func(b *engine.Builder, _ struct{}) error {
		engine.Collect(arrowbridge.FromRecords(b, []arrow.Record{nil}), "rows")
		return nil
	})
	_, err = engine.Run(t.Context(), job, struct{}{})
	require.ErrorContains(t, err, "FromBatches: batch 0 is the zero value")
	require.ErrorContains(t, err, "bridge_test.go:", "the error must name the line of the caller, not a line of package arrowbridge")
	result, err := engine.Run(t.Context(), engine.Define("empty", func(b *engine.Builder, _ struct{}) error {
		engine.Collect(operators.Range(b, 0, 3), "rows")
		return nil
	}), struct{}{})
	require.NoError(t, err)
	defer result.Release()
	_, err = arrowbridge.Records(result, "row")
	require.ErrorContains(t, err, `"row"`)
}
