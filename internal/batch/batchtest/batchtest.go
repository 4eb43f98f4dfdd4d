// Package batchtest has helpers for tests that use batches: an allocator that fails the test on
// a leak, batches from literal rows, copies of batches with another layout in memory, and
// streams of batches.
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

// Allocator returns an allocator. The test fails if some of its memory is not released when the
// cleanups of the test have run; the message names where that memory was allocated.
func Allocator(t testing.TB) memory.Allocator {
	t.Helper()
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	t.Cleanup(func() { mem.AssertSize(t, 0) })
	return mem
}

// Schema returns the schema with columns given as "name type", or "name type null" for a
// nullable column: Schema(t, "id int64", "features vector[4] null").
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

// Record returns a batch of rows that are given as a JSON array of objects, as Arrow's JSON
// reader expects them: `[{"id": 1, "features": [0.5, 1]}, {"id": 2}]`. An absent or null member
// is null; "NaN" and "+Inf" are floats. The caller owns the batch, and must release it before
// the check of Allocator runs.
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

// WithOffset returns the rows of rec as a slice of a larger batch, so that the used part of
// every buffer begins at an odd offset. The caller owns the batch. Code that reads buffers must
// give the same results for rec and this batch.
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

// Rows returns the text of each row of a batch, for comparison with literal text. Values are
// separated by " | ", and null is "null".
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

// Equal fails the test unless both batches have equal schemas and the same rows. Floats are
// compared by bits.
func Equal(t testing.TB, want, got arrow.Record) {
	t.Helper()
	if diff := batch.Diff(want, got); diff != "" {
		t.Errorf("batches differ: %s", diff)
	}
}

// Stream returns rows as an Arrow stream of one batch, or of no batch if there are no rows.
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
