package operators

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/filelock"
)

// RowWriter writes rows to a file.
type RowWriter interface {
	// Write writes a batch, which it borrows.
	Write(rows engine.Batch) error
	// Close writes the end of the file, if it has one. It is called once, unless a Write
	// failed.
	Close() error
}

// recordWriter adapts a writer of Arrow records to RowWriter.
type recordWriter struct {
	to interface {
		Write(rows arrow.Record) error
		Close() error
	}
}

func (w recordWriter) Write(rows engine.Batch) error { return w.to.Write(arrowrows.Record(rows)) }

func (w recordWriter) Close() error { return w.to.Close() }

// writeTo returns a function that writes records to a RowWriter.
func writeTo(w RowWriter) func(rows arrow.Record) error {
	return func(rows arrow.Record) error { return w.Write(arrowrows.Batch(rows)) }
}

// FileFormat defines how the rows of a dataset are written to a file. Text formats set Rows and
// perhaps Head; other formats set File. Several goroutines may call the functions at the same
// time.
type FileFormat struct {
	Op        string        // the operator's name, such as "WriteCSV"
	Attrs     []engine.Attr // parameters that the plan shows
	Extension string        // file name extension of the files in a directory, such as "csv"

	// Head writes what precedes the rows in a file, such as a header. It may be nil.
	Head func(w io.Writer) error
	// Rows returns a writer of rows as text. The text of a row must not depend on earlier rows,
	// so that the texts of shards can be concatenated.
	Rows func(w io.Writer) RowWriter
	// File returns a writer of a whole file. The writer gets batches whose bounds depend on the
	// rows alone: a batch ends after 65,536 rows, or earlier if its rows take 16 MiB.
	File func(w io.Writer, schema engine.Schema, mem columnar.Allocator) (RowWriter, error)
}

// These are the bounds of the batches in a file of a columnar format, and in the parts from
// which such a file is assembled.
const (
	fileChunkRows, fileChunkBytes = 64 << 10, 16 << 20
	partChunkRows, partChunkBytes = 8 << 10, 1 << 20
)

// WriteFiles adds a sink that writes the rows of d in their order: to the file at path or, if
// perShard is true, to one file per shard in a directory at path. The files in the directory
// are named part-00000 and so on. WriteFiles is for packages that add other formats.
//
// Everything is written into a hidden staging directory beside path. The output is moved to
// path only when the job has succeeded, together with the job's other outputs; an incomplete
// output never appears at path. If a run is killed, the next run with this path removes the
// staged files, or finishes the commit of the killed run if it had begun. On a cluster every
// worker writes its shards into the staging directory, so all workers must see it at the same
// path. On a cluster, a single file needs twice its disk space until it appears at path, as its
// parts are kept in case the machine that assembles them fails.
//
// If path begins with "client:" (engine.ClientPath), the output is written on the machine on
// which the program was started, whichever machines run the job. Its rows are held in memory
// until the job has finished, so such a path is for small results.
//
// If path exists, the option engine.IfExists decides what happens. Two sinks of a job cannot
// have the same path. A source and a sink of a job can have the same path, as the old file
// remains until the job has ended.
func WriteFiles(d *engine.Dataset, path string, perShard bool, f FileFormat) {
	writeFilesOn(d, path, perShard, f, osDisk{})
}

// writeFilesOn implements WriteFiles with the file system calls of disk.
func writeFilesOn(d *engine.Dataset, path string, perShard bool, f FileFormat, disk outputDisk) {
	b := builderOf(f.Op, d)
	if path == "" || path == engine.ClientPath {
		b.Errorf("%s: the output path is empty", f.Op)
		return
	}
	if err := b.ClaimOutput(path); err != nil {
		b.Errorf("%s: %w", f.Op, err)
		return
	}
	if !usable(d) {
		return
	}
	here, atClient := strings.CutPrefix(path, engine.ClientPath)
	out := &fileOutput{
		path: here, perShard: perShard, format: f, schema: arrowrows.Arrow(d.Schema()), shards: b.Shards(),
		replace: b.IfExists() == engine.Replace, mem: b.Allocator(), disk: disk,
		owner: filelock.Owner{Job: b.Attempt().Job, Attempt: b.Attempt().Number},
	}
	attrs := append([]engine.Attr{{Key: "path", Value: path}}, f.Attrs...)
	if perShard {
		attrs = append(attrs, engine.Attr{Key: "per shard", Value: "true"})
	}
	b.Add(engine.Spec{
		Op:       f.Op,
		Attrs:    attrs,
		Inputs:   []engine.Port{{From: d}},
		Operator: func() engine.Operator { return &fileWriter{out: out} },
		Sink:     out,
		AtClient: atClient,
	})
}

