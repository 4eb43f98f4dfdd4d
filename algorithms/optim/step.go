package optim

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// completeDirection completes the direction. It requests the first step, or a probe to find it.
func (w *work) completeDirection() error {
	if w.history != nil && len(w.history.Order) == 0 {
		w.Steepest = true // an empty history gives the same direction, but no estimate of the first step
	}
	w.probing.kind = noProbe
	switch {
	case w.Steepest:
		return w.descend()
	case w.state.Method == OWLQN:
		w.align(false)
		return w.requestDecision(whetherAlignedDescends)
	}
	return w.requestDecision(whetherDescends)
}

// takeSlope takes the slope along the direction, and squares = Σ (f·direction)² for the
// penalty.
func (w *work) takeSlope(slope, squares float64) error {
	if !(slope < 0) || !kernel.Finite(slope) {
		w.useGradient()
		return w.descend()
	}
	if w.Subspace.Hessian != nil && w.state.Method == LBFGS {
		w.startProbes(slope, squares)
		return nil
	}
	limit := math.Inf(1)
	if w.state.Method == OWLQN {
		limit = 1
	}
	return w.beginSearch(1, limit)
}

// descend takes the negative gradient as the direction.
func (w *work) descend() error {
	for i, g := range w.pseudo {
		w.direction[i] = -g
	}
	w.vectorChanged = true
	return w.requestDecision(gradientLength)
}

// takeGradientLength takes square, the squared norm of the gradient, and squares = Σ
// (f·direction)² for the penalty.
func (w *work) takeGradientLength(square, squares float64) error {
	switch {
	case w.state.Method == GD && w.LastStep > 0:
		// The first-order change is assumed to equal the first-order change of the last
		// iteration (Nocedal and Wright, equation 3.60).
		return w.beginSearch(w.LastStep*(w.LastSlope/-square), math.Inf(1))
	case w.Subspace.Hessian != nil && square > 0 && kernel.Finite(square):
		w.startProbes(-square, squares)
		return nil
	}
	return w.guessFirstStep(square)
}

// guessFirstStep guesses the first step along the gradient and begins the search with it.
// square is the squared norm of the gradient. The length of the step is at most 1, unless the
// loss is so large that only a longer step could bring it to 0 at the present slope. That
// happens if the magnitude of labels is far from 1.
func (w *work) guessFirstStep(square float64) error {
	return w.stepAlongGradient(min(1, max(1/math.Sqrt(square), w.state.Loss/square)))
}

// stepAlongGradient begins the search along the gradient with the given first step.
func (w *work) stepAlongGradient(step float64) error {
	if w.state.Method == OWLQN {
		w.project(step)
		return w.beginSearch(1, untilCrossing)
	}
	return w.beginSearch(step, math.Inf(1))
}

// untilCrossing is a special value of work.limit. The limit is then the step at which the first
// parameter changes its sign, but at least 1.
const untilCrossing = -1

// beginSearch begins the search along the direction, with the given first step and limit.
func (w *work) beginSearch(step, limit float64) error {
	w.step, w.limit = step, limit
	return w.requestDecision(searchStart)
}

// startSearch begins the search. sums are the slope and the sums for the penalty. crossing is
// the negative of the first step at which a parameter changes sign.
func (w *work) startSearch(sums [rowSums]float64, crossing float64) {
	slope := sums[0]
	if !(slope < 0) || !kernel.Finite(slope) || !(w.step > 0) || !kernel.Finite(w.step) {
		w.fail()
		return
	}
	limit := w.limit
	if limit == untilCrossing {
		limit = max(-crossing, 1)
	}
	w.line = w.penalty.onLine(sums[1:])
	w.search.begin(w.state.Loss, slope, limit, w.state.Method == OWLQN || w.state.Method == Newton)
	w.requestRead(readDirection, w.step)
}

// useGradient replaces the direction by the negative gradient.
func (w *work) useGradient() {
	w.Steepest = true
	if w.history != nil {
		w.history.forget()
	}
	w.probing.reset()
}

// fail ends the search of the superstep without a step.
func (w *work) fail() { w.failed, w.searchDone, w.readKind = true, true, noRead }

