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

// decision is a decision that waits for its sums.
type decision int

const (
	noDecision               decision = iota
	whetherAlignedDescends            // OWLQN: does the aligned direction descend?
	whetherProjectedDescends          // ... also the way to its projected point?
	whetherDescends                   // does the direction descend?
	gradientLength                    // how steep is the gradient?
	searchStart                       // the search along the direction begins
	stepRead                          // rows were read at a step
	pointReached                      // the point was moved to
	pathBack                          // how training came to its end, see divergence.go
	readBeyondEnd                     // ... and how the loss falls beyond
)

// A row has the sums of a block and, behind them, what is not added up: maxima,
// or of stepRead and readBeyondEnd the loss, which the first block has, and of the first element
// of the gradient that is not finite its number and value.
const (
	rowSums   = 6
	rowMaxima = 3
	rowWidth  = rowSums + rowMaxima
)

// mostDecisions is how many decisions follow each other at most without anything read.
const mostDecisions = 8

// Objects that subtasks tell each other, where parameters are split.
var (
	ownRows = shared.Scratch[[]float64]("optim own sums")
	allRows = shared.Scratch[[]float64]("optim sums")
)

// blockSums are the sums of the blocks that a subtask keeps, for the decision that waits for them.
type blockSums struct {
	asks decision
	rows []float64 // of the blocks kept here
	loss float64   // of the rows that were read, on the subtask that has the first block
}

// decisions has the subtasks tell each other their sums until all decisions are made.
func (d descent) decisions() comqueue.Stage {
	return comqueue.While(mostDecisions, d.considers,
		comqueue.AllGather(ownRows, allRows),
		comqueue.Named("decide", comqueue.Do(d.decide)))
}

// considers says that a decision waits for the sums of other subtasks.
func (d descent) considers(ctx *comqueue.ComContext) (bool, error) {
	return working.Get(ctx).awaited.asks != noDecision, nil
}

// decide makes the decision that waits.
func (d descent) decide(ctx *comqueue.ComContext) error {
	return wrap(ctx, working.Get(ctx).decide(allRows.Get(ctx)))
}

// consider takes the sums that a decision needs. It is the last that a function does: what
// follows is the matter of decide.
func (w *work) consider(asks decision) error {
	w.awaited.asks = asks
	for i := w.own.Lo; i < w.own.Hi; i++ {
		row := w.awaited.rows[(i-w.own.Lo)*rowWidth:][:rowWidth]
		clear(row)
		w.fill(i, w.local(i), row[:rowSums], row[rowSums:])
	}
	if w.split {
		return nil
	}
	return w.decide(w.awaited.rows)
}

// fill writes the row of block i, whose parameters are those of r.
func (w *work) fill(i int, r shared.Range, sums, most []float64) {
	dot := func(x, y []float64) float64 { return kernel.Dot(x[r.Lo:r.Hi], y[r.Lo:r.Hi]) }
	p := &w.penalty
	switch w.awaited.asks {
	case whetherAlignedDescends, whetherProjectedDescends, whetherDescends:
		sums[0] = dot(w.pseudo, w.direction)
		if w.Subspace.Hessian != nil {
			p.squaresIn(r, sums[1:2], w.direction)
		}
	case gradientLength:
		sums[0] = dot(w.pseudo, w.pseudo)
		if w.Subspace.Hessian != nil {
			p.squaresIn(r, sums[1:2], w.direction)
		}
	case searchStart:
		sums[0] = dot(w.pseudo, w.direction)
		p.squaresIn(r, sums[1:4], w.v, w.direction)
		sums[4] = p.absoluteIn(r, w.v, nil)
		sums[5] = p.absoluteIn(r, w.v, w.direction)
		most[0] = w.crossing(r)
	case stepRead:
		sums[0] = dot(w.next, w.direction)
		most[0] = w.awaited.loss
		most[1], most[2] = w.firstBad(r)
	case pointReached:
		sums[0] = p.absoluteIn(r, w.v, nil)
		p.squaresIn(r, sums[1:2], w.v)
		sums[2] = dot(w.pseudo, w.v)
		most[0], most[1] = largest(w.pseudo[r.Lo:r.Hi]), largest(w.v[r.Lo:r.Hi])
		most[2] = w.moves[i-w.own.Lo]
	case pathBack:
		sums[0] = dot(w.passed[w.farBack()].gradient, w.direction)
		sums[1] = dot(w.gradient, w.direction)
		most[0] = largest(w.direction[r.Lo:r.Hi])
	case readBeyondEnd:
		sums[0] = dot(w.next, w.direction)
		most[0] = w.awaited.loss
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
	asks := w.awaited.asks
	w.awaited.asks = noDecision
	if asks == stepRead {
		return w.judge(rows)
	}
	first := w.awaited.loss
	if len(rows) > 0 {
		first = rows[rowSums]
	}
	sums, most := w.foldSums(rows)
	switch asks {
	case whetherAlignedDescends:
		return w.aligned(sums[0])
	case whetherProjectedDescends:
		if !(sums[0] < 0) {
			return w.alignAll()
		}
		return w.sloped(sums[0], sums[1])
	case whetherDescends:
		return w.sloped(sums[0], sums[1])
	case gradientLength:
		return w.steep(sums[0], sums[1])
	case searchStart:
		w.begin(sums, most[0])
	case pointReached:
		w.arrived(sums, most)
	case pathBack:
		w.lookedBack(sums[0], sums[1], most[0])
	case readBeyondEnd:
		w.doubted(first, sums[0])
	}
	return nil
}

// foldSums adds up the sums of all blocks, and finds the largest of the rest.
func (w *work) foldSums(rows []float64) (sums [rowSums]float64, most [rowMaxima]float64) {
	count := len(rows) / rowWidth
	if count == 0 {
		return sums, most
	}
	copy(most[:], rows[rowSums:rowWidth])
	for i := 1; i < count; i++ {
		for j, v := range rows[i*rowWidth+rowSums : (i+1)*rowWidth] {
			most[j] = max(most[j], v)
		}
	}
	for stride := 1; stride < count; stride *= 2 {
		for i := 0; i+stride < count; i += 2 * stride {
			kernel.AddTo(rows[i*rowWidth:][:rowSums], rows[(i+stride)*rowWidth:][:rowSums])
		}
	}
	copy(sums[:], rows)
	return sums, most
}
