package operators

import (
	"errors"
	"fmt"
	"io"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/ipc"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// ArrowWriteOptions are the options of WriteArrow.
type ArrowWriteOptions struct {
	// PerShard makes WriteArrow write one file per shard, including empty shards, into a
	// directory at the path. The files are named part-00000.arrow and so on.
	PerShard bool
}

// WriteArrow writes the rows of d, in their order, to the file at path, in the Arrow IPC file
// format without compression. See WriteFiles for when and where the file appears. The bytes are
// the same at every parallelism. ReadArrow reads the columns with the same types.
func WriteArrow(d *engine.Dataset, path string, o ArrowWriteOptions) {
	WriteFiles(d, path, o.PerShard, FileFormat{Op: "WriteArrow", Extension: "arrow", File: newArrowFile})
}

// arrowFileWriter writes batches in the Arrow IPC file format.
type arrowFileWriter struct{ w *ipc.FileWriter }

func newArrowFile(w io.Writer, schema engine.Schema, mem columnar.Allocator) (RowWriter, error) {
	f, err := ipc.NewFileWriter(&positioned{w: w}, ipc.WithSchema(arrowrows.Arrow(schema)), ipc.WithAllocator(mem))
	if err != nil {
		return nil, err
	}
	return recordWriter{arrowFileWriter{f}}, nil
}

func (f arrowFileWriter) Write(rows arrow.Record) error {
	if size := batch.Size(rows); size > batch.MaxMessage {
		return fmt.Errorf("a row of %d bytes exceeds the %d that a batch can hold", size, batch.MaxMessage)
	}
	return f.w.Write(rows)
}

func (f arrowFileWriter) Close() error { return f.w.Close() }

// positioned counts the written bytes. Arrow's writer calls Seek only to get the current
// position.
type positioned struct {
	w  io.Writer
	at int64
}

func (p *positioned) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	p.at += int64(n)
	return n, err
}

func (p *positioned) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence != io.SeekCurrent {
		return 0, errors.New("only the current position can be sought")
	}
	return p.at, nil
}
