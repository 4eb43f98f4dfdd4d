package operators

import (
	"fmt"
	"iter"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// Shard has the rows of a shard and the embedded Context. MapPartition passes it to its
// function; it is valid only during the call.
type Shard[In any] struct {
	// Context ends when the run ends. It provides random numbers (Random(purpose, s.Index, 0)),
	// counters and accumulators.
	*engine.Context
	// Index is the shard's number, from 0 to Context.Shards-1.
	Index int

	held *shardBuffer
	in   *rowReader[In]
	err  error // error of reading the rows
}

// Len returns the number of rows.
func (s *Shard[In]) Len() int64 { return s.held.count }

// Rows yields the rows in order. It may be called several times. Slices and strings in a row
// must not be modified, and are valid until the function returns.
func (s *Shard[In]) Rows() iter.Seq[In] {
	return func(yield func(In) bool) {
		s.in.endShard()
		for _, rows := range s.held.rows {
			if s.err != nil {
				return
			}
			if s.err = s.in.reset(rows); s.err != nil {
				return
			}
			for i := range s.in.len() {
				row, err := s.in.read(i)
				if err != nil {
					s.err = err
					return
				}
				if !yield(*row) {
					return
				}
			}
		}
	}
}

// MapPartition replaces the rows of every shard by any number of rows: f is called once for
// each shard, even if the shard is empty, and emits the rows that replace the shard's rows, in
// order. The emitted rows may depend on all rows of the shard, and thereby on the number of
// shards, but on nothing else.
//
// The rows of a shard are held in memory, within the run's budget. With more shards, each shard
// has fewer rows. emit copies its argument. An error of f fails the run.
func MapPartition[In, Out any](d *engine.Dataset, f func(s *Shard[In], emit func(Out)) error) *engine.Dataset {
	const op = "MapPartition"
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
			return &partitionMapper[In, Out]{f: f, in: rowReader[In]{codec: in}, emitter: emitter[Out]{out: rowWriter[Out]{codec: out}}}
		},
	})
}

// partitionMapper is the operator behind MapPartition.
type partitionMapper[In, Out any] struct {
	engine.BaseOperator
	f       func(*Shard[In], func(Out)) error
	context *engine.Context
	in      rowReader[In]
	held    shardBuffer
	emitter[Out]
}

func (o *partitionMapper[In, Out]) Open(c *engine.Context) error {
	o.context = c
	o.emitter.open(c)
	return nil
}

func (o *partitionMapper[In, Out]) Process(c *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	if err := o.held.add(c, rows); err != nil {
		return fmt.Errorf("hold the rows of a shard: %w, or cut the data into more shards", err)
	}
	return nil
}

func (o *partitionMapper[In, Out]) EndShard(c *engine.Context, shard int, out engine.Output) error {
	defer o.held.drop(c)
	s := &Shard[In]{Context: c, Index: shard, held: &o.held, in: &o.in}
	o.begin(shard, out)
	err := o.f(s, o.emit)
	if s.err != nil {
		err = s.err // f got only a part of the rows, so the error of reading takes precedence over an error of f
	}
	if err := o.end(err); err != nil {
		return err
	}
	o.in.endShard()
	return o.flush(shard, out)
}

func (o *partitionMapper[In, Out]) Close() error {
	if o.context != nil {
		o.held.drop(o.context)
	}
	o.out.close()
	return nil
}
