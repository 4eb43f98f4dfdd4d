package optim

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// The following objects are kept under keys between supersteps. The course of a minimisation
// depends on nothing else from earlier supersteps:
//
//	progress          the state of training
//	one vector each   the parameters, and the earlier gradients, steps and matrices that are
//	                  needed; replicated, or if there are very many parameters, kept in
//	                  blocks, each with the shard of the same number
//	descentKey        other state of a descent, see descentState
//	sgdKey            other state of SGD, see sgdState
//	evaluated         what the evaluator keeps for each shard, see Snapshot
//	found             the result, after the last superstep; it is kept with shard 0, which
//	                  subtask 0 owns at any parallelism
//
// The structs training, work and sgd point to these objects, so that keeping them takes no
// copies. All other fields of the structs are set up again in every superstep, or by a subtask
// that does not find the struct. They are computed from the settings, the rows and the kept
// objects.

// keptVector has the keys of a vector that is kept either whole or in blocks.
type keptVector struct {
	whole  shared.Key[[]float64]
	blocks shared.ShardKey[[]float64]
}

func newKeptVector(name string) keptVector {
	return keptVector{shared.Replicated("optim "+name, shared.Float64s()), shared.PerShard("optim block of "+name, shared.Float64s())}
}

// Vectors that a descent keeps.
var (
	parameters     = newKeptVector("parameters")
	latestGradient = newKeptVector("latest gradient")
	pairVectors    = newKeptVector("pairs")
	pathVectors    = [2]keptVector{newKeptVector("point passed"), newKeptVector("other point passed")}
	pathGradients  = [2]keptVector{newKeptVector("gradient passed"), newKeptVector("other gradient passed")}
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

// resultKey is the result. It is kept between supersteps, because the subtasks that close the
// queue may be other subtasks than those that trained.
var resultKey = shared.PerShard("optim result", shared.Msgpack[*Result]())

// keepResult returns the last stage of a superstep. In the superstep for which last returns
// true, the stage keeps the result.
func keepResult(last func(ctx *comqueue.ComContext, t *training) bool) comqueue.Stage {
	return comqueue.Named("keep result", comqueue.Do(func(ctx *comqueue.ComContext) error {
		if t := trained.Get(ctx); ctx.TaskID() == 0 && last(ctx, t) {
			resultKey.Put(ctx, 0, t.result(ctx))
		}
		return nil
	}))
}

// recall returns the vector kept under key. If there is none yet, it stores and returns n
// zeros.
func recall(ctx *comqueue.ComContext, key shared.Key[[]float64], n int) []float64 {
	v, ok := key.Lookup(ctx)
	if !ok || v == nil { // an empty slice is decoded as nil
		v = make([]float64, n)
		key.Put(ctx, v)
	}
	return v
}

// ownBlocks describes which blocks of the parameters a subtask keeps.
type ownBlocks struct {
	own     sharding.Range // blocks kept on this subtask
	lo, hi  int            // range of the parameters in these blocks
	blocked bool           // whether vectors are kept in blocks, even if this subtask has all blocks
}

// recall returns the subtask's blocks of the vector kept under key, with zeros for blocks that
// are not kept yet. blockRange returns the range of a block in the result.
func (s *ownBlocks) recall(ctx *comqueue.ComContext, key keptVector, blockRange func(block int) sharding.Range) []float64 {
	n := 0
	if s.own.Len() > 0 {
		n = blockRange(s.own.Hi - 1).Hi
	}
	if !s.blocked {
		return recall(ctx, key.whole, n)
	}
	v := make([]float64, n)
	for i := s.own.Lo; i < s.own.Hi; i++ {
		if kept, ok := key.blocks.Lookup(ctx, i); ok {
			r := blockRange(i)
			copy(v[r.Lo:r.Hi], kept)
		}
	}
	s.keep(ctx, key, v, blockRange)
	return v
}

// keep stores v under key.
func (s *ownBlocks) keep(ctx *comqueue.ComContext, key keptVector, v []float64, blockRange func(block int) sharding.Range) {
	if !s.blocked {
		key.whole.Put(ctx, v)
		return
	}
	for i := s.own.Lo; i < s.own.Hi; i++ {
		r := blockRange(i)
		key.blocks.Put(ctx, i, v[r.Lo:r.Hi:r.Hi])
	}
}

// descentState is the state of a descent that is kept between supersteps, besides vectors. It
// is the same on every subtask.
type descentState struct {
	Starting  bool    // the next superstep evaluates the parameters and begins a round
	Steepest  bool    // the next direction is the negative (pseudo-)gradient
	LastStep  float64 // step of the last iteration, for GD
	LastSlope float64

	ChangeFrom    float64 // number of reads from which on Auto changes to Newton's method, see change.go; 0 means never
	MatrixPending bool    // a matrix is being read for the first time

	ExtraIterations int     // number of iterations added to training, see continueTraining
	Rounds          int     // number of completed rounds
	Gap             float64 // gap at the end of the last round
	Tol             float64 // Tol of the settings, or a smaller value that rounds need

	PathNorms   [2]pathNorm // losses and gradient norms of the stored points of the path, see divergence.go
	LatestPoint int         // index of the point stored last
	PathPoints  int         // number of points stored

	Pairs historyState
	Steps ring
}

var descentKey = shared.Replicated("optim descent", shared.Msgpack[*descentState]())

// restart makes the next superstep begin a round.
func (c *descentState) restart(steepest bool) {
	c.Starting, c.Steepest, c.LastStep = true, steepest, 0
	c.Pairs.forget()
	c.Steps.reset()
}

// keptRows is what the evaluator keeps for a shard: its live state, or a snapshot of that
// state.
type keptRows struct {
	append   func(shard int, dst []byte) ([]byte, error) // encodes the live state; nil for a snapshot
	shard    int
	snapshot []byte
}

// rowsCodec encodes a keptRows. It takes the snapshot only when it encodes.
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

// keepRows registers the evaluator's state of each shard as kept with that shard. If a state is
// kept already, keepRows restores it.
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

// withCapacity returns x with capacity for at least n elements in total.
func withCapacity[T any](x []T, n int) []T { return slices.Grow(x, max(0, n-len(x))) }
