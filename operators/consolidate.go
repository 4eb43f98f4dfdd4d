package operators

import (
	"fmt"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// Consolidate copies the rows of each shard, unchanged, into one batch whose memory has exactly
// their size. Several consumers of the result share that memory. Without Consolidate, each
// consumer that holds rows holds the batches in which they arrived. Put it before operators
// that read the same data repeatedly.
//
// The rows of a shard are held in memory, within the run's budget.
func Consolidate(d *engine.Dataset) *engine.Dataset {
	const op = "Consolidate"
	b := builderOf(op, d)
	return b.Add(engine.Spec{
		Op:       op,
		Schema:   d.Schema(),
		Inputs:   []engine.Port{{From: d, Use: keeps(d)}},
		Operator: func() engine.Operator { return &consolidator{} },
	})
}

// consolidator is the operator behind Consolidate.
type consolidator struct {
	engine.BaseOperator
	context *engine.Context
	held    shardBuffer
}

func (o *consolidator) Open(c *engine.Context) error {
	o.context = c
	return nil
}

func (o *consolidator) Process(c *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	if err := o.held.add(c, rows); err != nil {
		return fmt.Errorf("hold the rows of a shard: %w, or cut the data into more shards", err)
	}
	return nil
}

func (o *consolidator) EndShard(c *engine.Context, shard int, out engine.Output) error {
	if o.held.count == 0 {
		return nil
	}
	all, err := batch.Concat(c.Allocator, o.held.rows)
	if err != nil {
		return fmt.Errorf("%w; cut the data into more shards", err)
	}
	defer all.Release()
	o.held.drop(c)
	return out.Emit(shard, arrowrows.Batch(all))
}

func (o *consolidator) Close() error {
	if o.context != nil {
		o.held.drop(o.context)
	}
	return nil
}
