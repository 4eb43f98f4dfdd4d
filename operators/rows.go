package operators

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// A typed operator has the following form:
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
// At run time every subtask has its own operator, with a rowReader for each typed port and a
// rowWriter. Its methods are:
//
//	Open:     o.out.open(c)
//	Process:  o.in.reset(rows); for i := range o.in.len() { row, err := o.in.read(i); …; o.out.row = f(*row); o.out.push(shard, out) }
//	EndShard: o.in.endShard(); o.out.flush(shard, out)
//	Close:    o.out.close()
//
// Reader and writer do not allocate per row. engine.BaseOperator is embedded to supply the
// other methods of Operator.

// builderOf returns the builder of the first dataset that is not nil. If all datasets are nil,
// there is no builder that could record the misuse: builderOf then ends the job's function by a
// panic, which is reported like every other misuse. It also panics if the builder belongs to
// another build.
func builderOf(op string, ds ...*engine.Dataset) *engine.Builder {
	for _, d := range ds {
		if d != nil && d.Builder() != nil {
			d.Builder().MustBuild(op, "dataset")
			return d.Builder()
		}
	}
	panic(engine.Misuse{Err: fmt.Errorf("%s: the dataset is nil", op)})
}

// addPart adds an operator that is a part of the function op. Messages about the operator's
// failures and misuses begin with op, as the user does not know the operator's own name.
func addPart(op string, b *engine.Builder, spec engine.Spec) (d *engine.Dataset) {
	b.Within(op, func() { d = b.Add(spec) })
	return d
}

// needBuilder ends the job's function by a panic if b, which was passed to a source, is nil or
// belongs to another build.
func needBuilder(op string, b *engine.Builder) {
	if b == nil {
		panic(engine.Misuse{Err: fmt.Errorf("%s: the builder is nil", op)})
	}
	b.MustBuild(op, "builder")
}

// usable reports whether d has columns that can be checked. Builder.Add reports a nil dataset,
// and the cause of a poisoned dataset has been reported before.
func usable(d *engine.Dataset) bool { return d != nil && !d.Poisoned() }

// needFunc records a misuse if the user's function is nil. It reports whether the function is
// not nil.
func needFunc(op string, b *engine.Builder, isNil bool) bool {
	if isNil {
		b.Errorf("%s: the function is nil", op)
	}
	return !isNil
}

// inputRows returns the codec that reads rows of d as T. If d's columns cannot be read as T, it
// records why and returns false. It returns true for a nil or poisoned dataset, as Builder.Add
// reports these.
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

// outputRows returns the codec that writes rows of T. If T cannot be a row, it records why and
// returns false.
func outputRows[T any](op string, b *engine.Builder) (*batch.Codec[T], bool) {
	codec, err := batch.NewCodec[T]()
	if err != nil {
		b.Errorf("%s: %w", op, err)
		return nil, false
	}
	return codec, true
}

// findColumn returns the index of a column of d. If it does not exist, findColumn records that
// and returns false.
func findColumn(op string, d *engine.Dataset, name string) (int, bool) {
	i, err := batch.FindColumn(arrowrows.Arrow(d.Schema()), name)
	if err != nil {
		d.Builder().Errorf("%s: %w", op, err)
		return -1, false
	}
	return i, true
}

// newColumnName reports whether name can be the name of a new column of d. It records a misuse
// if name is empty or d already has a column of this name.
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

// rowIndex computes the indices of rows within the current shard of a port, batch by batch.
type rowIndex struct {
	first int64 // index of the first row of the current batch
	next  int64 // index of the first row of the next batch
}

// batch proceeds to the next batch of the shard, which has the given number of rows, and
// returns the index of its first row.
func (x *rowIndex) batch(rows int64) int64 {
	x.first, x.next = x.next, x.next+rows
	return x.first
}

// endShard resets the index for the next shard.
func (x *rowIndex) endShard() { *x = rowIndex{} }

// rowError adds to err the index within the shard of the row at which it occurred.
func rowError(index int64, err error) error {
	return &engine.RowError{Row: index, Err: err}
}

// needText returns an error if text in rows is not UTF-8. It is called before rows are written
// to a file, as other programs could not read a file with such text. Text that functions return
// has been checked before, but text from files may not be UTF-8. first is the index of the
// first row within the shard.
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
	// If copies is set, read copies strings and slices, so that rows stay valid after the batch
	// is released.
	copies bool
	// If whole is set, the rows of all shards are numbered consecutively, and errors contain a
	// row's index among all rows.
	whole bool

	index  rowIndex
	reader *batch.Reader[T]
	rows   arrow.Record // the current batch; borrowed
	row    T
}

// reset makes the reader read the next batch of the shard, which it borrows until the next call
// of reset.
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

// endShard resets the index of rows for the next shard.
func (r *rowReader[T]) endShard() {
	r.index.endShard()
	r.rows = nil
}

// len returns the number of rows of the batch.
func (r *rowReader[T]) len() int { return r.reader.Len() }

// read returns row i of the batch, which is valid until the next call. Its error has the index
// of the row within the shard.
func (r *rowReader[T]) read(i int) (*T, error) {
	if err := r.reader.Read(i, &r.row); err != nil {
		return nil, r.fail(i, r.explain(i, err))
	}
	return &r.row, nil
}

// explain returns an error that says which column is null or has the wrong length. It replaces
// err, the codec's error, which has the index of the row within the batch: messages must not
// depend on how rows are divided into batches.
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

// fail adds to err the index within the shard of the row at which it occurred. i is the index
// of the row within the batch.
func (r *rowReader[T]) fail(i int, err error) error {
	if r.whole {
		return rowOfInput(r.index.first+int64(i), err)
	}
	return rowError(r.index.first+int64(i), err)
}

// errClosed is the error if a function calls its emit after the function has returned or the
// operator was closed.
var errClosed = errors.New("a row was emitted outside the call that may emit it")

// rowWriter gathers rows of T into batches, which it emits when they are full. The operator
// must call flush at the end of a shard to emit the last rows.
type rowWriter[T any] struct {
	codec *batch.Codec[T]
	row   T // the row that push writes; a field, as a local variable would escape to the heap

	limit int
	app   *batch.Appender[T]
}

// open prepares the writer for use.
func (w *rowWriter[T]) open(c *engine.Context) {
	w.limit = c.BatchRows
	w.app = w.codec.Appender(c.Allocator)
}

// push writes w.row to the given shard.
func (w *rowWriter[T]) push(shard int, out engine.Output) error {
	if w.app == nil || out == nil {
		return errClosed
	}
	if err := w.app.AppendFrom(&w.row); err != nil {
		if w.app.Len() == 0 {
			return err
		}
		// The error may say that the batch has reached the limit of Arrow's offsets, so the row
		// is written again to a new batch.
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

// flush emits the rows that have not been emitted yet.
func (w *rowWriter[T]) flush(shard int, out engine.Output) error {
	if w.app.Len() == 0 {
		return nil
	}
	rows := w.app.NewRecord()
	defer rows.Release()
	return out.Emit(shard, arrowrows.Batch(rows))
}

// close drops the rows that have not been emitted, and releases the memory.
func (w *rowWriter[T]) close() {
	if w.app != nil {
		w.app.Release()
		w.app = nil
	}
	var zero T
	w.row = zero
}
