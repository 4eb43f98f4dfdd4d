package batch

import (
	"bytes"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// SeriesReader reads the batches of a series of Arrow streams with the same columns, one after
// the other. Only one goroutine at a time may use it.
type SeriesReader struct {
	next   func() ([]byte, error)
	mem    memory.Allocator
	stream *StreamReader
	schema *arrow.Schema
}

// NewSeriesReader returns a reader of a series of streams. It reads the schema from the first
// stream. Each call of next must return a whole stream, or io.EOF after the last stream. The
// caller must call Release; batches remain valid afterwards.
func NewSeriesReader(next func() ([]byte, error), mem memory.Allocator) (*SeriesReader, error) {
	s := &SeriesReader{next: next, mem: mem}
	if err := s.open(); err != nil {
		if err == io.EOF {
			err = fmt.Errorf("there is no stream: %w", io.ErrUnexpectedEOF)
		}
		return nil, err
	}
	return s, nil
}

// open opens the next stream.
func (s *SeriesReader) open() error {
	data, err := s.next()
	if err != nil {
		return err
	}
	stream, err := NewStreamReader(bytes.NewReader(data), s.mem)
	if err != nil {
		return err
	}
	if s.schema == nil {
		s.schema = stream.Schema()
	}
	if !stream.Schema().Equal(s.schema) {
		stream.Release()
		return fmt.Errorf("read arrow stream: it has columns (%s), those before have (%s)", describe(stream.Schema()), describe(s.schema))
	}
	s.Release()
	s.stream = stream
	return nil
}

// Schema returns the columns of all streams.
func (s *SeriesReader) Schema() *arrow.Schema { return s.schema }

// Read returns the next batch, owned by the caller, or io.EOF after the last batch.
func (s *SeriesReader) Read() (arrow.Record, error) {
	for {
		rec, err := s.stream.Read()
		if err != io.EOF {
			return rec, err
		}
		if err := s.open(); err != nil {
			return nil, err
		}
	}
}

// Release releases the memory of the reader.
func (s *SeriesReader) Release() {
	if s.stream != nil {
		s.stream.Release()
	}
}
