package operators

import (
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// FlatMap replaces every row by any number of rows: f is called with each row and emits the
// rows that replace it, in order. An error of f fails the run, and is reported with the row's
// index within its shard.
//
// f borrows the row for the call, as in Map. emit copies its argument, so f may reuse slices.
// emit may be called only during the call of f; later calls panic.
func FlatMap[In, Out any](d *engine.Dataset, f func(row In, emit func(Out)) error) *engine.Dataset {
	const op = "FlatMap"
	b := builderOf(op, d)
	in, okIn := inputRows[In](op, d)
	out, okOut := outputRows[Out](op, b)
	if !okIn || !okOut || !needFunc(op, b, f == nil) {
		return b.Poisoned(op)
	}
	return b.Add(engine.Spec{
		Op:     op,
		Schema: arrowrows.Schema(out.Schema()),
		Inputs: []engine.Port{{From: d, Use: reads(in.Schema())}},
		Func:   f,
		Operator: func() engine.Operator {
			return &flatMapper[In, Out]{f: f, in: rowReader[In]{codec: in}, emitter: emitter[Out]{out: rowWriter[Out]{codec: out}}}
		},
	})
}

// flatMapper is the operator behind FlatMap.
type flatMapper[In, Out any] struct {
	engine.BaseOperator
	f  func(In, func(Out)) error
	in rowReader[In]
	emitter[Out]
}

func (o *flatMapper[In, Out]) Open(c *engine.Context) error {
	o.emitter.open(c)
	return nil
}

func (o *flatMapper[In, Out]) Process(_ *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	if err := o.in.reset(rows); err != nil {
		return err
	}
	for i := range o.in.len() {
		row, err := o.in.read(i)
		if err != nil {
			return err
		}
		o.begin(shard, out)
		err = o.f(*row, o.emit)
		if err = o.end(err); err != nil {
			return o.in.fail(i, err)
		}
	}
	return nil
}

func (o *flatMapper[In, Out]) EndShard(_ *engine.Context, shard int, out engine.Output) error {
	o.in.endShard()
	return o.flush(shard, out)
}

func (o *flatMapper[In, Out]) Close() error {
	o.out.close()
	return nil
}

// emitter writes the rows for which a user function calls emit. As emit returns no error,
// emitter stores the first error.
type emitter[T any] struct {
	out   rowWriter[T]
	emit  func(T)
	shard int
	to    engine.Output // receiver of the rows; nil outside of calls of the user's function
	err   error         // the first failure, which ends the run
}

func (e *emitter[T]) open(c *engine.Context) {
	e.out.open(c)
	e.emit = func(v T) {
		if e.to == nil {
			panic(errClosed)
		}
		if e.err == nil {
			e.out.row = v
			e.err = e.out.push(e.shard, e.to)
		}
	}
}

// begin is called before each call of the user's function.
func (e *emitter[T]) begin(shard int, to engine.Output) { e.shard, e.to = shard, to }

// end is called after each call of the user's function with the error that the function
// returned. It returns the error of emitting, if there is one, and otherwise err.
func (e *emitter[T]) end(err error) error {
	e.to = nil
	if e.err != nil {
		return e.err
	}
	return err
}

// flush emits the rows that have not been emitted yet.
func (e *emitter[T]) flush(shard int, to engine.Output) error {
	if e.err != nil {
		return e.err
	}
	return e.out.flush(shard, to)
}
