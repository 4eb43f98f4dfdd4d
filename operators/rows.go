package operators

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// How a typed operator is put together:
//
//	func Twice[In, Out any](d *engine.Dataset, f func(In) Out) *engine.Dataset {
//		const op = "Twice"
//		b := builderOf(op, d)
//		in, okIn := inputRows[In](op, d)      // checks d's columns against In
//		out, okOut := outputRows[Out](op, b)  // derives the columns of Out
//		if !okIn || !okOut || !needFunc(op, b, f == nil) {
//			return b.Poisoned(op)             // the misuse is recorded
//		}
//		return b.Add(engine.Spec{Op: op, Schema: out.Schema(), Func: f, …,
//			Operator: func() engine.Operator { return &twice[In, Out]{f: f, in: rowReader[In]{codec: in}, out: rowWriter[Out]{codec: out}} }})
//	}
//
// At run time every subtask has its own operator with a rowReader per typed port and a
// rowWriter:
//
//	Open:     o.out.open(c)
//	Process:  o.in.reset(rows); for i := range o.in.len() { row, err := o.in.read(i); …; o.out.row = f(*row); o.out.push(shard, out) }
//	EndShard: o.in.endShard(); o.out.flush(shard, out)
//	Close:    o.out.close()
//
// Neither allocates per row. engine.BaseOperator, which is embedded, supplies the other methods of Operator.

// builderOf returns the builder of the first dataset that is not nil. If all are nil there is
// no builder to record the misuse with: builderOf ends the job's function by a panic, which is
// reported like every other misuse. It does the same if the builder is of another build.
func builderOf(op string, ds ...*engine.Dataset) *engine.Builder {
	for _, d := range ds {
		if d != nil && d.Builder() != nil {
			d.Builder().MustBuild(op, "dataset")
			return d.Builder()
		}
	}
	panic(engine.Misuse{Site: callerSite(), Err: fmt.Errorf("%s: the dataset is nil", op)})
}

// addPart adds an operator that is a part of the operator op. Messages about its failures and
// misuses begin with op, the name that the user knows.
func addPart(op string, b *engine.Builder, spec engine.Spec) (d *engine.Dataset) {
	b.Within(op, func() { d = b.Add(spec) })
	return d
}

// needBuilder ends the job's function by a panic if a source is given no builder, or one of
// another build.
func needBuilder(op string, b *engine.Builder) {
	if b == nil {
		panic(engine.Misuse{Site: callerSite(), Err: fmt.Errorf("%s: the builder is nil", op)})
	}
	b.MustBuild(op, "builder")
}

// modulePath is the path of this module.
var modulePath = path.Dir(reflect.TypeFor[rowIndex]().PkgPath())

// callerSite returns "file.go:31" for the innermost frame outside this package and the other
// libraries of this module.
func callerSite() string {
	pcs := make([]uintptr, 32)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs)])
	for {
		f, more := frames.Next()
		library := strings.HasPrefix(f.Function, modulePath+"/operators") || strings.HasPrefix(f.Function, modulePath+"/algorithms")
		if f.File != "" && (!library || strings.HasSuffix(f.File, "_test.go")) {
			return fmt.Sprintf("%s:%d", filepath.Base(f.File), f.Line)
		}
		if !more {
			return ""
		}
	}
}

// usable reports whether the operator's columns can be checked against d. Builder.Add reports a
// nil dataset, and the cause of a poisoned one has been reported.
func usable(d *engine.Dataset) bool { return d != nil && !d.Poisoned() }

// needFunc records the misuse of a nil function. It reports whether the operator
// can be added.
func needFunc(op string, b *engine.Builder, isNil bool) bool {
	if isNil {
		b.Errorf("%s: the function is nil", op)
	}
	return !isNil
}

// inputRows returns the codec that reads rows of d as T, or records why T cannot be read from
// d's columns. For a nil or poisoned dataset it returns true, as Builder.Add handles these.
func inputRows[T any](op string, d *engine.Dataset) (*batch.Codec[T], bool) {
	b := builderOf(op, d)
	codec, err := batch.NewCodec[T]()
	if err == nil && usable(d) {
		codec = codec.For(arrowrows.Arrow(d.Schema()))
		_, err = codec.Bind(arrowrows.Arrow(d.Schema()))
	}
	if err != nil {
		b.Errorf("%s: %w", op, err)
		return nil, false
	}
	return codec, true
}

// outputRows returns the codec that writes rows of T, or records why T cannot be
// a row.
func outputRows[T any](op string, b *engine.Builder) (*batch.Codec[T], bool) {
	codec, err := batch.NewCodec[T]()
	if err != nil {
		b.Errorf("%s: %w", op, err)
		return nil, false
	}
	return codec, true
}

// findColumn returns the index of a column of d, or records that it does not
// exist.
func findColumn(op string, d *engine.Dataset, name string) (int, bool) {
	i, err := batch.FindColumn(arrowrows.Arrow(d.Schema()), name)
	if err != nil {
		d.Builder().Errorf("%s: %w", op, err)
		return -1, false
	}
	return i, true
}

// newColumnName records the misuse of a column name that is empty or that d has already.
func newColumnName(op string, d *engine.Dataset, name string) bool {
	switch {
	case name == "":
		d.Builder().Errorf("%s: the new column has no name", op)
	case d.Schema().Index(name) >= 0:
		d.Builder().Errorf("%s: column %q exists already; choose another name, or rename or leave out the old one first", op, name)
	default:
		return true
	}
	return false
}

