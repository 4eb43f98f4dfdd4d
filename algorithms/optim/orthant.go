package optim

import "math"

// What OWL-QN adds to L-BFGS (Andrew and Gao, Scalable training of L1-regularized
// log-linear models, ICML 2007): directions are made of the pseudo-gradient, and a step
// stays in the orthant of the parameters, or for those that are 0 the one that the
// negative pseudo-gradient points into. In two things this differs from the paper.
//
// First, there every component of the direction must have the sign of the negative
// pseudo-gradient, else it is 0. That is needed for parameters that are 0; others may go
// either way, and taking components out spoils the direction for the rest. So only the
// former are aligned at first, and all of them if the direction does not descend then.
// For the same reason parameters that are 0 and stay so are left out of the pairs of
// the history, see history.products.
//
// Second, there the search follows the path of points projected onto the orthant, which
// is not linear in the step, so that each trial would be a read. Here the direction is
// replaced by the way to the projected point of the full step: there the loss is read,
// and parameters that would change sign are exactly 0. If that point is refused, the
// search goes back along the straight way to it, all of which lies in the closed orthant,
// where F is smooth and margins are linear: no read.

// enter makes the direction of the quasi-Newton method one of the orthant.
func (w *work) enter() {
	w.align(false)
	if w.space.dot(w.pseudo, w.direction) < 0 {
		w.project(1)
		if w.space.dot(w.pseudo, w.direction) < 0 {
			return
		}
	}
	w.align(true)
	w.project(1)
}

// align takes out of the direction what does not follow the negative pseudo-gradient: of
// all parameters, or of those that are 0.
func (w *work) align(all bool) {
	for i, p := range w.direction {
		if w.penalised(i) && (all || w.v[i] == 0) && !(p*w.pseudo[i] < 0) {
			w.direction[i] = 0
		}
	}
}

// project replaces the direction by the way to the projected point of a step along it.
func (w *work) project(step float64) {
	for i, p := range w.direction {
		by := float64(step * p)
		if w.moved(i, by) == 0 {
			by = -w.v[i]
		}
		w.direction[i] = by
	}
}

// leeway returns how often the direction can be gone before a parameter changes sign.
func (w *work) leeway() float64 {
	limit := math.Inf(1)
	for i, p := range w.direction {
		if w.penalised(i) && p*w.v[i] < 0 {
			limit = min(limit, -w.v[i]/p)
		}
	}
	return max(limit, 1)
}
