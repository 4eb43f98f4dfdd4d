package operators

import (
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// Map replaces every row by one row; rows keep their shards and order. The result has the
// columns of Out; other columns are dropped (WithColumn keeps them).
//
// f borrows the row for the call: its slices and strings must not be modified, but may be
// returned. Use MapErr if f can fail.
func Map[In, Out any](d *engine.Dataset, f func(In) Out) *engine.Dataset {
	return addMap("Map", d, f, f == nil, func(o *mapper[In, Out], in *In) error {
		o.out.row = f(*in)
		return nil
	})
}

// MapErr is Map for functions that can fail. An error fails the run, and is reported with the
// row's index within its shard. To drop a row instead, use FlatMap.
func MapErr[In, Out any](d *engine.Dataset, f func(In) (Out, error)) *engine.Dataset {
	return addMap("MapErr", d, f, f == nil, func(o *mapper[In, Out], in *In) (err error) {
		o.out.row, err = f(*in)
		return err
	})
}

// addMap adds a mapper. fn is the user's function; call calls fn and sets the row to write.
func addMap[In, Out any](op string, d *engine.Dataset, fn any, isNil bool, call func(o *mapper[In, Out], in *In) error) *engine.Dataset {
	b := builderOf(op, d)
	in, okIn := inputRows[In](op, d)
	out, okOut := outputRows[Out](op, b)
	if !okIn || !okOut || !needFunc(op, b, isNil) {
		return b.Poisoned(op)
	}
	return b.Add(engine.Spec{
		Op:       op,
		Schema:   arrowrows.Schema(out.Schema()),
		Inputs:   []engine.Port{{From: d, Use: reads(in.Schema())}},
		RowByRow: true,
		Func:     fn,
		Operator: func() engine.Operator {
			return &mapper[In, Out]{call: call, in: rowReader[In]{codec: in}, out: rowWriter[Out]{codec: out}}
		},
	})
}

// mapper is the operator behind Map.
type mapper[In, Out any] struct {
	engine.BaseOperator
	call func(o *mapper[In, Out], in *In) error
	in   rowReader[In]
	out  rowWriter[Out]
}

func (o *mapper[In, Out]) Open(c *engine.Context) error {
	o.out.open(c)
	return nil
}

func (o *mapper[In, Out]) Process(_ *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	if err := o.in.reset(rows); err != nil {
		return err
	}
	for i := range o.in.len() {
		row, err := o.in.read(i)
		if err != nil {
			return err
		}
		if err := o.call(o, row); err != nil {
			return o.in.fail(i, err)
		}
		if err := o.out.push(shard, out); err != nil {
			return o.in.fail(i, err)
		}
	}
	return nil
}

func (o *mapper[In, Out]) EndShard(_ *engine.Context, shard int, out engine.Output) error {
	o.in.endShard()
	return o.out.flush(shard, out)
}

func (o *mapper[In, Out]) Close() error {
	o.out.close()
	return nil
}