// requestRead requests a read of the given kind at a step.
func (w *work) requestRead(kind readKind, step float64) {
	w.readKind, w.step = kind, step
	if w.keepsMargins() {
		return
	}
	w.readKind, w.vectorChanged = readPoint, true
	for i, p := range w.direction {
		w.point[i] = w.movedParameter(i, float64(step*p))
	}
}

// movedParameter returns parameter i after a move by the given amount. With an L1 penalty, a
// parameter that would change its sign becomes 0, because the pseudo-gradient is valid in one
// orthant only.
func (w *work) movedParameter(i int, delta float64) float64 {
	to := w.v[i] + delta
	if w.penalised(i) && (w.v[i] > 0 && to < 0 || w.v[i] < 0 && to > 0) {
		return 0
	}
	return to
}

// penalised reports whether the absolute value of parameter i is part of F.
func (w *work) penalised(i int) bool { return w.settings.L1 > 0 && w.PenaltyFactors[i] != 0 }

// takeRead takes the summed derivatives of the losses at the requested step.
func (w *work) takeRead(sums []float64) error {
	if w.searchDone {
		return nil
	}
	w.reads++
	if w.readKind == readStart {
		w.penalty.gradient(sums, w.Weight, w.v, nil, 0, w.next)
	} else {
		w.penalty.gradient(sums, w.Weight, w.v, w.direction, w.step, w.next)
	}
	return w.requestDecision(stepRead)
}

// judgeStep judges the point that was read. rows has the numbers of all blocks for the decision
// stepRead: the loss, the sums for the slope, and the first gradient component that is not
// finite.
func (w *work) judgeStep(rows []float64) error {
	loss := w.pending.loss
	if w.split {
		loss = rows[rowSums]
	}
	w.losses = loss / w.Weight
	if w.readKind == readStart {
		w.searchDone = true
		return w.requireFinite(rows, "at the start", "check features and offsets, or give other parameters to start from")
	}
	if w.accepted {
		w.searchDone = true
		return w.requireFinite(rows, fmt.Sprintf("at the step %v", w.step), "standardise the features, or add an L2 penalty")
	}
	sums, _ := w.foldSums(rows)
	slope := sums[0] + w.line.kink
	switch w.search.add(w.step, w.losses+w.line.value(w.step), slope) {
	case accepts:
		w.searchDone = true
	case fails:
		return w.fallBack()
	default:
		w.search.propose(w.steps)
		if w.keepsMargins() {
			w.trialsDue = true
		} else {
			w.requestRead(readPoint, w.steps[0])
		}
	}
	return nil
}

// chooseTrial takes the summed losses and derivatives at the steps that were tried.
func (w *work) chooseTrial(sums []float64) error {
	for i, t := range w.steps {
		f, slope := sums[2*i]/w.Weight+w.line.value(t), sums[2*i+1]/w.Weight+w.line.derivative(t)
		switch w.search.add(t, f, slope) {
		case accepts:
			w.accept(t)
			return nil
		case fails:
			return w.fallBack()
		}
	}
	w.search.propose(w.steps)
	return nil
}

// accept accepts one of the steps that were tried. If the gradient at this step is not known,
// it is read next.
func (w *work) accept(step float64) {
	w.trialsDue = false
	if step == w.step {
		w.searchDone = true
		return
	}
	w.accepted = true
	w.requestRead(readStep, step)
}

// fallBack takes the best step of a failed search, if any step lowers the loss at all.
func (w *work) fallBack() error {
	if w.search.best.t > 0 {
		w.accept(w.search.best.t)
		return nil
	}
	w.trialsDue = false
	if w.Steepest && w.search.lo.t == 0 && math.IsInf(w.search.hi.f, 1) {
		return fmt.Errorf("the loss is infinite or NaN at every step along the gradient, down to %.3g: labels or features are too large, or too far from those of other rows: scale them down, or leave the rows with the largest out", w.search.hi.t)
	}
	w.fail()
	return nil
}

