package optim

import (
	"fmt"
	"math"
)

// aim completes the direction, and asks for the first step unless that has to be found.
func (w *work) aim() {
	if w.history != nil && len(w.history.order) == 0 {
		w.steepest = true // the coefficients say so too, but for the first step
	}
	w.pacing.asks = noProbe
	if !w.steepest {
		if w.state.Method == OWLQN {
			w.enter()
		}
		if slope := w.space.dot(w.pseudo, w.direction); slope < 0 && finite(slope) {
			if w.probing != nil && w.state.Method == LBFGS {
				w.probe()
				return
			}
			limit := math.Inf(1)
			if w.state.Method == OWLQN {
				limit = 1
			}
			w.launch(1, limit)
			return
		}
		w.turn()
	}
	for i, g := range w.pseudo {
		w.direction[i] = -g
	}
	square := w.space.dot(w.pseudo, w.pseudo)
	switch {
	case w.state.Method == GD && w.lastStep > 0:
		// As if the first-order change were that of the iteration before (Nocedal and
		// Wright, equation 3.60).
		w.launch(w.lastStep*(w.lastSlope/-square), math.Inf(1))
	case w.probing != nil && square > 0 && finite(square):
		w.probe()
	default:
		w.stride(square)
	}
}

// stride takes a first step along the gradient whose scale is a guess: one of length 1 at
// most, unless the loss is so large that with slopes of this size it would take longer
// ones to make it vanish, as where labels are of another magnitude than 1.
func (w *work) stride(square float64) {
	w.along(min(1, max(1/math.Sqrt(square), w.state.Loss/square)))
}

// along takes a first step along the gradient.
func (w *work) along(step float64) {
	if w.state.Method == OWLQN {
		w.project(step)
		w.launch(1, w.leeway())
		return
	}
	w.launch(step, math.Inf(1))
}

// launch begins the search along the direction at a step.
func (w *work) launch(step, limit float64) {
	slope := w.space.dot(w.pseudo, w.direction)
	if !(slope < 0) || !finite(slope) || !(step > 0) || !finite(step) {
		w.fail()
		return
	}
	w.line = w.penalty.along(w.v, w.direction)
	w.search.begin(w.state.Loss, slope, limit, w.state.Method == OWLQN || w.state.Method == Newton)
	w.ask(theRay, step)
}

// turn gives up the direction for the negative gradient.
func (w *work) turn() {
	w.steepest = true
	if w.history != nil {
		w.history.forget()
	}
	w.pacing.forget()
}

// fail ends the superstep without a step.
func (w *work) fail() { w.failed, w.settled, w.asks = true, true, nothing }

// ask asks for the loss and the gradient at a step.
func (w *work) ask(what asked, step float64) {
	w.asks, w.step = what, step
	if w.linear != nil {
		return
	}
	w.asks = thePoint
	for i, p := range w.direction {
		w.point[i] = w.moved(i, float64(step*p))
	}
}

// moved returns parameter i after a move. With L1 none changes its sign in a move: the
// pseudo-gradient is that of an orthant.
func (w *work) moved(i int, by float64) float64 {
	to := w.v[i] + by
	if w.penalised(i) && (w.v[i] > 0 && to < 0 || w.v[i] < 0 && to > 0) {
		return 0
	}
	return to
}

// penalised reports whether the absolute value of parameter i is part of F.
func (w *work) penalised(i int) bool { return w.set.L1 > 0 && w.factors[i] != 0 }

