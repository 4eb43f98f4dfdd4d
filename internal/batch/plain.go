package batch

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// PlainType returns the type to which a column of type dt is converted when it is read. For
// large_utf8 and large_binary it returns utf8 and binary, because offsets of 32 bits suffice
// for every message. For all other types, supported or not, it returns dt.
func PlainType(dt arrow.DataType) arrow.DataType {
	switch dt.ID() {
	case arrow.LARGE_STRING:
		return arrow.BinaryTypes.String
	case arrow.LARGE_BINARY:
		return arrow.BinaryTypes.Binary
	}
	return dt
}

// Supported reports whether batches may have columns of a type.
func Supported(dt arrow.DataType) bool { return kindOf(dt) != kindInvalid }

// ReadSchema reads the schema at the beginning of an Arrow stream. Its types need not be
// supported.
func ReadSchema(r io.Reader) (schema *arrow.Schema, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%v", p)
		}
		if err != nil {
			schema, err = nil, fmt.Errorf("read arrow schema: %w", err)
		}
	}()
	in := &messageReader{r: bufio.NewReaderSize(r, 1<<16), Buffers: &Buffers{}}
	rd, err := ipc.NewReaderFromMessageReader(in, ipc.WithAllocator(memory.NewGoAllocator()))
	if err != nil {
		return nil, err
	}
	defer rd.Release()
	return rd.Schema(), nil
}

// SchemaMessage returns the schema message with which a stream begins.
func SchemaMessage(schema *arrow.Schema) ([]byte, error) {
	const endMark = 8 // bytes of the end mark
	var out bytes.Buffer
	w := ipc.NewWriter(&out, ipc.WithSchema(schema))
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes()[:out.Len()-endMark], nil
}

// plain returns col converted to its plain type dt; the caller owns the result. The column
// comes from a decoder, so plain checks its buffers.
func plain(mem memory.Allocator, col arrow.Array, dt arrow.DataType) (arrow.Array, error) {
	d := col.Data()
	if dt.ID() == d.DataType().ID() {
		col.Retain()
		return col, nil
	}
	n, limit := d.Len(), int64(len(bufferBytes(d, 2)))
	large := castBytes[int64](bufferBytes(d, 1))
	if n == 0 && len(large) == 0 {
		return ownedArray(emptyData(dt)), nil
	}
	if n < 0 || d.Offset() != 0 || len(large) <= n {
		return nil, fmt.Errorf("%d offsets for %d rows", len(large), n)
	}
	offsets := newBuffer(mem, (n+1)*arrow.Int32SizeBytes)
	defer offsets.Release()
	small, last := castBytes[int32](offsets.Bytes()), int64(0)
	for i, o := range large[:n+1] {
		if o < last || o > limit || o > MaxMessage {
			return nil, fmt.Errorf("offset %d of row %d, after %d, of %d bytes", o, i, last, limit)
		}
		small[i], last = int32(o), o
	}
	made := array.NewData(dt, n, []*memory.Buffer{d.Buffers()[0], offsets, d.Buffers()[2]}, nil, d.NullN(), 0)
	return ownedArray(made), nil
}

// Lookup returns a column that has, for every index in indices, the value in this row of
// dictionary. dictionary is a batch with one nullable column. For a null index the value is
// null.
func Lookup(mem memory.Allocator, indices arrow.Array, dictionary arrow.Record) (arrow.Array, error) {
	if dictionary.NumRows() >= math.MaxInt32 {
		return nil, fmt.Errorf("a dictionary of %d values is too long", dictionary.NumRows())
	}
	view, none := viewOf(indices), int32(dictionary.NumRows())
	rows := make([]int32, view.n)
	for i := range rows {
		if view.null(i) {
			rows[i] = none
			continue
		}
		at := view.integer(i)
		if at < 0 || at >= int64(none) {
			return nil, fmt.Errorf("row %d refers to value %d of a dictionary of %d", i, at, none)
		}
		rows[i] = int32(at)
	}
	empty, err := nullRow(dictionary.Schema())
	if err != nil {
		return nil, err
	}
	defer empty.Release()
	made, err := Gather(mem, []arrow.Record{dictionary, empty}, picksOf(rows, none))
	if err != nil {
		return nil, err
	}
	defer made.Release()
	col := made.Column(0)
	col.Retain()
	return col, nil
}

// picksOf returns picks that select rows of batch 0 by their numbers in rows. The number none
// selects the only row of batch 1 instead. picksOf modifies rows, and the picks share its
// memory.
func picksOf(rows []int32, none int32) []Pick {
	var picks []Pick
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && (rows[to] == none) == (rows[from] == none) {
			to++
		}
		if rows[from] == none {
			clear(rows[from:to])
			picks = append(picks, Pick{Batch: 1, Rows: rows[from:to]})
		} else {
			picks = append(picks, Pick{Rows: rows[from:to]})
		}
		from = to
	}
	return picks
}

// nullRow returns a batch with one row, in which all values are null.
func nullRow(schema *arrow.Schema) (arrow.Record, error) {
	if schema.NumFields() != 1 || !schema.Field(0).Nullable {
		return nil, errors.New("a dictionary is one column that may have nulls")
	}
	b, err := NewRecordBuilder(memory.NewGoAllocator(), schema)
	if err != nil {
		return nil, err
	}
	defer b.Release()
	b.Field(0).AppendNull()
	return b.NewRecord()
}
