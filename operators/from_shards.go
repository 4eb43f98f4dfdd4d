package operators

import (
	"context"
	"errors"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// FromShards makes a dataset of rows that f makes shard by shard, when the job runs: it
// is called once for each shard, of 0 to shards-1, and gives the rows of that shard to
// emit, in order. It is for rows that a program can make or fetch in pieces by
// itself, such as a simulation by its seed, or the pages of a service.
//
// What f emits must depend on shard and shards alone, for the rows to be the same at any
// parallelism and in another attempt. Several shards are made at once by several
// subtasks; which ones is not f's to know, so that it keeps no state.
//
// What is given to emit is copied, so that slices may be reused. emit is good during the
// call and on its goroutine only. It waits where those who read the rows are not as fast,
// and does not return when the run ends for another reason: f's deferred functions run,
// and nothing else of it. An error that f returns fails the run, told with the
// shard; a row that is none, such as one with a vector of the wrong length, with its index too.
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

// errEmitEnds is what emit panics with where it cannot go on, as it returns no error.
var errEmitEnds = errors.New("the rows of this shard are not wanted any more")

// shardMaker is the source behind FromShards.
type shardMaker[T any] struct {
	noop
	f   func(shard, shards int, emit func(T)) error
	out rowWriter[T]

	rows  int64 // emitted of the shard at hand
	ended error // what emit could not go on for
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

// call calls f, up to where emit ends it. A panic of f's own goes on.
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

// shardEmitter is behind the emit of one call.
type shardEmitter[T any] struct {
	maker *shardMaker[T]
	c     *engine.Context
	done  <-chan struct{}
	shard int
	out   engine.Output // nil behind the call
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
