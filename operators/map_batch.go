package operators

import (
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// MapBatch replaces every batch by one batch with the columns of schema. The zero Schema means
// the columns of d.
//
// f borrows the batch rows, and must not modify or release it. The operator owns the batch that
// f returns. So f must retain rows, or a slice of rows, before it returns them; otherwise the
// run fails. The zero Batch means no rows. New batches, such as those of columnar.NewBatch,
// take their memory from c.Allocator.
//
// How rows are divided into batches depends on earlier operators and on the options of the run,
// so f must process every row independently of others. Use MapPartition to process whole
// shards. An error of f fails the run. f may block, but must return when the context c ends.
func MapBatch(d *engine.Dataset, schema engine.Schema, f func(c *engine.Context, rows engine.Batch) (engine.Batch, error)) *engine.Dataset {
	const op = "MapBatch"
	b := builderOf(op, d)
	made, ok := batchSchema(op, d, schema)
	if !ok || !needFunc(op, b, f == nil) {
		return b.Poisoned(op)
	}
	return b.Add(engine.Spec{
		Op:     op,
		Schema: arrowrows.Schema(made),
		Inputs: []engine.Port{{From: d}},
		Func:   f,
		Operator: func() engine.Operator {
			return &batchMapper{schema: made, f: func(c *engine.Context, rows engine.Batch, _ []engine.Batch) (engine.Batch, error) { return f(c, rows) }}
		},
	})
}

// batchSchema returns the schema of the batches that a user's function makes, normalized as
// emitBatch requires. If the schema is wrong, it records why and returns false.
func batchSchema(op string, d *engine.Dataset, schema engine.Schema) (*arrow.Schema, bool) {
	if schema.IsZero() {
		if d == nil {
			return nil, true // Builder.Add reports the nil dataset
		}
		return arrowrows.Arrow(d.Schema()), true
	}
	normal, err := batch.NormalizeSchema(arrowrows.Arrow(schema))
	if err != nil {
		builderOf(op, d).Errorf("%s: the result: %w", op, err)
		return nil, false
	}
	return normal, true
}

// emitBatch takes ownership of a batch that a user's function made, checks it and emits it.
func emitBatch(shard int, schema *arrow.Schema, rows arrow.Record, out engine.Output) error {
	if rows == nil {
		return nil
	}
	defer rows.Release()
	normal, err := batch.Normalize(rows)
	if err != nil {
		return fmt.Errorf("the batch returned: %w", err)
	}
	defer normal.Release()
	if err := batch.ValidateText(normal); err != nil {
		return fmt.Errorf("the batch returned: %w", err)
	}
	if !normal.Schema().Equal(schema) {
		return fmt.Errorf("the batch returned has other columns than declared: %s", columnDifference(schema, normal.Schema()))
	}
	return out.Emit(shard, arrowrows.Batch(normal))
}

// columnDifference describes the first difference between the columns of got and want.
func columnDifference(want, got *arrow.Schema) string {
	w, g := batch.Columns(want), batch.Columns(got)
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return fmt.Sprintf("column %d is %q instead of %q", i+1, g[i], w[i])
		}
	}
	return fmt.Sprintf("there are %d columns instead of %d", len(g), len(w))
}

// batchMapper is the operator behind MapBatch and MapBatchWith.
type batchMapper struct {
	engine.BaseOperator
	schema *arrow.Schema
	f      func(c *engine.Context, rows engine.Batch, side []engine.Batch) (engine.Batch, error)
	with   bool // the operator has a side input, at port 1
	index  rowIndex

	side []arrow.Record // batches of the side input; owned
	lent []engine.Batch // copies of the batches of side that the current call borrows
}

// Open retains each batch of the side input for this subtask.
func (o *batchMapper) Open(c *engine.Context) error {
	if o.with {
		for _, rows := range arrowrows.Records(c.Side(1)) {
			o.side = append(o.side, array.NewRecord(rows.Schema(), rows.Columns(), rows.NumRows()))
		}
	}
	return nil
}

func (o *batchMapper) Process(c *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	first := o.index.batch(rows.NumRows())
	made, err := o.call(c, rows)
	if err == nil {
		err = emitBatch(shard, o.schema, made, out)
	}
	return batchError(first, err)
}

// These errors say that a function has released a batch that it does not own. Without them,
// other operators that read the same rows would fail.
var (
	errNotRetained     = errors.New("the function returned the batch that it was given, which is borrowed, without retaining it: call Retain on it first")
	errReleased        = errors.New("the function released the batch that it was given, which is borrowed: it must not, unless it has called Retain on it before")
	errSideNotRetained = errors.New("the function returned a batch of the side input, which is borrowed, without retaining it: call Retain on it first")
	errSideReleased    = errors.New("the function released a batch of the side input, which is borrowed: it must not, unless it has called Retain on it before")
)

// call calls the user's function and returns the batch that the function made, which the caller
// owns. The function gets separate records for its batches, so that call can find out whether
// the function wrongly released one of them.
func (o *batchMapper) call(c *engine.Context, rows arrow.Record) (made arrow.Record, err error) {
	lent := array.NewRecord(rows.Schema(), rows.Columns(), rows.NumRows())
	returned := false
	defer func() {
		if !returned && !batch.Released(lent) { // the function panicked
			lent.Release()
		}
	}()
	o.lent = o.lent[:0] // filled again for each call, as the function may have reordered the slice
	for _, s := range o.side {
		o.lent = append(o.lent, arrowrows.Batch(s))
	}
	given, err := o.f(c, arrowrows.Batch(lent), o.lent)
	made = arrowrows.Record(given)
	returned = true
	misuse := error(nil)
	if batch.Released(lent) {
		misuse = errReleased
	} else if lent.Release(); made == lent && batch.Released(lent) {
		misuse, made = errNotRetained, nil
	}
	for _, s := range o.side {
		if batch.Released(s) {
			misuse = errSideReleased
		} else if s == made {
			if s.Release(); batch.Released(s) {
				misuse, made = errSideNotRetained, nil
			} else {
				s.Retain()
			}
		}
	}
	if err == nil {
		err = misuse
	}
	if err != nil && made != nil && !batch.Released(made) {
		made.Release()
	}
	if err != nil {
		return nil, err
	}
	return made, nil
}

func (o *batchMapper) EndShard(*engine.Context, int, engine.Output) error {
	o.index.endShard()
	return nil
}

func (o *batchMapper) Close() error {
	for _, s := range o.side {
		if !batch.Released(s) {
			s.Release()
		}
	}
	o.side, o.lent = nil, nil
	return nil
}

// batchError adds to err the index of the first row of the batch in which it occurred.
func batchError(first int64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("batch from row %d of the shard on: %w", first, err)
}
