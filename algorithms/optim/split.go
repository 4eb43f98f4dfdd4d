package optim

import (
	"slices"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/shared"
)

// Parameters are split among subtasks by feature range from widely on: each keeps, of the
// blocks that bear the numbers of its shards, the parameters, the gradient and the one
// before, the pseudo-gradient, the direction, the factors of the penalty, the history, and
// the points that were passed. With n parameters on p subtasks these are
//
//	5 + 2·(History+1) vectors of n/p, with L1 one more, where margins are not cached one
//	more, and without any penalty 4 more
//
// and whole are, on each, two vectors of n, both scratch: the one that rows are read with,
// which is the direction, or the point where margins are not cached, and what the rows'
// gradient is added up in, of which one is needed for each node that covers the subtask's
// shards. A read of the rows sends of that what belongs to the blocks of others, without
// zeros while that is smaller, at most 8·(n − n/p) bytes for each node; a new direction is
// sent once, 8·n/p bytes to each other subtask; and decisions some hundred bytes a block,
// see decisions.go. In a search along a direction whose margins are cached nothing else moves.
// At the end of a round parameters are sent like a direction, for the bound, and again where
// the next begins, as what was sent is scratch; and at the end of training once to subtask 0,
// for the model.
//
// What of the vectors is kept from one superstep to the next, see kept.go, is under keys of the
// blocks' shards, also where one subtask has all blocks: how it is kept does not depend on
// parallelism.
//
// Short vectors are whole on every subtask: they cost little, and the messages by which
// subtasks tell each other sums would cost more than the sums.

// widely is the number of parameters from which on they are split: below, a vector takes
// half a megabyte and a pass over it less than the messages between subtasks on several
// machines. Nor are latest steps kept from there on, whatever the number of subtasks.
const widely = 1 << 16

// Objects of split parameters.
var (
	ownReading  = shared.Scratch[[]float64]("optim block of gradient")
	readLengths = shared.Scratch[[]int]("optim lengths of blocks")
)

// divide has the subtask keep the blocks of its shards alone, where parameters are wide, and
// where a minimisation begins takes the first ones, which are all there.
func (w *work) divide(ctx *comqueue.ComContext, wide bool) {
	shards := shared.Range{Lo: 0, Hi: ctx.TotalShards()}
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
	w.awaited.rows = make([]float64, w.own.Len()*rowWidth)
	ownRows.Put(ctx, w.awaited.rows)
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
		b := w.space.own(shared.Split(ctx.TotalShards(), len(lengths), t))
		lengths[t] = w.space.at(b.Hi).Lo - w.space.at(b.Lo).Lo
	}
	lengths[0]++ // the loss comes first
	readLengths.Put(ctx, lengths)
	ownReading.Put(ctx, make([]float64, lengths[ctx.TaskID()]))
}

// local returns the places of block i in the vectors kept here.
func (w *work) local(i int) shared.Range {
	r := w.space.at(i)
	return shared.Range{Lo: r.Lo - w.lo, Hi: r.Hi - w.lo}
}

// entire returns a vector of all parameters, of which x are those kept here; where they are
// split it is the one that was gathered last.
func (t *training) entire(x []float64) []float64 {
	if t.split {
		return t.whole
	}
	return x
}

// gathered makes a vector whole on every subtask where the condition holds: the one of
// which offered returns what the subtask keeps.
func (d descent) gathered(when func(*comqueue.ComContext) (bool, error), offer func(*comqueue.ComContext) error) comqueue.Stage {
	return comqueue.While(1, when, comqueue.Named("offer", comqueue.Do(offer)), comqueue.AllGather(ownPart, whole))
}

// spreads says that rows are to be read with a vector that is not yet whole.
func (d descent) spreads(ctx *comqueue.ComContext) (bool, error) {
	w := working.Get(ctx)
	return w.split && w.stale && (w.probing.asks != noProbe || w.asks != theStep && w.asks != nothing), nil
}

// offerWay offers that vector.
func (d descent) offerWay(ctx *comqueue.ComContext) error {
	w := working.Get(ctx)
	w.stale = false
	switch {
	case w.asks == theStart:
		ownPart.Put(ctx, w.v)
	case w.asks == thePoint || w.asks == pointBeyondEnd:
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

// isWhole and isSplit say how parameters are kept.
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

// reads are the stages by which rows are read and what they come to reaches the subtasks.
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

// taken returns the derivatives that were read, by the parameters kept here, and notes the
// loss on the subtask that has it.
func (w *work) taken(ctx *comqueue.ComContext) []float64 {
	if !w.split {
		all := reading.Get(ctx)
		w.awaited.loss = all[0]
		return all[1 : 1+w.Dim]
	}
	own := ownReading.Get(ctx)
	w.awaited.loss = 0
	if ctx.TaskID() == 0 {
		w.awaited.loss, own = own[0], own[1:]
	}
	return own
}
