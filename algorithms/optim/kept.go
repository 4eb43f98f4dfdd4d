package optim

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// The following is kept under keys, and alone decides how a minimisation continues from one
// superstep to the next:
//
//	progress          how far training has come
//	a vector each     the parameters, and the earlier gradients, steps and matrices that are
//	                  needed: replicated, or if parameters are very many by blocks with the
//	                  numbers of shards
//	descentKey        the rest of the state of a descent, see descentState
//	sgdKey            the rest of the state of SGD, see sgdState
//	evaluated         what the evaluator keeps of each shard, see Snapshot
//	found             the result, after the last superstep; it is kept with shard 0, which
//	                  subtask 0 owns at any parallelism
//
// The structs training, work and sgd point to these objects, so that keeping them costs
// nothing. Everything else in the structs is made anew in every superstep, or by a subtask that
// finds nothing: from the settings, the rows and the kept objects.

// vector is a kept vector.
type vector struct {
	whole  shared.Key[[]float64]
	blocks shared.ShardKey[[]float64]
}

func newVector(name string) vector {
	return vector{shared.Replicated("optim "+name, shared.Float64s()), shared.PerShard("optim block of "+name, shared.Float64s())}
}

// Vectors that a descent keeps.
var (
	parameters     = newVector("parameters")
	latestGradient = newVector("latest gradient")
	pairVectors    = newVector("pairs")
	pathVectors    = [2]vector{newVector("point passed"), newVector("other point passed")}
	pathGradients  = [2]vector{newVector("gradient passed"), newVector("other gradient passed")}
	latestSteps    = shared.Replicated("optim latest steps", shared.Float64s())
	secondDerivs   = shared.Replicated("optim second derivatives", shared.Float64s())
)

// Vectors that SGD keeps, besides the parameters.
var (
	velocities   = shared.Replicated("optim velocities", shared.Float64s())
	squareSums   = shared.Replicated("optim squares", shared.Float64s())
	epochBefore  = shared.Replicated("optim parameters of the epoch before", shared.Float64s())
	meanOfPoints = shared.Replicated("optim mean of parameters", shared.Float64s())
)

// found is the result. It is kept, as the gang that closes the queue may be a different one.
var found = shared.PerShard("optim result", shared.Msgpack[*Result]())

// keepResult is the last stage: it keeps the result after the last superstep.
func keepResult(last func(ctx *comqueue.ComContext, t *training) bool) comqueue.Stage {
	return comqueue.Named("keep result", comqueue.Do(func(ctx *comqueue.ComContext) error {
		if t := trained.Get(ctx); ctx.TaskID() == 0 && last(ctx, t) {
			found.Put(ctx, 0, t.result(ctx))
		}
		return nil
	}))
}

// recall returns the vector kept under a key, or n zeros if there is none yet.
func recall(ctx *comqueue.ComContext, key shared.Key[[]float64], n int) []float64 {
	v, ok := key.Lookup(ctx)
	if !ok || v == nil { // an empty slice comes back as nil
		v = make([]float64, n)
		key.Put(ctx, v)
	}
	return v
}

// share says which blocks of the parameters a subtask keeps.
type share struct {
	own     sharding.Range // blocks kept here
	lo, hi  int            // the parameters of these blocks
	blocked bool           // vectors are kept by blocks, even if this subtask has all of them
}

// recall returns the kept blocks of a vector, with zeros where there is nothing yet. place
// returns the position of a block in it.
func (s *share) recall(ctx *comqueue.ComContext, x vector, place func(block int) sharding.Range) []float64 {
	n := 0
	if s.own.Len() > 0 {
		n = place(s.own.Hi - 1).Hi
	}
	if !s.blocked {
		return recall(ctx, x.whole, n)
	}
	v := make([]float64, n)
	for i := s.own.Lo; i < s.own.Hi; i++ {
		if kept, ok := x.blocks.Lookup(ctx, i); ok {
			r := place(i)
			copy(v[r.Lo:r.Hi], kept)
		}
	}
	s.keep(ctx, x, v, place)
	return v
}

// keep stores v as a kept vector.
func (s *share) keep(ctx *comqueue.ComContext, x vector, v []float64, place func(block int) sharding.Range) {
	if !s.blocked {
		x.whole.Put(ctx, v)
		return
	}
	for i := s.own.Lo; i < s.own.Hi; i++ {
		r := place(i)
		x.blocks.Put(ctx, i, v[r.Lo:r.Hi:r.Hi])
	}
}

// descentState is the state of a descent between supersteps, besides vectors. It is the same on
// every subtask.
type descentState struct {
	Starting  bool    // the next superstep evaluates the parameters, and a round begins there
	Steepest  bool    // the next direction is the negative (pseudo-)gradient
	LastStep  float64 // step of the last iteration, for GD
	LastSlope float64

	ChangeFrom    float64 // number of reads after which Auto changes to Newton's method, see change.go; 0: never
	MatrixPending bool    // a matrix is being read for the first time

	ExtraIterations int     // iterations that training was continued for, see continueTraining
	Rounds          int     // rounds that have ended
	Gap             float64 // of the last round
	Tol             float64 // that of the settings, or a smaller one that rounds need

	PathNorms   [2]pathNorm // see divergence.go
	LatestPoint int         // index of the point kept last
	PathPoints  int         // number of points kept

	Pairs historyState
	Steps ring
}

var descentKey = shared.Replicated("optim descent", shared.Msgpack[*descentState]())

// restart begins a round.
func (c *descentState) restart(steepest bool) {
	c.Starting, c.Steepest, c.LastStep = true, steepest, 0
	c.Pairs.forget()
	c.Steps.reset()
}

// keptRows is what the evaluator keeps of a shard: its live state, or a snapshot of it.
type keptRows struct {
	append   func(shard int, dst []byte) ([]byte, error) // nil for a snapshot
	shard    int
	snapshot []byte
}

// rowsCodec encodes what an evaluator keeps as a snapshot, on demand.
type rowsCodec struct{}

// Append implements shared.Codec.
func (rowsCodec) Append(dst []byte, k *keptRows) ([]byte, error) {
	if k.append == nil {
		return append(dst, k.snapshot...), nil
	}
	out, err := k.append(k.shard, dst)
	if err != nil {
		return dst, fmt.Errorf("what the evaluator keeps of shard %d: %w", k.shard, err)
	}
	return out, nil
}

// Decode implements shared.Codec.
func (rowsCodec) Decode(src []byte) (*keptRows, error) {
	return &keptRows{snapshot: bytes.Clone(src)}, nil
}

var evaluated = shared.PerShard[*keptRows]("optim rows", rowsCodec{})

// keepRows registers what the evaluator keeps as kept with the shards, and restores it if
// something is kept already.
func (t *training) keepRows(ctx *comqueue.ComContext) error {
	if t.Snapshot.Append == nil {
		return nil
	}
	return ctx.ForShards(func(shard int) error {
		if before, ok := evaluated.Lookup(ctx, shard); ok {
			snapshot, err := rowsCodec{}.Append(nil, before)
			if err != nil {
				return err
			}
			if err := t.Snapshot.Restore(shard, snapshot); err != nil {
				return fmt.Errorf("what the evaluator kept, restored: %w", err)
			}
		}
		evaluated.Put(ctx, shard, &keptRows{append: t.Snapshot.Append, shard: shard})
		return nil
	})
}

// withCapacity returns a slice with capacity for n elements in all.
func withCapacity[T any](x []T, n int) []T { return slices.Grow(x, max(0, n-len(x))) }