// weigh takes loss and gradient at the step that was asked for.
func (w *work) weigh(sums []float64) error {
	if w.settled {
		return nil
	}
	w.reads++
	w.losses = sums[0] / w.weight
	if w.asks == theStart {
		w.penalty.gradient(sums[1:1+w.n], w.weight, w.v, nil, 0, w.next)
		w.settled = true
		return w.usable("at the start", "check the features, or give other parameters to start from")
	}
	w.penalty.gradient(sums[1:1+w.n], w.weight, w.v, w.direction, w.step, w.next)
	if w.final {
		w.settled = true
		return w.usable(fmt.Sprintf("at the step %v", w.step), "standardise the features, or add an L2 penalty")
	}
	slope := w.space.dot(w.next, w.direction) + w.line.kink
	switch w.search.feed(w.step, w.losses+w.line.value(w.step), slope) {
	case accepts:
		w.settled = true
	case fails:
		return w.fallBack()
	default:
		w.search.propose(w.steps)
		if w.linear != nil {
			w.trialing = true
		} else {
			w.ask(thePoint, w.steps[0])
		}
	}
	return nil
}

// choose takes losses and derivatives at the steps that were tried.
func (w *work) choose(sums []float64) error {
	for i, t := range w.steps {
		f, slope := sums[2*i]/w.weight+w.line.value(t), sums[2*i+1]/w.weight+w.line.derivative(t)
		switch w.search.feed(t, f, slope) {
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

// accept takes a step that was tried: its gradient is still to be read.
func (w *work) accept(step float64) {
	w.trialing = false
	if step == w.step {
		w.settled = true
		return
	}
	w.final = true
	w.ask(theStep, step)
}

// fallBack takes the best step that a search without success has seen, if any lowers the
// loss at all.
func (w *work) fallBack() error {
	if w.search.best.t > 0 {
		w.accept(w.search.best.t)
		return nil
	}
	w.trialing = false
	if w.steepest && w.search.lo.t == 0 && math.IsInf(w.search.hi.f, 1) {
		return fmt.Errorf("the loss is infinite or NaN at every step along the gradient, down to %.3g: standardise the features, or start from other parameters", w.search.hi.t)
	}
	w.fail()
	return nil
}

// usable refuses a loss or gradient that is not finite, and says what to do.
func (w *work) usable(where, remedy string) error {
	if !finite(w.losses) {
		return fmt.Errorf("the loss is %v %s: %s", w.losses, where, remedy)
	}
	for i, g := range w.next {
		if !finite(g) {
			return fmt.Errorf("the loss is %v %s, but its derivative by parameter %d is %v: %s", w.losses, where, i, g, remedy)
		}
	}
	return nil
}

// arrive moves to the accepted point and enters the iteration.
func (w *work) arrive() {
	s := w.state
	a := arrival{reads: w.reads, loss: s.Loss}
	switch {
	case w.starting:
		w.gradient, w.next = w.next, w.gradient
	case w.failed:
		a.failed = w.steepest
		if !w.steepest {
			w.turn()
		}
	default:
		a.step, a.moved = w.step, w.move()
		if w.history != nil {
			w.history.push(w.step, w.direction, w.gradient, w.next)
		}
		w.pacing.push(w.step, w.direction)
		w.gradient, w.next = w.next, w.gradient
		w.lastStep, w.lastSlope = w.step, w.search.d0
		w.steepest = s.Method == GD
	}
	if !w.failed {
		a.loss = w.losses + w.penalty.at(w.v)
		if w.set.L1 > 0 {
			w.penalty.pseudo(w.v, w.gradient, w.pseudo)
		} else {
			w.pseudo = w.gradient
		}
	}
	for i, g := range w.pseudo {
		a.norm = max(a.norm, math.Abs(g))
		a.size = max(a.size, math.Abs(w.v[i]))
	}
	a.along = w.space.dot(w.pseudo, w.v)
	if w.starting && len(s.Record) > 0 {
		s.again(a, &w.set)
	} else {
		s.arrive(a, &w.set)
	}
	w.starting = false
	w.pass()
}

// move moves the parameters and returns the largest relative change.
func (w *work) move() float64 {
	var most float64
	for i, p := range w.direction {
		by := float64(w.step * p)
		to := w.moved(i, by)
		most = max(most, math.Abs(by)/max(1, math.Abs(to)))
		w.v[i] = to
	}
	return most
}
