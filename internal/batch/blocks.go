package batch

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// A block is one batch as an Arrow IPC record batch message, without a schema message. The
// reader must know the schema and the number of rows. Blocks are independent of each other:
// they can be concatenated, and read in any order.

// BlockWriter writes batches of one schema as blocks. Only one goroutine at a time may use it.
type BlockWriter struct {
	schema *arrow.Schema
	w      *ipc.Writer
	to     io.Writer
	head   int // number of bytes of the schema message that blockTarget must still drop
}

// NewBlockWriter returns a writer for batches with the columns of schema.
func NewBlockWriter(schema *arrow.Schema, mem memory.Allocator) (*BlockWriter, error) {
	head, err := streamHead(schema, mem)
	if err != nil {
		return nil, err
	}
	b := &BlockWriter{schema: schema, head: len(head)}
	b.w = ipc.NewWriter(blockTarget{b}, ipc.WithSchema(schema), ipc.WithAllocator(mem))
	return b, nil
}

// streamHead returns the schema message, which is the beginning of a stream.
func streamHead(schema *arrow.Schema, mem memory.Allocator) ([]byte, error) {
	var head bytes.Buffer
	w := ipc.NewWriter(&head, ipc.WithSchema(schema), ipc.WithAllocator(mem))
	if err := w.Close(); err != nil {
		return nil, err
	}
	const endMark = 8 // bytes of the end mark that Close writes
	return head.Bytes()[:head.Len()-endMark], nil
}

// blockTarget is the writer of the encoder. It drops the schema message and passes everything
// else to b.to.
type blockTarget struct{ b *BlockWriter }

func (t blockTarget) Write(data []byte) (int, error) {
	skip := min(t.b.head, len(data))
	t.b.head -= skip
	n, err := t.b.to.Write(data[skip:])
	return skip + n, err
}

// Write writes the batch rec, which is borrowed, to w. The metadata in the schema of rec are
// ignored, because readers of the block use the schema given to NewBlockWriter.
func (b *BlockWriter) Write(w io.Writer, rec arrow.Record) error {
	switch {
	case rec.NumRows() == 0:
		// Arrow's encoder fails for a batch of no rows that is a slice of a larger batch.
		rec = Empty(b.schema)
		defer rec.Release()
	case rec.Schema() != b.schema:
		rec = array.NewRecord(b.schema, rec.Columns(), rec.NumRows())
		defer rec.Release()
	}
	b.to = w
	defer func() { b.to = nil }()
	return b.w.Write(rec)
}

// BlockReader reads blocks that a BlockWriter of the same schema wrote. Only one goroutine at a
// time may use it.
type BlockReader struct {
	schema *arrow.Schema
	mem    *trackingAllocator
	shape  shape
	head   []byte // the schema message; nil once it is read
	data   []byte // the block to read; nil once it is read
	r      *ipc.Reader
	err    error
}

// NewBlockReader returns a reader of batches that have the given schema and are allocated from
// mem. Between two reads the reader itself holds no memory of mem.
func NewBlockReader(schema *arrow.Schema, mem memory.Allocator) (*BlockReader, error) {
	head, err := streamHead(schema, mem)
	if err != nil {
		return nil, err
	}
	b := &BlockReader{
		schema: schema, mem: &trackingAllocator{mem: mem, live: make(map[*byte][]byte)},
		shape: shapeOf(schema.Fields()), head: head,
	}
	b.r, err = ipc.NewReaderFromMessageReader(blockMessages{b}, ipc.WithAllocator(b.mem))
	return b, err
}

// Read returns the batch in a block, owned by the caller. If the block cannot be decoded, or
// does not have exactly the given number of rows, Read returns an error, which is never io.EOF.
// Decoding allocates no more memory than the block has bytes. After an error every Read returns
// the same error.
func (b *BlockReader) Read(block []byte, rows int64) (arrow.Record, error) {
	if b.err != nil {
		return nil, b.err
	}
	rec, err := b.read(block, rows)
	if err != nil {
		b.mem.abandon()
		b.err = fmt.Errorf("a block of %d bytes does not hold %d rows: %w", len(block), rows, Unexpected(err))
		return nil, b.err
	}
	b.mem.adopt()
	return rec, nil
}

func (b *BlockReader) read(block []byte, rows int64) (rec arrow.Record, err error) {
	defer func() {
		if p := recover(); p != nil {
			rec, err = nil, fmt.Errorf("%v", p)
		}
	}()
	b.data = block
	got, err := b.r.Read()
	switch {
	case err != nil:
		return nil, err
	case got.NumRows() != rows:
		err = fmt.Errorf("it holds %d", got.NumRows())
	default:
		err = fits(got)
	}
	if err != nil {
		b.r.Release() // release the batch, to which the decoder refers
		return nil, err
	}
	rec = array.NewRecord(b.schema, got.Columns(), got.NumRows())
	b.r.Next() // finds no message, so the decoder releases the batch; later calls of Read still work
	return rec, nil
}

// fits returns an error unless every column has as many values as the batch has rows.
func fits(rec arrow.Record) error {
	for i, col := range rec.Columns() {
		if int64(col.Len()) != rec.NumRows() {
			return fmt.Errorf("column %q has %d values", rec.ColumnName(i), col.Len())
		}
	}
	return nil
}

// blockMessages is the message reader of the decoder. It returns the schema message first, and
// then the current block of each Read.
type blockMessages struct{ b *BlockReader }

// Retain and Release do nothing, because the caller owns the memory.
func (m blockMessages) Retain()  {}
func (m blockMessages) Release() {}

// Message returns the schema message at the first call, and then the message that the current
// block consists of.
func (m blockMessages) Message() (*ipc.Message, error) {
	data := m.b.head
	if data == nil {
		data, m.b.data = m.b.data, nil
	}
	m.b.head = nil
	if data == nil {
		return nil, io.EOF
	}
	if len(data) < 8 || binary.LittleEndian.Uint32(data) != continuation {
		return nil, errFlat
	}
	length := int64(binary.LittleEndian.Uint32(data[4:]))
	if length > int64(len(data)-8) {
		return nil, fmt.Errorf("its metadata have %d bytes: %w", length, io.ErrUnexpectedEOF)
	}
	meta, body := data[8:8+length], data[8+length:]
	bodyLen, pack, err := checkMetadata(meta, m.b.shape, int64(len(body)))
	if err != nil {
		return nil, err
	}
	if pack.is {
		return nil, errors.New("its body is compressed, which no block is")
	}
	if bodyLen != int64(len(body)) {
		return nil, fmt.Errorf("its body has %d bytes where %d are there", bodyLen, len(body))
	}
	return ipc.NewMessage(memory.NewBufferBytes(meta), memory.NewBufferBytes(body)), nil
}
