package optim

import (
	"slices"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// From splitFromDefault parameters on, they are split among subtasks by feature range. Each
// subtask keeps the blocks with the numbers of its shards, of these vectors: the parameters, the
// current and the previous gradient, the pseudo-gradient, the direction, the factors of the
// penalty, the history, and the kept points of the path. With n parameters on p subtasks these
// are
//
//	5 + 2·(History+1) vectors of n/p, one more with L1, one more if margins are not cached,
//	and 4 more without any penalty.
//
// Two vectors of n are whole on each subtask, both scratch. One is the vector with which rows
// are read: the direction, or the point if margins are not cached. The other holds the sum of
// the rows' gradient, with a copy for each node that covers the subtask's shards. A read of the
// rows sends only what belongs to the blocks of others, without zeros while that is smaller: at
// most 8·(n − n/p) bytes for each node. A new direction is sent once, 8·n/p bytes to each other
// subtask. Decisions send some hundred bytes per block, see decisions.go. A search along a
// direction with cached margins sends nothing else. At the end of a round, parameters are sent
// like a direction, for the bound, and again when the next round begins, as the sent vector is
// scratch. At the end of training they are sent once to subtask 0, for the model.
//
// The vectors that are kept between supersteps (see kept.go) are under keys of the blocks'
// shards, even if one subtask has all blocks: the form in which they are kept does not depend
// on parallelism.
//
// Short vectors are whole on every subtask: they cost little, and the messages for exchanging
// sums would cost more than the sums.

// splitFromDefault is the number of parameters from which they are split. Below it, a vector
// takes half a megabyte, and a pass over it takes less time than messages between subtasks on
// several machines. From there on, latest steps are not kept either, whatever the number of
// subtasks.
const splitFromDefault = 1 << 16

// Objects of split parameters.
var (
	ownReading  = shared.Scratch[[]float64]("optim block of gradient")
	readLengths = shared.Scratch[[]int]("optim lengths of blocks")
)

// splitParameters restricts the subtask to the blocks of its shards if parameters are wide. At
// the beginning of a minimisation it takes its part of the first parameters, which are all
// there.
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
	case w.joins:
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
		whole.Put(ctx, nil)
		return
	}
	if w.whole = first; w.joins {
		w.whole = make([]float64, w.Dim)
	}
	w.PenaltyFactors = slices.Clone(w.PenaltyFactors[w.lo:w.hi])
	w.penalty.factors = w.PenaltyFactors
	whole.Put(ctx, w.whole)
	lengths := make([]int, ctx.NumTask())
	for t := range lengths {
		b := w.space.own(sharding.Split(ctx.TotalShards(), len(lengths), t))
		lengths[t] = w.space.at(b.Hi).Lo - w.space.at(b.Lo).Lo
	}
	lengths[0]++ // the loss comes first
	readLengths.Put(ctx, lengths)
	ownReading.Put(ctx, make([]float64, lengths[ctx.TaskID()]))
}

// local returns the range of block i in the vectors kept here.
func (w *work) local(i int) sharding.Range {
	r := w.space.at(i)
	return sharding.Range{Lo: r.Lo - w.lo, Hi: r.Hi - w.lo}
}

// full returns a vector of all parameters. x is the part kept here; if parameters are split,
// the result is the vector that was gathered last.
func (t *training) full(x []float64) []float64 {
	if t.split {
		return t.whole
	}
	return x
}

// gatherIf makes a vector whole on every subtask if the condition holds. offer returns the
// subtask's part of that vector.
func (d descent) gatherIf(when func(*comqueue.ComContext) (bool, error), offer func(*comqueue.ComContext) error) comqueue.Stage {
	return comqueue.While(1, when, comqueue.Named("offer", comqueue.Do(offer)), comqueue.AllGather(ownPart, whole))
}

// gathersReadVector says that rows are to be read with a vector that is not yet whole.
func (d descent) gathersReadVector(ctx *comqueue.ComContext) (bool, error) {
	w := working.Get(ctx)
	return w.split && w.stale && (w.probing.kind != noProbe || w.readKind != readStep && w.readKind != noRead), nil
}

// offerReadVector offers that vector.
func (d descent) offerReadVector(ctx *comqueue.ComContext) error {
	w := working.Get(ctx)
	w.stale = false
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

// offerParameters offers the parameters.
func (d descent) offerParameters(ctx *comqueue.ComContext) error {
	ownPart.Put(ctx, working.Get(ctx).v)
	return nil
}

// isWhole and isSplit tell how parameters are kept.
func (d descent) isWhole(ctx *comqueue.ComContext) (bool, error) { return !working.Get(ctx).split, nil }
func (d descent) isSplit(ctx *comqueue.ComContext) (bool, error) { return working.Get(ctx).split, nil }

// ends says that the superstep is the last and the parameters are split.
func (d descent) ends(ctx *comqueue.ComContext) (bool, error) {
	w := working.Get(ctx)
	return w.split && d.isLast(ctx, w.training), nil
}

// isLast says that the superstep is the last.
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

// readResult returns the derivatives that were read, for the parameters kept here. It stores the
// loss on the subtask that has it.
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
