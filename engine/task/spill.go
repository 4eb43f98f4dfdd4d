package task

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/ipc"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/internal/batch"
)

// spillFile is an inbox's file: one Arrow IPC stream that only grows, in which
// every record batch can be read on its own by its place. Blocks are written by
// one goroutine and read by another, each block after it was flushed. The file
// is made at the first write.
type spillFile struct {
	path   string
	mem    memory.Allocator
	total  *atomic.Int64 // bytes written by the run
	logger hclog.Logger

	file   atomic.Pointer[os.File]
	buffer *bufio.Writer
	stream *ipc.Writer
	at     int64 // bytes written to buffer
	schema *arrow.Schema
	header []byte // the stream's beginning: its schema
}

// block is the place of a record batch in a spill file.
type block struct {
	offset int64
	length int
}

// spillBuffer is the size of the write buffer: large against the small writes
// that make up a batch.
const spillBuffer = 64 << 10

// write appends rows lo to hi of rec.
func (s *spillFile) write(rec arrow.Record, lo, hi int) (block, error) {
	if s.stream == nil {
		if err := s.create(rec.Schema()); err != nil {
			return block{}, s.explain(err)
		}
	}
	rows, err := batch.Slice(rec, lo, hi)
	if err != nil {
		return block{}, s.explain(err)
	}
	defer rows.Release()
	if rows.Schema() != s.schema {
		// Equal but for metadata, which the stream carries once.
		same := array.NewRecord(s.schema, rows.Columns(), rows.NumRows())
		defer same.Release()
		rows = same
	}
	from := max(s.at, int64(len(s.header))) // the first write puts the header before the batch
	if err := s.stream.Write(rows); err != nil {
		return block{}, s.explain(err)
	}
	s.total.Add(s.at - from)
	return block{offset: from, length: int(s.at - from)}, nil
}

// create makes the file and begins its stream.
func (s *spillFile) create(schema *arrow.Schema) error {
	f, err := os.OpenFile(s.path, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	s.file.Store(f)
	s.logger.Info("the memory budget is used up: spilling rows to disk", "file", s.path)
	var head bytes.Buffer
	w := ipc.NewWriter(&head, ipc.WithSchema(schema), ipc.WithAllocator(s.mem))
	if err := w.Close(); err != nil {
		return err
	}
	const endOfStream = 8 // bytes of the mark that Close wrote
	s.header = head.Bytes()[:head.Len()-endOfStream]
	s.schema = schema
	s.buffer = bufio.NewWriterSize(f, spillBuffer)
	s.stream = ipc.NewWriter(counter{s}, ipc.WithSchema(schema), ipc.WithAllocator(s.mem))
	return nil
}

// counter writes to the buffer and counts.
type counter struct{ s *spillFile }

func (c counter) Write(b []byte) (int, error) {
	n, err := c.s.buffer.Write(b)
	c.s.at += int64(n)
	return n, err
}

// flush makes what was written readable.
func (s *spillFile) flush() error {
	if err := s.buffer.Flush(); err != nil {
		return s.explain(err)
	}
	return nil
}

// read returns the rows of a block, owned by the caller. scratch is working space
// that grows as needed.
func (s *spillFile) read(b block, scratch *[]byte) (arrow.Record, error) {
	f := s.file.Load()
	if f == nil {
		return nil, errStopped
	}
	*scratch = slices.Grow((*scratch)[:0], b.length)
	data := (*scratch)[:b.length]
	if _, err := f.ReadAt(data, b.offset); err != nil {
		return nil, fmt.Errorf("read spilled rows from %s: %w", s.path, err)
	}
	r, err := ipc.NewReader(io.MultiReader(bytes.NewReader(s.header), bytes.NewReader(data)), ipc.WithAllocator(s.mem))
	if err != nil {
		return nil, fmt.Errorf("read spilled rows from %s: %w", s.path, err)
	}
	defer r.Release()
	rec, err := r.Read()
	if err != nil {
		return nil, fmt.Errorf("read spilled rows from %s: %w", s.path, err)
	}
	return array.NewRecord(s.schema, rec.Columns(), rec.NumRows()), nil
}

// explain says what the file was for.
func (s *spillFile) explain(err error) error {
	return fmt.Errorf("spill rows beyond the memory budget to %s, after %s written by this run: %w; free disk space, choose another spill directory or raise the memory budget",
		s.path, FormatBytes(s.total.Load()), err)
}

// close removes the file.
func (s *spillFile) close() error {
	f := s.file.Swap(nil)
	if f == nil {
		return nil
	}
	return errors.Join(f.Close(), os.Remove(s.path))
}
