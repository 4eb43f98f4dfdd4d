package arrowbridge

import (
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// WriteStream writes batches of a schema as a stream in Arrow's IPC format, which every version
// of Arrow reads. The batches are borrowed. A batch of more than 1 GiB is written as several
// batches. After an error the stream has no end mark, so that ReadStream fails for it.
func WriteStream(w io.Writer, schema engine.Schema, batches ...engine.Batch) error {
	if w == nil {
		return errors.New("arrowbridge: WriteStream: the writer is nil")
	}
	if schema.IsZero() {
		return errors.New("arrowbridge: WriteStream: the schema is the zero value")
	}
	normal, err := batch.NormalizeSchema(arrowrows.Arrow(schema))
	if err != nil {
		return fmt.Errorf("arrowbridge: WriteStream: %w", err)
	}
	to := batch.NewStreamWriter(w, normal, memory.DefaultAllocator)
	for i, b := range batches {
		if b.IsZero() {
			return fmt.Errorf("arrowbridge: WriteStream: batch %d is the zero value", i)
		}
		rows, err := batch.Normalize(arrowrows.Record(b))
		if err != nil {
			return fmt.Errorf("arrowbridge: WriteStream: batch %d: %w", i, err)
		}
		err = to.Write(rows)
		rows.Release()
		if err != nil {
			return fmt.Errorf("arrowbridge: WriteStream: batch %d: %w", i, err)
		}
	}
	if err := to.Close(); err != nil {
		return fmt.Errorf("arrowbridge: WriteStream: %w", err)
	}
	return nil
}

// ReadStream reads a stream in Arrow's IPC format to its end. The caller must release the
// batches. Their memory is allocated by mem; nil means the Go heap. Types that rows can hold
// after a conversion, such as large text, are converted; for other types and dictionaries
// ReadStream returns an error. It also returns an error if the stream is damaged or has no end
// mark. Arrow's writers write the end mark when they are closed.
func ReadStream(r io.Reader, mem columnar.Allocator) (_ engine.Schema, batches []engine.Batch, err error) {
	if r == nil {
		return engine.Schema{}, nil, errors.New("arrowbridge: ReadStream: the reader is nil")
	}
	if mem == nil {
		mem = memory.DefaultAllocator
	}
	from, err := batch.NewStreamReader(r, mem)
	if err != nil {
		return engine.Schema{}, nil, fmt.Errorf("arrowbridge: ReadStream: %w", err)
	}
	defer from.Release()
	if err := batch.DistinctNames(from.Schema()); err != nil {
		return engine.Schema{}, nil, fmt.Errorf("arrowbridge: ReadStream: %w", err)
	}
	defer func() {
		if err != nil {
			for _, b := range batches {
				b.Release()
			}
			batches = nil
		}
	}()
	for {
		var rows arrow.Record
		if rows, err = from.Read(); err == io.EOF {
			return arrowrows.Schema(from.Schema()), batches, nil
		}
		if err != nil {
			return engine.Schema{}, batches, fmt.Errorf("arrowbridge: ReadStream: batch %d: %w", len(batches), err)
		}
		batches = append(batches, arrowrows.Batch(rows))
	}
}
