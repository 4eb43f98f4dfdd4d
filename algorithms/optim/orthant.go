package optim

import (
	"math"

	"github.com/superstep-ml/superstep/shared"
)

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

// aligned takes the slope along the direction of the quasi-Newton method, of which the
// parameters that are 0 are aligned, and makes it the way to the projected point.
func (w *work) aligned(slope float64) error {
	if !(slope < 0) {
		return w.alignAll()
	}
	w.project(1)
	return w.consider(whetherProjectedDescends)
}

// alignAll makes the direction one all of which follows the negative pseudo-gradient.
func (w *work) alignAll() error {
	w.align(true)
	w.project(1)
	return w.consider(whetherDescends)
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
	w.stale = true
	for i, p := range w.direction {
		by := float64(step * p)
		if w.moved(i, by) == 0 {
			by = -w.v[i]
		}
		w.direction[i] = by
	}
}

// crossing returns how often the direction can be gone before a parameter of r changes
// sign, negated.
func (w *work) crossing(r shared.Range) float64 {
	most := math.Inf(-1)
	for i := r.Lo; i < r.Hi && w.set.L1 > 0; i++ {
		if p := w.direction[i]; w.penalised(i) && p*w.v[i] < 0 {
			most = max(most, w.v[i]/p)
		}
	}
	return most
}