// rowIndex numbers the rows of the current shard on one port, batch by batch.
type rowIndex struct {
	first int64 // of the current batch
	next  int64 // of the next batch
}

// batch moves to the next batch of the shard and returns the index of its first row.
func (x *rowIndex) batch(rows int64) int64 {
	x.first, x.next = x.next, x.next+rows
	return x.first
}

// endShard starts over.
func (x *rowIndex) endShard() { *x = rowIndex{} }

// rowError adds to an error the row of the shard at which it happened.
func rowError(index int64, err error) error {
	return &engine.RowError{Row: index, Err: err}
}

// needText refuses rows whose text is not UTF-8 before they are written to a file that others
// could not read. Rows of functions always have UTF-8 text, rows of files may not. first is the
// index within the shard of the first row.
func needText(rows arrow.Record, first int64) error {
	err := batch.ValidateText(rows)
	if text := new(batch.TextError); errors.As(err, &text) {
		return rowError(first+int64(text.Row), fmt.Errorf("column %q: %w", text.Column, text.Why()))
	}
	return err
}

// rowReader reads the rows of one port of one subtask as values of T.
type rowReader[T any] struct {
	codec *batch.Codec[T]
	// copies makes read copy strings and slices, so that rows outlive the batch.
	copies bool
	// whole says that all shards are read as one, so errors give a row's index among all rows.
	whole bool

	index  rowIndex
	reader *batch.Reader[T]
	rows   arrow.Record // borrowed
	row    T
}

// reset points the reader at the next batch of the shard, which is borrowed
// until the next call.
func (r *rowReader[T]) reset(rows arrow.Record) error {
	if r.reader == nil {
		var err error
		if r.reader, err = r.codec.Bind(rows.Schema()); err != nil {
			return err
		}
		r.reader.SetCopy(r.copies)
	}
	r.rows = rows
	r.index.batch(rows.NumRows())
	return r.reader.Reset(rows)
}

// endShard resets the row count.
func (r *rowReader[T]) endShard() {
	r.index.endShard()
	r.rows = nil
}

// len returns the rows of the batch.
func (r *rowReader[T]) len() int { return r.reader.Len() }

// read returns row i of the batch, valid until the next call. The error names
// the row by its index within the shard.
func (r *rowReader[T]) read(i int) (*T, error) {
	if err := r.reader.Read(i, &r.row); err != nil {
		return nil, r.fail(i, r.explain(i, err))
	}
	return &r.row, nil
}

// explain returns an error that says which column is null or of the wrong length. The codec's
// own message counts rows by batch, and messages must not depend on batches.
func (r *rowReader[T]) explain(i int, err error) error {
	for _, f := range r.codec.Schema().Fields() {
		if f.Nullable {
			continue
		}
		for _, c := range r.rows.Schema().FieldIndices(f.Name) {
			if r.rows.Column(c).IsNull(i) {
				return fmt.Errorf("column %q is null, which %v cannot hold; make the field a pointer, or filter such rows out",
					f.Name, reflect.TypeFor[T]())
			}
		}
	}
	if length := new(batch.LengthError); errors.As(err, &length) {
		return fmt.Errorf("column %q: %w", length.Column, length.Why())
	}
	return err
}

// fail adds to an error the row of the shard at which it happened. i is the row of the batch.
func (r *rowReader[T]) fail(i int, err error) error {
	if r.whole {
		return rowOfInput(r.index.first+int64(i), err)
	}
	return rowError(r.index.first+int64(i), err)
}

// errClosed is the error of a rowWriter that gets rows after its operator was closed, such as
// from a function that kept its emit.
var errClosed = errors.New("a row was emitted outside the call that may emit it")

// rowWriter gathers rows of T into batches. Rows wait until there are enough for
// a batch, at most to the end of the shard: flush it there.
type rowWriter[T any] struct {
	codec *batch.Codec[T]
	row   T // to be written by push; held here as a local variable would escape

	limit int
	app   *batch.Appender[T]
}

// open makes the writer ready.
func (w *rowWriter[T]) open(c *engine.Context) {
	w.limit = c.BatchRows
	w.app = w.codec.Appender(c.Allocator)
}

// push writes w.row under a shard.
func (w *rowWriter[T]) push(shard int, out engine.Output) error {
	if w.app == nil || out == nil {
		return errClosed
	}
	if err := w.app.AppendFrom(&w.row); err != nil {
		if w.app.Len() == 0 {
			return err
		}
		// The batch may be at the limit of what Arrow can address.
		if full := w.flush(shard, out); full != nil {
			return full
		}
		if err := w.app.AppendFrom(&w.row); err != nil {
			return err
		}
	}
	if w.app.Len() >= w.limit {
		return w.flush(shard, out)
	}
	return nil
}

// flush emits the rows that wait.
func (w *rowWriter[T]) flush(shard int, out engine.Output) error {
	if w.app.Len() == 0 {
		return nil
	}
	rows := w.app.NewRecord()
	defer rows.Release()
	return out.Emit(shard, arrowrows.Batch(rows))
}

// close drops the rows that wait, and releases the memory.
func (w *rowWriter[T]) close() {
	if w.app != nil {
		w.app.Release()
		w.app = nil
	}
	var zero T
	w.row = zero
}
