package operators

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
)

// MapBatch turns every batch into one batch with the columns of schema; nil
// stands for those of d.
//
// The batch that f gets is borrowed; it must not be modified or released. The
// batch that f returns is the operator's: to return the one it got, or a part of
// it, f retains it first. No batch (nil) stands for no rows. New batches take
// their memory from c.Allocator.
//
// Where a batch ends depends on what comes before and on the options of the run,
// so that f must treat every row by itself; MapPartition sees whole shards. An
// error fails the run. f may block if it watches the context c.
func MapBatch(d *engine.Dataset, schema *arrow.Schema, f func(c *engine.Context, rows arrow.Record) (arrow.Record, error)) *engine.Dataset {
	const op = "MapBatch"
	b := builderOf(op, d)
	schema, ok := batchSchema(op, d, schema)
	if !ok || !needFunc(op, b, f == nil) {
		return b.Poisoned(op)
	}
	return b.Add(engine.Spec{
		Op:     op,
		Schema: schema,
		Inputs: []engine.Port{{From: d}},
		Func:   f,
		Operator: func() engine.Operator {
			return &batchMapper{schema: schema, f: f}
		},
	})
}

// batchSchema returns the columns of batches that a user's function makes, in
// the form that emitBatch compares with, or records what is wrong with them.
func batchSchema(op string, d *engine.Dataset, schema *arrow.Schema) (*arrow.Schema, bool) {
	if schema == nil {
		if d == nil {
			return nil, true // Builder.Add reports it
		}
		return d.Schema(), true
	}
	normal, err := batch.NormalizeSchema(schema)
	if err != nil {
		builderOf(op, d).Errorf("%s: the result: %w", op, err)
		return nil, false
	}
	return normal, true
}

// emitBatch takes over a batch that a user's function made, checks it and hands
// it on.
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
	if !normal.Schema().Equal(schema) {
		return fmt.Errorf("the batch returned has other columns than declared: %s", columnDifference(schema, normal.Schema()))
	}
	return out.Emit(shard, normal)
}

// columnDifference says where the columns of got first differ from those wanted.
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
	noop
	schema *arrow.Schema
	f      func(c *engine.Context, rows arrow.Record) (arrow.Record, error)
	index  rowIndex
}

func (o *batchMapper) Process(c *engine.Context, _, shard int, rows arrow.Record, out engine.Output) error {
	first := o.index.batch(rows.NumRows())
	made, err := o.f(c, rows)
	if err == nil {
		return batchError(first, emitBatch(shard, o.schema, made, out))
	}
	if made != nil {
		made.Release()
	}
	return batchError(first, err)
}

// batchError says which batch of the shard something failed in.
func batchError(first int64, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("batch from row %d of the shard on: %w", first, err)
}

func (o *batchMapper) EndShard(*engine.Context, int, engine.Output) error {
	o.index.endShard()
	return nil
}
