package operators

import (
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Reduce combines all rows into one row, which is in the last shard. If d has no rows, the
// result has no rows. f combines the result of some rows (left) with the result of the rows
// after them (right). The rows of a shard are combined one by one in their order. Then the
// results of the shards are combined up the aligned binary tree over all shards; empty shards
// are skipped. So f must be associative, except for rounding, but need not be commutative. The
// result has the same bits at any parallelism.
//
// f may keep and change the rows.
func Reduce[T any](d *engine.Dataset, f func(left, right T) T) *engine.Dataset {
	const op = "Reduce"
	b := builderOf(op, d)
	in, okIn := inputRows[T](op, d)
	out, okOut := outputRows[T](op, b)
	if !okIn || !okOut || !needFunc(op, b, f == nil) {
		return b.Poisoned(op)
	}
	return b.Add(engine.Spec{
		Op:       op,
		Schema:   arrowrows.Schema(out.Schema()),
		Inputs:   []engine.Port{{From: reduceShards(op, d, in, out, f)}},
		Single:   true,
		Order:    engine.ShardTree,
		Func:     f,
		Operator: func() engine.Operator { return &reducer[T]{f: f, shardReducer: newShardReducer(out, out, f)} },
	})
}

// reduceShards returns one combined row of each shard that has rows. op is the function that
// the plan shows for the added operator.
func reduceShards[T any](op string, d *engine.Dataset, in, out *batch.Codec[T], f func(left, right T) T) *engine.Dataset {
	return addPart(op, d.Builder(), engine.Spec{
		Op:     "ReduceShards",
		Schema: arrowrows.Schema(out.Schema()),
		Inputs: []engine.Port{{From: d, Use: reads(in.Schema())}},
		Order:  engine.ShardTree,
		Func:   f,
		Operator: func() engine.Operator {
			o := newShardReducer(in, out, f)
			return &o
		},
	})
}

// shardReducer is the operator behind reduceShards.
type shardReducer[T any] struct {
	engine.BaseOperator
	f    func(left, right T) T
	in   rowReader[T]
	out  rowWriter[T]
	have bool
	acc  T
}

func newShardReducer[T any](in, out *batch.Codec[T], f func(left, right T) T) shardReducer[T] {
	return shardReducer[T]{f: f, in: rowReader[T]{codec: in, copies: true}, out: rowWriter[T]{codec: out}}
}

func (o *shardReducer[T]) Open(c *engine.Context) error {
	o.out.open(c)
	return nil
}

func (o *shardReducer[T]) Process(_ *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	if err := o.in.reset(rows); err != nil {
		return err
	}
	for i := range o.in.len() {
		row, err := o.in.read(i)
		if err != nil {
			return err
		}
		if o.have {
			o.acc = o.f(o.acc, *row)
		} else {
			o.acc, o.have = *row, true
		}
	}
	return nil
}

func (o *shardReducer[T]) EndShard(_ *engine.Context, shard int, out engine.Output) error {
	o.in.endShard()
	if !o.have {
		return nil
	}
	err := o.write(shard, o.acc, out)
	o.forget()
	return err
}

// write emits a row.
func (o *shardReducer[T]) write(shard int, row T, out engine.Output) error {
	o.out.row = row
	if err := o.out.push(shard, out); err != nil {
		return err
	}
	return o.out.flush(shard, out)
}

// forget drops the result of the rows so far.
func (o *shardReducer[T]) forget() {
	var zero T
	o.acc, o.have = zero, false
}

func (o *shardReducer[T]) Close() error {
	o.out.close()
	return nil
}

// reducer folds the rows of shards up the tree.
type reducer[T any] struct {
	shardReducer[T]
	f      func(left, right T) T
	folder *sharding.Folder[T]
}

func (o *reducer[T]) Open(c *engine.Context) error {
	o.folder = sharding.NewFolder(c.Range, o.f, nil)
	return o.shardReducer.Open(c)
}

func (o *reducer[T]) EndShard(_ *engine.Context, shard int, _ engine.Output) error {
	if o.have {
		o.folder.Push(shard, o.acc)
	}
	o.forget()
	return nil
}

// Finish emits the root of the tree. This subtask owns all shards, so their results form a
// single tree.
func (o *reducer[T]) Finish(c *engine.Context, out engine.Output) error {
	for _, root := range o.folder.Forest() {
		if err := o.write(c.Range.Hi-1, root.Value, out); err != nil {
			return err
		}
	}
	return nil
}
