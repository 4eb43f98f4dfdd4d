package operators

import (
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// counted is the row in which counts are emitted.
type counted struct{ Count int64 }

// Count returns one row with one column "count" of type int64: the number of rows of d, which
// is 0 for an empty dataset. The row is in the last shard.
func Count(d *engine.Dataset) *engine.Dataset {
	const op = "Count"
	b := builderOf(op, d)
	codec, ok := outputRows[counted](op, b)
	if !ok {
		return b.Poisoned(op)
	}
	return b.Add(engine.Spec{
		Op:     op,
		Schema: arrowrows.Schema(codec.Schema()),
		Inputs: []engine.Port{{From: countShards(op, d)}},
		Single: true,
		Operator: func() engine.Operator {
			return &countSum{in: rowReader[counted]{codec: codec}, out: rowWriter[counted]{codec: codec}}
		},
	})
}

// countShards returns a dataset with one row per shard, which has the shard's number of rows.
// op is the function that the plan shows for the added operator.
func countShards(op string, d *engine.Dataset) *engine.Dataset {
	b := builderOf(op, d)
	codec, ok := outputRows[counted](op, b)
	if !ok {
		return b.Poisoned(op)
	}
	return addPart(op, b, engine.Spec{
		Op:       "CountShards",
		Schema:   arrowrows.Schema(codec.Schema()),
		Inputs:   []engine.Port{{From: d, Use: engine.ColumnUse{Some: true}}},
		Operator: func() engine.Operator { return &shardCounter{codec: codec} },
	})
}

// shardCounter is the operator behind countShards.
type shardCounter struct {
	engine.BaseOperator
	codec *batch.Codec[counted]
	n     int64
}

func (o *shardCounter) Process(_ *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	o.n += rows.NumRows()
	return nil
}

func (o *shardCounter) EndShard(c *engine.Context, shard int, out engine.Output) error {
	rec, err := o.codec.Record(c.Allocator, []counted{{o.n}})
	if err != nil {
		return err
	}
	defer rec.Release()
	o.n = 0
	return out.Emit(shard, arrowrows.Batch(rec))
}

// countSum adds the counts of all shards.
type countSum struct {
	engine.BaseOperator
	in  rowReader[counted]
	out rowWriter[counted]
	sum int64
}

func (o *countSum) Open(c *engine.Context) error {
	o.out.open(c)
	return nil
}

func (o *countSum) Process(_ *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	if err := o.in.reset(rows); err != nil {
		return err
	}
	for i := range o.in.len() {
		row, err := o.in.read(i)
		if err != nil {
			return err
		}
		o.sum += row.Count
	}
	return nil
}

func (o *countSum) Finish(c *engine.Context, out engine.Output) error {
	last := c.Range.Hi - 1
	o.out.row = counted{o.sum}
	if err := o.out.push(last, out); err != nil {
		return err
	}
	return o.out.flush(last, out)
}

func (o *countSum) Close() error {
	o.out.close()
	return nil
}
