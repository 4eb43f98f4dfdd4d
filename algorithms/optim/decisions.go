package optim

import (
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// The decisions of an iteration depend on sums over all parameters, but a subtask may have only
// some blocks of the parameters. So every decision has two steps. First, requestDecision
// computes the sums of the blocks that this subtask keeps. Then decide makes the decision from
// the sums of all blocks. If the subtask has all parameters, requestDecision calls decide at
// once. Otherwise decide is called after the subtasks have exchanged their sums, some hundred
// bytes per block. In both cases the sums of the blocks are folded up the aligned tree, so that
// the bits are the same and every subtask makes the same decision.

// decision is the kind of a pending decision.
type decision int

const (
	noDecision               decision = iota
	whetherAlignedDescends            // OWLQN: is the aligned direction a descent direction?
	whetherProjectedDescends          // OWLQN: is the difference from v to the projected point a descent direction?
	whetherDescends                   // is the direction a descent direction?
	gradientLength                    // what is the length of the gradient?
	searchStart                       // begins the search along the direction
	stepRead                          // judges the point that was read
	pointReached                      // records the iteration after the parameters moved to the accepted point
	pathExamined                      // judges the path to the last point, see divergence.go
	readBeyondEnd                     // judges the loss and its slope beyond the last point
)

// Each block has a row of numbers: rowSums sums, and then rowMaxima values that are not summed.
// For most decisions these values are maxima. For stepRead they are the loss, in the row of the
// first block only, and the index and the value of the first gradient component in the block
// that is not finite. For readBeyondEnd, only the loss is set, in the row of the first block.
const (
	rowSums   = 6
	rowMaxima = 3
	rowWidth  = rowSums + rowMaxima
)

// maxDecisions is the largest number of consecutive decisions between two reads of the rows.
const maxDecisions = 8

// These objects are exchanged between subtasks if parameters are split.
var (
	ownRows = shared.Scratch[[]float64]("optim own sums")
	allRows = shared.Scratch[[]float64]("optim sums")
)

// blockSums has the sums of a subtask's blocks for the pending decision.
type blockSums struct {
	decision decision
	rows     []float64 // rows of the blocks kept on this subtask
	loss     float64   // loss of the rows that were read; set only on the subtask with the first block
}

// decisions returns the stage in which subtasks exchange their sums until no decision is
// pending.
func (d descent) decisions() comqueue.Stage {
	return comqueue.While(maxDecisions, d.decisionPending,
		comqueue.AllGather(ownRows, allRows),
		comqueue.Named("decide", comqueue.Do(d.decide)))
}

// decisionPending reports whether a decision is pending that needs the sums of other subtasks.
func (d descent) decisionPending(ctx *comqueue.ComContext) (bool, error) {
	return workOf.Get(ctx).pending.decision != noDecision, nil
}

// decide makes the pending decision.
func (d descent) decide(ctx *comqueue.ComContext) error {
	return wrap(ctx, workOf.Get(ctx).decide(allRows.Get(ctx)))
}

// requestDecision makes d the pending decision, and computes the sums of this subtask's blocks
// for it. The caller must return after requestDecision, because the decision may be made later.
// The consequences of the decision are in work.decide.
func (w *work) requestDecision(d decision) error {
	w.pending.decision = d
	for i := w.own.Lo; i < w.own.Hi; i++ {
		row := w.pending.rows[(i-w.own.Lo)*rowWidth:][:rowWidth]
		clear(row)
		w.fillSums(i, w.local(i), row[:rowSums], row[rowSums:])
	}
	if w.split {
		return nil
	}
	return w.decide(w.pending.rows)
}

// fillSums writes the sums and the other values of block i for the pending decision. r is the
// range of the block's parameters.
func (w *work) fillSums(i int, r sharding.Range, sums, maxima []float64) {
	dot := func(x, y []float64) float64 { return kernel.Dot(x[r.Lo:r.Hi], y[r.Lo:r.Hi]) }
	p := &w.penalty
	switch w.pending.decision {
	case whetherAlignedDescends, whetherProjectedDescends, whetherDescends:
		sums[0] = dot(w.pseudo, w.direction)
		if w.Subspace.Hessian != nil {
			p.sumSquares(r, sums[1:2], w.direction)
		}
	case gradientLength:
		sums[0] = dot(w.pseudo, w.pseudo)
		if w.Subspace.Hessian != nil {
			p.sumSquares(r, sums[1:2], w.direction)
		}
	case searchStart:
		sums[0] = dot(w.pseudo, w.direction)
		p.sumSquares(r, sums[1:4], w.v, w.direction)
		sums[4] = p.sumAbsolutes(r, w.v, nil)
		sums[5] = p.sumAbsolutes(r, w.v, w.direction)
		maxima[0] = w.crossing(r)
	case stepRead:
		sums[0] = dot(w.next, w.direction)
		maxima[0] = w.pending.loss
		maxima[1], maxima[2] = w.firstNonFinite(r)
	case pointReached:
		sums[0] = p.sumAbsolutes(r, w.v, nil)
		p.sumSquares(r, sums[1:2], w.v)
		sums[2] = dot(w.pseudo, w.v)
		maxima[0], maxima[1] = maxAbs(w.pseudo[r.Lo:r.Hi]), maxAbs(w.v[r.Lo:r.Hi])
		maxima[2] = w.moves[i-w.own.Lo]
	case pathExamined:
		sums[0] = dot(w.path[w.pathStart()].gradient, w.direction)
		sums[1] = dot(w.gradient, w.direction)
		maxima[0] = maxAbs(w.direction[r.Lo:r.Hi])
	case readBeyondEnd:
		sums[0] = dot(w.next, w.direction)
		maxima[0] = w.pending.loss
	}
}

// maxAbs returns the largest absolute value in x.
func maxAbs(x []float64) float64 {
	var a, b, c, d float64 // four independent chains of maxima keep the processor busy
	for ; len(x) >= 4; x = x[4:] {
		a, b, c, d = max(a, math.Abs(x[0])), max(b, math.Abs(x[1])), max(c, math.Abs(x[2])), max(d, math.Abs(x[3]))
	}
	for _, v := range x {
		a = max(a, math.Abs(v))
	}
	return max(a, b, c, d)
}

// firstNonFinite returns the parameter number and the value of the first gradient component in
// r that is not finite. number is −1 if all components are finite.
func (w *work) firstNonFinite(r sharding.Range) (number, value float64) {
	if i := kernel.NonFinite(w.next[r.Lo:r.Hi]); i >= 0 {
		return float64(w.lo + r.Lo + i), w.next[r.Lo+i]
	}
	return -1, 0
}

// decide makes the pending decision from the rows of all blocks. It overwrites the rows.
func (w *work) decide(rows []float64) error {
	d := w.pending.decision
	w.pending.decision = noDecision
	if d == stepRead {
		return w.judgeStep(rows)
	}
	loss := w.pending.loss
	if len(rows) > 0 {
		loss = rows[rowSums]
	}
	sums, maxima := w.foldSums(rows)
	switch d {
	case whetherAlignedDescends:
		return w.aligned(sums[0])
	case whetherProjectedDescends:
		if !(sums[0] < 0) {
			return w.alignAll()
		}
		return w.takeSlope(sums[0], sums[1])
	case whetherDescends:
		return w.takeSlope(sums[0], sums[1])
	case gradientLength:
		return w.takeGradientLength(sums[0], sums[1])
	case searchStart:
		w.startSearch(sums, maxima[0])
	case pointReached:
		w.recordIteration(sums, maxima)
	case pathExamined:
		w.judgePath(sums[0], sums[1], maxima[0])
	case readBeyondEnd:
		w.detectDivergence(loss, sums[0])
	}
	return nil
}

// foldSums returns the sums over all blocks, and the maxima of the other values.
func (w *work) foldSums(rows []float64) (sums [rowSums]float64, maxima [rowMaxima]float64) {
	count := len(rows) / rowWidth
	if count == 0 {
		return sums, maxima
	}
	copy(maxima[:], rows[rowSums:rowWidth])
	for i := 1; i < count; i++ {
		for j, v := range rows[i*rowWidth+rowSums : (i+1)*rowWidth] {
			maxima[j] = max(maxima[j], v)
		}
	}
	for stride := 1; stride < count; stride *= 2 {
		for i := 0; i+stride < count; i += 2 * stride {
			kernel.AddTo(rows[i*rowWidth:][:rowSums], rows[(i+stride)*rowWidth:][:rowSums])
		}
	}
	copy(sums[:], rows)
	return sums, maxima
}