// requireFinite returns an error with advice if the loss or the gradient is not finite.
func (w *work) requireFinite(rows []float64, where, remedy string) error {
	if !kernel.Finite(w.losses) {
		return fmt.Errorf("the loss is %v %s: %s", w.losses, where, remedy)
	}
	for ; len(rows) > 0; rows = rows[rowWidth:] {
		if bad := rows[rowSums+1]; bad >= 0 {
			return fmt.Errorf("the loss is %v %s, but its derivative by parameter %d is %v: %s", w.losses, where, int(bad), rows[rowSums+2], remedy)
		}
	}
	return nil
}

// moveToAccepted moves the parameters and the margins to the accepted point.
func (w *work) moveToAccepted(ctx *comqueue.ComContext) error {
	clear(w.moves)
	switch {
	case w.Starting:
		w.gradient, w.next = w.next, w.gradient
	case !w.failed:
		w.move()
		if w.history != nil {
			w.history.push(w.step, w.direction, w.gradient, w.next)
		}
		w.probing.push(w.step, w.direction)
		w.gradient, w.next = w.next, w.gradient
		w.LastStep, w.LastSlope = w.step, w.search.d0
		w.completeNewton(ctx)
	}
	if !w.failed {
		w.keep(ctx, latestGradient, w.gradient, w.local)
		w.derivePseudo()
	}
	return w.requestDecision(pointReached)
}

// derivePseudo computes pseudo, the vector from which directions are computed.
func (w *work) derivePseudo() {
	if w.settings.L1 > 0 {
		w.penalty.pseudoGradient(w.v, w.gradient, w.pseudo)
	} else {
		w.pseudo = w.gradient
	}
}

// recordIteration records the end of the iteration. sums has the parts of the penalty, and the
// derivative along the parameters. maxima has the largest derivative, the largest parameter and
// the largest relative change of a parameter.
func (w *work) recordIteration(sums [rowSums]float64, maxima [rowMaxima]float64) {
	s := w.state
	end := iterationEnd{reads: w.reads, loss: s.Loss, norm: maxima[0], size: maxima[1], change: maxima[2], radialSlope: sums[2]}
	switch {
	case w.Starting:
	case w.failed:
		end.failed = w.Steepest
		if !w.Steepest {
			w.useGradient()
		}
	default:
		end.step, w.latestChange = w.step, maxima[2]
		w.Steepest = s.Method == GD
	}
	if !w.failed {
		end.loss = w.losses + w.penalty.combine(sums[0], sums[1])
	}
	w.roundBegun = w.Starting && len(s.Record) > 0
	if w.roundBegun {
		s.beginRound(end, &w.settings)
	} else {
		s.endIteration(end, &w.settings)
		w.continueTraining()
	}
	w.Starting = false
	w.extendPath()
}

// move moves the parameters and stores the largest relative change in each block.
func (w *work) move() {
	for k := range w.moves {
		r := w.local(w.own.Lo + k)
		v, p := w.v[r.Lo:r.Hi], w.direction[r.Lo:r.Hi]
		if w.settings.L1 > 0 {
			for i := range v {
				v[i] = w.movedParameter(r.Lo+i, float64(w.step*p[i]))
			}
		} else {
			kernel.Axpy(w.step, p, v)
		}
		w.moves[k] = largestChange(v, p, w.step)
	}
}

// largestChange returns the largest relative change of the parameters v, after a step in the
// direction p.
func largestChange(v, p []float64, step float64) float64 {
	var a, b, c, d float64 // four independent chains of maxima keep the processor busy
	for ; len(v) >= 4 && len(p) >= 4; v, p = v[4:], p[4:] {
		a, b = max(a, relativeChange(step*p[0], v[0])), max(b, relativeChange(step*p[1], v[1]))
		c, d = max(c, relativeChange(step*p[2], v[2])), max(d, relativeChange(step*p[3], v[3]))
	}
	for i := range v {
		a = max(a, relativeChange(step*p[i], v[i]))
	}
	return max(a, b, c, d)
}

// relativeChange returns |delta| / max(1, |value|), where value is the value after the change.
func relativeChange(delta, value float64) float64 { return math.Abs(delta) / max(1, math.Abs(value)) }