// fileWriter writes the rows of one subtask to the staging directory, into one file for each
// shard.
type fileWriter struct {
	engine.BaseOperator
	out   *fileOutput
	mem   memory.Allocator
	file  *os.File // file of the current shard, nil if none is open
	shard int
	sum   *summed // computes the checksum of file
	buf   *bufio.Writer
	rows  RowWriter
	chunk *chunker // regroups rows, for formats with File
	index rowIndex
}

func (w *fileWriter) Open(c *engine.Context) error {
	w.mem = c.Allocator
	w.buf = bufio.NewWriterSize(nil, 256<<10)
	return nil
}

func (w *fileWriter) Process(_ *engine.Context, _, shard int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	if rows.NumRows() == 0 {
		return nil
	}
	if err := needText(rows, w.index.batch(rows.NumRows())); err != nil {
		return w.out.failed(err)
	}
	if w.file == nil {
		if err := w.begin(shard); err != nil {
			return w.out.failed(err)
		}
	}
	return w.out.failed(w.write(rows))
}

func (w *fileWriter) write(rows arrow.Record) error {
	if w.chunk != nil {
		return w.chunk.push(rows)
	}
	return w.rows.Write(arrowrows.Batch(rows))
}

func (w *fileWriter) EndShard(_ *engine.Context, shard int, _ engine.Output) error {
	w.index.endShard()
	if w.file == nil {
		// With one file per shard, shards without rows get a file too. For a single file, parts
		// are made only of shards with rows.
		if !w.out.perShard {
			return nil
		}
		if err := w.begin(shard); err != nil {
			return w.out.failed(err)
		}
	}
	return w.out.failed(w.end())
}

// begin opens the file of a shard.
func (w *fileWriter) begin(shard int) (err error) {
	w.shard = shard
	if w.file, err = w.out.disk.Create(w.out.shardPath(shard)); err != nil {
		return err
	}
	w.sum = &summed{w: w.file}
	w.buf.Reset(w.sum)
	f, whole := w.out.format, w.out.perShard
	limits := chunker{mem: w.mem, rows: partChunkRows, size: partChunkBytes}
	switch {
	case f.Rows != nil:
		if whole && f.Head != nil {
			if err := f.Head(w.buf); err != nil {
				return err
			}
		}
		if w.rows = f.Rows(w.buf); w.rows == nil {
			return errors.New("FileFormat.Rows returned nil")
		}
		return nil
	case whole:
		limits.rows, limits.size = fileChunkRows, fileChunkBytes
		if w.rows, err = f.File(w.buf, arrowrows.Schema(w.out.schema), w.mem); err != nil {
			return err
		}
		if w.rows == nil {
			return errors.New("FileFormat.File returned nil")
		}
	default:
		w.rows = recordWriter{batch.NewStreamWriter(w.buf, w.out.schema, w.mem)}
	}
	limits.emit = writeTo(w.rows)
	w.chunk = &limits
	return nil
}

// end completes the file of a shard.
func (w *fileWriter) end() error {
	if w.chunk != nil {
		if err := w.chunk.flush(); err != nil {
			return err
		}
	}
	rows := w.rows
	w.rows, w.chunk = nil, nil
	if err := rows.Close(); err != nil {
		return err
	}
	if err := w.buf.Flush(); err != nil {
		return err
	}
	if w.out.perShard {
		if err := w.out.disk.Sync(w.file); err != nil {
			return err
		}
	}
	f := w.file
	w.file = nil
	if err := f.Close(); err != nil {
		return err
	}
	w.out.note(partFile{Shard: w.shard, Size: w.sum.size, Sum: w.sum.sum})
	return nil
}

// Close closes the file of a shard that has not been completed. The sink removes the file.
func (w *fileWriter) Close() error {
	if w.chunk != nil {
		w.chunk.release()
	}
	if w.rows != nil {
		w.buf.Reset(io.Discard)
		_ = w.rows.Close() // releases the memory of the writer
	}
	if w.file != nil {
		return w.file.Close()
	}
	return nil
}

// shardPath returns the path of a shard's file in the staging directory.
func (o *fileOutput) shardPath(shard int) string {
	name := strconv.Itoa(shard)
	if o.perShard {
		name = fmt.Sprintf("part-%05d.%s", shard, o.format.Extension)
	}
	return filepath.Join(o.parts, name)
}

// failed adds to err the path of the output that could not be written.
func (o *fileOutput) failed(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("cannot write output %s: %w", o.path, err)
}
