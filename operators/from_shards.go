package operators

import (
	"context"
	"errors"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// FromShards makes a dataset of rows that f emits when the job runs. f is called once for each
// shard, from 0 to shards-1, and emits the rows of that shard in order. FromShards is for rows
// that a program can compute or fetch in independent pieces, such as simulations with different
// seeds, or the result pages of a web service.
//
// The rows that f emits must depend only on shard and shards, so that they are the same at any
// parallelism and when the run is attempted again. Several subtasks call f at the same time, so
// it must keep no state.
//
// emit copies its argument, so f may reuse slices. emit may be called only during the call of
// f, and only on the goroutine of that call. emit blocks while the consumers of the rows are
// slower than f. If the run has failed elsewhere or was cancelled, emit does not return; it
// panics, so that only the deferred functions of f still run. An error of f fails the run and
// is reported with the shard's number. An invalid row, such as a row with a vector of the wrong
// length, fails the run and is reported with the shard's number and the row's index.
func FromShards[T any](b *engine.Builder, f func(shard, shards int, emit func(T)) error) *engine.Dataset {
	const op = "FromShards"
	needBuilder(op, b)
	codec, ok := outputRows[T](op, b)
	if !ok || !needFunc(op, b, f == nil) {
		return b.Poisoned(op)
	}
	return b.Add(engine.Spec{
		Op:     op,
		Schema: arrowrows.Schema(codec.Schema()),
		Func:   f,
		Source: func() engine.Source {
			return &shardMaker[T]{f: f, out: rowWriter[T]{codec: codec}}
		},
	})
}

// emit panics with errEmitEnds to end the call of f, as emit returns no error.
var errEmitEnds = errors.New("the rows of this shard are not wanted any more")

// shardMaker is the source behind FromShards.
type shardMaker[T any] struct {
	engine.BaseOperator
	f   func(shard, shards int, emit func(T)) error
	out rowWriter[T]

	rows  int64 // number of rows of the current shard emitted so far
	ended error // why emit ended the call of f, or nil
}

func (s *shardMaker[T]) Open(c *engine.Context) error {
	s.out.open(c)
	return nil
}

func (s *shardMaker[T]) ReadShard(c *engine.Context, shard int, out engine.Output) error {
	s.rows, s.ended = 0, nil
	emitter := &shardEmitter[T]{maker: s, done: c.Done(), c: c, shard: shard, out: out}
	err := s.call(shard, c.Shards, emitter.emit)
	emitter.out = nil
	switch {
	case s.ended != nil:
		return s.ended
	case err != nil:
		return err
	}
	return s.out.flush(shard, out)
}

// call calls f. It recovers from the panic by which emit ends the call, but not from other
// panics.
func (s *shardMaker[T]) call(shard, shards int, emit func(T)) error {
	defer func() {
		if s.ended != nil {
			_ = recover()
		}
	}()
	return s.f(shard, shards, emit)
}

func (s *shardMaker[T]) Close() error {
	s.out.close()
	return nil
}

// shardEmitter implements emit for one call of f.
type shardEmitter[T any] struct {
	maker *shardMaker[T]
	c     *engine.Context
	done  <-chan struct{}
	shard int
	out   engine.Output // receiver of the rows; nil after the call of f
}

func (e *shardEmitter[T]) emit(v T) {
	s := e.maker
	if e.out == nil {
		panic(errClosed)
	}
	if s.ended == nil {
		select {
		case <-e.done:
			s.ended = context.Cause(e.c)
		default:
			s.out.row = v
			if err := s.out.push(e.shard, e.out); err != nil {
				s.ended = rowError(s.rows, err)
			}
		}
	}
	if s.ended != nil {
		panic(errEmitEnds)
	}
	s.rows++
}
