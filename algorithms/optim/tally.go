package optim

import (
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
)

// What an iteration decides depends on sums over all parameters, of which a subtask may
// have some blocks only. So every decision is made in two steps: consider takes the sums of
// the blocks kept here, and decide goes on once those of all blocks are known: at once where
// a subtask has all parameters, else after the subtasks have told each other theirs, some
// hundred bytes a block. Either way sums of blocks are added up the aligned tree over them,
// so that it changes no bit, and every subtask decides the same.

// tallied is a decision that waits for its sums.
type tallied int

const (
	noTally     tallied = iota
	theAligned          // OWLQN: does the aligned direction descend?
	theEntered          // ... also the way to its projected point?
	theSlope            // does the direction descend?
	theSteepest         // how steep is the gradient?
	theLaunch           // the search along the direction begins
	theRead             // rows were read at a step
	theArrival          // the point was moved to
	theWay              // how training came to its end, see beyond.go
	theDoubt            // ... and how the loss falls beyond
)

// A row of a tally are the sums of a block, and behind them what is not added up: maxima,
// or of theRead and theDoubt the loss, which the first block has, and of the first element
// of the gradient that is not finite its number and value.
const (
	tallySums  = 6
	tallyMost  = 3
	tallyWidth = tallySums + tallyMost
)

// mostTallies is how many decisions follow each other at most without anything read.
const mostTallies = 8

// Objects that subtasks tell each other, where parameters are split.
var (
	ownTally = shared.Scratch[[]float64]("optim own sums")
	allTally = shared.Scratch[[]float64]("optim sums")
)

// tally is what a subtask adds up.
type tally struct {
	asks tallied
	rows []float64 // of the blocks kept here
	loss float64   // of the rows that were read, on the subtask that has the first block
}

// tallied has the subtasks tell each other their sums until all decisions are made.
func (d descent) tallied() comqueue.Stage {
	return comqueue.While(mostTallies, d.considers,
		comqueue.AllGather(ownTally, allTally),
		comqueue.Named("decide", comqueue.Do(d.decide)))
}

// considers says that a decision waits for the sums of other subtasks.
func (d descent) considers(ctx *comqueue.ComContext) (bool, error) {
	return working.Get(ctx).tally.asks != noTally, nil
}

// decide makes the decision that waits.
func (d descent) decide(ctx *comqueue.ComContext) error {
	return wrap(ctx, working.Get(ctx).decide(allTally.Get(ctx)))
}

// consider takes the sums that a decision needs. It is the last that a function does: what
// follows is the matter of decide.
func (w *work) consider(asks tallied) error {
	w.tally.asks = asks
	for i := w.own.Lo; i < w.own.Hi; i++ {
		row := w.tally.rows[(i-w.own.Lo)*tallyWidth:][:tallyWidth]
		clear(row)
		w.fill(i, w.local(i), row[:tallySums], row[tallySums:])
	}
	if w.split {
		return nil
	}
	return w.decide(w.tally.rows)
}

// fill writes what block i, whose parameters are those of r, adds to the tally.
func (w *work) fill(i int, r shared.Range, sums, most []float64) {
	dot := func(x, y []float64) float64 { return kernel.Dot(x[r.Lo:r.Hi], y[r.Lo:r.Hi]) }
	p := &w.penalty
	switch w.tally.asks {
	case theAligned, theEntered, theSlope:
		sums[0] = dot(w.pseudo, w.direction)
		if w.Subspace.Hessian != nil {
			p.squaresIn(r, sums[1:2], w.direction)
		}
	case theSteepest:
		sums[0] = dot(w.pseudo, w.pseudo)
		if w.Subspace.Hessian != nil {
			p.squaresIn(r, sums[1:2], w.direction)
		}
	case theLaunch:
		sums[0] = dot(w.pseudo, w.direction)
		p.squaresIn(r, sums[1:4], w.v, w.direction)
		sums[4] = p.absoluteIn(r, w.v, nil)
		sums[5] = p.absoluteIn(r, w.v, w.direction)
		most[0] = w.crossing(r)
	case theRead:
		sums[0] = dot(w.next, w.direction)
		most[0] = w.tally.loss
		most[1], most[2] = w.firstBad(r)
	case theArrival:
		sums[0] = p.absoluteIn(r, w.v, nil)
		p.squaresIn(r, sums[1:2], w.v)
		sums[2] = dot(w.pseudo, w.v)
		most[0], most[1] = largest(w.pseudo[r.Lo:r.Hi]), largest(w.v[r.Lo:r.Hi])
		most[2] = w.moves[i-w.own.Lo]
	case theWay:
		sums[0] = dot(w.passed[w.farBack()].gradient, w.direction)
		sums[1] = dot(w.gradient, w.direction)
		most[0] = largest(w.direction[r.Lo:r.Hi])
	case theDoubt:
		sums[0] = dot(w.next, w.direction)
		most[0] = w.tally.loss
	}
}

// largest returns the largest absolute value.
func largest(x []float64) float64 {
	var a, b, c, d float64 // four, as one would wait for itself
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = max(a, math.Abs(x[0])), max(b, math.Abs(x[1])), max(c, math.Abs(x[2])), max(d, math.Abs(x[3]))
	}
	for _, v := range x {
		a = max(a, math.Abs(v))
	}
	return max(a, b, c, d)
}

// firstBad returns the number of the first parameter of r whose derivative is not finite,
// and that; −1 where there is none.
func (w *work) firstBad(r shared.Range) (number, value float64) {
	for i, g := range w.next[r.Lo:r.Hi] {
		if !finite(g) {
			return float64(w.lo + r.Lo + i), g
		}
	}
	return -1, 0
}

// decide makes the decision that waits, from the rows of all blocks, which it changes.
func (w *work) decide(rows []float64) error {
	asks := w.tally.asks
	w.tally.asks = noTally
	if asks == theRead {
		return w.judge(rows)
	}
	first := w.tally.loss
	if len(rows) > 0 {
		first = rows[tallySums]
	}
	sums, most := w.foldTally(rows)
	switch asks {
	case theAligned:
		return w.aligned(sums[0])
	case theEntered:
		if !(sums[0] < 0) {
			return w.alignAll()
		}
		return w.sloped(sums[0], sums[1])
	case theSlope:
		return w.sloped(sums[0], sums[1])
	case theSteepest:
		return w.steep(sums[0], sums[1])
	case theLaunch:
		w.begin(sums, most[0])
	case theArrival:
		w.arrived(sums, most)
	case theWay:
		w.lookedBack(sums[0], sums[1], most[0])
	case theDoubt:
		w.doubted(first, sums[0])
	}
	return nil
}

// foldTally adds up the sums of all blocks, and finds the largest of the rest.
func (w *work) foldTally(rows []float64) (sums [tallySums]float64, most [tallyMost]float64) {
	count := len(rows) / tallyWidth
	if count == 0 {
		return sums, most
	}
	copy(most[:], rows[tallySums:tallyWidth])
	for i := 1; i < count; i++ {
		for j, v := range rows[i*tallyWidth+tallySums : (i+1)*tallyWidth] {
			most[j] = max(most[j], v)
		}
	}
	for stride := 1; stride < count; stride *= 2 {
		for i := 0; i+stride < count; i += 2 * stride {
			kernel.AddTo(rows[i*tallyWidth:][:tallySums], rows[(i+stride)*tallyWidth:][:tallySums])
		}
	}
	copy(sums[:], rows)
	return sums, most
}
