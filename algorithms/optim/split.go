package optim

import (
	"slices"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// If there are at least splitFromDefault parameters, they are split among subtasks by ranges.
// Of the following vectors, each subtask keeps only the blocks that have the same numbers as
// its shards: the parameters, the current and the previous gradient, the pseudo-gradient, the
// direction, the factors of the penalty, the history, and the kept points of the path. With n
// parameters on p subtasks, a subtask stores
//
//	5 + 2·(History+1) vectors of n/p, one more with L1, one more if margins are not cached,
//	and 4 more without any penalty.
//
// Each subtask stores two whole vectors of n numbers; neither is kept between supersteps. The
// first is the vector with which rows are read: the direction, or the point if margins are not
// cached. The second holds the sum of the rows' gradients, with a copy for each tree node that
// covers the subtask's shards.
//
// A read of the rows sends each block of the gradient only to the subtask that keeps the block.
// Zeros are omitted if that needs fewer bytes. A read sends at most 8·(n − n/p) bytes for each
// node of the tree. A new direction is sent once, 8·n/p bytes to each other subtask. Decisions
// send some hundred bytes per block, see decisions.go. A search along a direction with cached
// margins sends nothing else. At the end of a round, parameters are sent like a direction, for
// the bound. They are sent again when the next round begins, as the gathered vector is not
// kept. At the end of training they are sent once to subtask 0, for the model.
//
// The vectors that are kept between supersteps (see kept.go) are stored by block, each under
// the key of the shard with its number, even if one subtask has all blocks. How they are kept
// thus does not depend on parallelism.
//
// If there are fewer parameters, vectors are whole on every subtask. They need little memory,
// and exchanging their sums would take more time than computing them everywhere.

// splitFromDefault is the least number of parameters that are split. With fewer parameters, a
// vector takes less than half a megabyte, and a pass over it takes less time than messages
// between subtasks on several machines. Moreover, LBFGS does not store the latest steps if
// there are this many parameters or more, however many subtasks there are.
const splitFromDefault = 1 << 16

// These objects are used if parameters are split.
var (
	ownReading  = shared.Scratch[[]float64]("optim block of gradient")
	readLengths = shared.Scratch[[]int]("optim lengths of blocks")
)

// splitParameters restricts the vectors of the subtask to the blocks of its shards if wide is
// set. w.v has all parameters before the call, and at the beginning of a minimisation,
// splitParameters takes the subtask's part from it.
func (w *work) splitParameters(ctx *comqueue.ComContext, wide bool) {
	shards := sharding.Range{Lo: 0, Hi: ctx.TotalShards()}
	w.blocked, w.split = wide, wide && ctx.NumTask() > 1
	if w.split {
		shards = ctx.Shards()
	}
	w.own = w.space.own(shards)
	w.lo, w.hi = w.space.at(w.own.Lo).Lo, w.space.at(w.own.Hi).Lo
	first := w.v
	switch {
	case w.joined:
		w.v = w.recall(ctx, parameters, w.local)
	case w.split:
		w.v = slices.Clone(first[w.lo:w.hi])
		fallthrough
	default:
		w.keep(ctx, parameters, w.v, w.local)
	}
	w.moves = make([]float64, w.own.Len())
	w.pending.rows = make([]float64, w.own.Len()*rowWidth)
	ownRows.Put(ctx, w.pending.rows)
	allRows.Put(ctx, nil)
	if !w.split {
		gathered.Put(ctx, nil)
		return
	}
	if w.gathered = first; w.joined {
		w.gathered = make([]float64, w.Dim)
	}
	w.PenaltyFactors = slices.Clone(w.PenaltyFactors[w.lo:w.hi])
	w.penalty.factors = w.PenaltyFactors
	gathered.Put(ctx, w.gathered)
	lengths := make([]int, ctx.NumTask())
	for t := range lengths {
		b := w.space.own(sharding.Split(ctx.TotalShards(), len(lengths), t))
		lengths[t] = w.space.at(b.Hi).Lo - w.space.at(b.Lo).Lo
	}
	lengths[0]++ // subtask 0 also gets the loss, which precedes the gradient
	readLengths.Put(ctx, lengths)
	ownReading.Put(ctx, make([]float64, lengths[ctx.TaskID()]))
}

// local returns the range of block i in the subtask's vectors.
func (w *work) local(i int) sharding.Range {
	r := w.space.at(i)
	return sharding.Range{Lo: r.Lo - w.lo, Hi: r.Hi - w.lo}
}

// full returns a vector with a component for every parameter: x, or if parameters are split,
// the vector that was gathered last.
func (t *training) full(x []float64) []float64 {
	if t.split {
		return t.gathered
	}
	return x
}

// gatherIf returns a stage that gathers a vector on every subtask if condition returns true.
// offer puts the subtask's part of that vector.
func (d descent) gatherIf(condition func(*comqueue.ComContext) (bool, error), offer func(*comqueue.ComContext) error) comqueue.Stage {
	return comqueue.While(1, condition, comqueue.Named("offer", comqueue.Do(offer)), comqueue.AllGather(ownPart, gathered))
}

// gathersReadVector reports whether rows are to be read with a vector that is not yet gathered.
func (d descent) gathersReadVector(ctx *comqueue.ComContext) (bool, error) {
	w := workOf.Get(ctx)
	return w.split && w.vectorChanged && (w.probing.kind != noProbe || w.readKind != readStep && w.readKind != noRead), nil
}

// offerReadVector puts the subtask's part of the vector with which rows are to be read.
func (d descent) offerReadVector(ctx *comqueue.ComContext) error {
	w := workOf.Get(ctx)
	w.vectorChanged = false
	switch {
	case w.readKind == readStart:
		ownPart.Put(ctx, w.v)
	case w.readKind == readPoint || w.readKind == readPointBeyondEnd:
		ownPart.Put(ctx, w.point)
	default:
		ownPart.Put(ctx, w.direction)
	}
	return nil
}

// offerParameters puts the subtask's part of the parameters.
func (d descent) offerParameters(ctx *comqueue.ComContext) error {
	ownPart.Put(ctx, workOf.Get(ctx).v)
	return nil
}

// isWhole and isSplit report whether parameters are whole or split.
func (d descent) isWhole(ctx *comqueue.ComContext) (bool, error) { return !workOf.Get(ctx).split, nil }
func (d descent) isSplit(ctx *comqueue.ComContext) (bool, error) { return workOf.Get(ctx).split, nil }

// endsSplit reports whether the superstep is the last one and the parameters are split.
func (d descent) endsSplit(ctx *comqueue.ComContext) (bool, error) {
	w := workOf.Get(ctx)
	return w.split && d.isLast(ctx, w.training), nil
}

// isLast reports whether the superstep is the last one.
func (d descent) isLast(ctx *comqueue.ComContext, t *training) bool {
	return t.state.Done || ctx.StepNo() == d.supersteps()
}

// reads returns the stages that read rows and distribute the results to the subtasks.
func (d descent) reads() (stages []comqueue.Stage) {
	read := func() comqueue.Stage {
		return comqueue.Named("read rows", comqueue.ForEachShard(reading, d.readRows, comqueue.FoldedBy(d.foldRows)))
	}
	return []comqueue.Stage{
		comqueue.While(1, d.isWhole, read(), comqueue.AllReduce(reading, comqueue.WithoutZeros())),
		comqueue.While(1, d.isSplit, read(),
			comqueue.ReduceScatter(reading, ownReading, comqueue.Blocks(readLengths), comqueue.WithoutZeros())),
	}
}

// readResult returns the derivatives that were read, for the parameters kept on this subtask.
// It stores the loss in w.pending on the subtask that has it.
func (w *work) readResult(ctx *comqueue.ComContext) []float64 {
	if !w.split {
		all := reading.Get(ctx)
		w.pending.loss = all[0]
		return all[1 : 1+w.Dim]
	}
	own := ownReading.Get(ctx)
	w.pending.loss = 0
	if ctx.TaskID() == 0 {
		w.pending.loss, own = own[0], own[1:]
	}
	return own
}
