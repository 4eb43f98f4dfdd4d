// Package batchtest helps tests that touch batches: an allocator that fails
// the test on a leak, batches from literal rows, the same rows laid out
// differently, and streams of batches.
package batchtest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/batch"
)

// Allocator returns an allocator that fails the test when memory taken from it
// is not released by the time the test's cleanups have run, and names where it
// was allocated.
func Allocator(t testing.TB) memory.Allocator {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return mem
}

// Schema returns the schema written as "name type" pairs, each optionally with
// " null" behind: Schema(t, "id int64", "features vector[4] null").
func Schema(t testing.TB, columns ...string) *arrow.Schema {
	t.Helper()
	cols := make([]batch.Column, len(columns))
	for i, text := range columns {
		name, typ, ok := strings.Cut(text, " ")
		if !ok {
			t.Fatalf("column %q is not of the form \"name type\"", text)
		}
		typ, nullable := strings.CutSuffix(typ, " null")
		cols[i] = batch.Column{Name: name, Type: typ, Nullable: nullable}
	}
	schema, err := batch.Schema(cols)
	if err != nil {
		t.Fatalf("schema: %v", err)
	}
	return schema
}

// Record returns a batch of rows written as a JSON array of objects, in the
// form that Arrow reads: `[{"id": 1, "features": [0.5, 1]}, {"id": 2}]`. An
// absent or null member is null; "NaN" and "+Inf" are floats. The batch is
// owned by the caller and must be released before the allocator's check.
func Record(t testing.TB, mem memory.Allocator, schema *arrow.Schema, jsonRows string) arrow.Record {
	t.Helper()
	var rows []map[string]json.RawMessage
	if err := json.Unmarshal([]byte(jsonRows), &rows); err != nil {
		t.Fatalf("rows: %v", err)
	}
	b, err := batch.NewRecordBuilder(mem, schema)
	if err != nil {
		t.Fatalf("rows: %v", err)
	}
	defer b.Release()
	for i, row := range rows {
		for c := range schema.NumFields() {
			name := schema.Field(c).Name
			if v := row[name]; v == nil || string(v) == "null" {
				batch.AppendNull(b.Field(c))
			} else if err := b.Field(c).UnmarshalJSON([]byte("[" + string(v) + "]")); err != nil {
				t.Fatalf("row %d, column %q: %v", i, name, err)
			}
			delete(row, name)
		}
		for name := range row {
			t.Fatalf("row %d has the member %q, which is no column", i, name)
		}
	}
	rec, err := b.NewRecord()
	if err != nil {
		t.Fatalf("rows: %v", err)
	}
	return rec
}

// WithOffset returns the same rows as a slice out of a larger batch, so that
// every buffer is used from an odd offset on. The batch is owned by the
// caller. Code that reads buffers must give the same results for both.
func WithOffset(t testing.TB, mem memory.Allocator, rec arrow.Record) arrow.Record {
	t.Helper()
	if rec.NumRows() == 0 {
		rec.Retain()
		return rec
	}
	rows := int(rec.NumRows())
	order := make([]int32, 0, rows+5)
	for range 3 {
		order = append(order, int32(rows-1))
	}
	for i := range rows {
		order = append(order, int32(i))
	}
	order = append(order, 0, 0)
	larger, err := batch.Take(mem, rec, order)
	if err != nil {
		t.Fatalf("offset: %v", err)
	}
	defer larger.Release()
	part, err := batch.Slice(larger, 3, 3+rows)
	if err != nil {
		t.Fatalf("offset: %v", err)
	}
	return part
}

// Rows prints a batch, one line per row and values separated by " | ", null as
// "null", for comparison with literal text.
func Rows(rec arrow.Record) []string {
	lines := make([]string, rec.NumRows())
	for i := range lines {
		cells := make([]string, rec.NumCols())
		for c := range cells {
			if cells[c] = batch.FormatValue(rec.Column(c), i); rec.Column(c).IsNull(i) {
				cells[c] = "null"
			}
		}
		lines[i] = strings.Join(cells, " | ")
	}
	return lines
}

// Equal fails the test unless both batches have equal schemas and the same
// rows, floats compared by bits.
func Equal(t testing.TB, want, got arrow.Record) {
	t.Helper()
	if diff := batch.Diff(want, got); diff != "" {
		t.Errorf("batches differ: %s", diff)
	}
}

// Stream returns rows, one batch of them if there are any, as a stream of batches.
func Stream[T any](t testing.TB, rows ...T) []byte {
	t.Helper()
	codec, err := batch.NewCodec[T]()
	if err != nil {
		t.Fatalf("rows: %v", err)
	}
	var b bytes.Buffer
	w := batch.NewStreamWriter(&b, codec.Schema(), memory.NewGoAllocator())
	if len(rows) > 0 {
		rec, err := codec.Record(memory.NewGoAllocator(), rows)
		if err != nil {
			t.Fatalf("rows: %v", err)
		}
		defer rec.Release()
		if err := w.Write(rec); err != nil {
			t.Fatalf("rows: %v", err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatalf("rows: %v", err)
	}
	return b.Bytes()
}
