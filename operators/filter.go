package operators

import (
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// Filter keeps the rows for which f returns true. They keep their shards, their order and all
// columns, including columns that In does not have.
func Filter[In any](d *engine.Dataset, f func(In) bool) *engine.Dataset {
	const op = "Filter"
	b := builderOf(op, d)
	in, ok := inputRows[In](op, d)
	if !ok || !needFunc(op, b, f == nil) {
		return b.Poisoned(op)
	}
	return b.Add(engine.Spec{
		Op:       op,
		Schema:   d.Schema(),
		Inputs:   []engine.Port{{From: d, Use: keeps(d, reads(in.Schema()).Reads...)}},
		Func:     f,
		Operator: func() engine.Operator { return &filter[In]{f: f, in: rowReader[In]{codec: in}} },
	})
}

// filter is the operator behind Filter.
type filter[In any] struct {
	engine.BaseOperator
	f    func(In) bool
	in   rowReader[In]
	kept []int32
}

func (o *filter[In]) Process(c *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	if err := o.in.reset(rows); err != nil {
		return err
	}
	o.kept = o.kept[:0]
	for i := range o.in.len() {
		row, err := o.in.read(i)
		if err != nil {
			return err
		}
		if o.f(*row) {
			o.kept = append(o.kept, int32(i))
		}
	}
	return emitIndices(c, shard, rows, o.kept, out)
}

func (o *filter[In]) EndShard(*engine.Context, int, engine.Output) error {
	o.in.endShard()
	return nil
}
