package optim

import (
	"math"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// This is what OWL-QN adds to L-BFGS (Andrew and Gao, Scalable training of L1-regularized
// log-linear models, ICML 2007). Directions are made from the pseudo-gradient. A step stays in
// the orthant of the parameters; for a parameter that is 0, it is the orthant that the negative
// pseudo-gradient points into. The implementation differs from the paper in two ways.
//
// First, in the paper every component of the direction must have the sign of the negative
// pseudo-gradient, or else it becomes 0. Only parameters that are 0 need that. Others may go
// either way, and removing components spoils the direction for the rest. So at first only the
// parameters that are 0 are aligned, and all of them if the result is no descent direction. For
// the same reason, parameters that are 0 and stay 0 are left out of the pairs of the history,
// see history.products.
//
// Second, in the paper the search follows the path of points projected onto the orthant. That
// path is not linear in the step, so each trial would be a read. Here the direction is replaced
// by the way to the projected point of the full step. The loss is read there, and parameters
// that would change sign are exactly 0. If that point is refused, the search goes back along
// the straight way to it, without a read. The whole way lies in the closed orthant, where F is
// smooth and margins are linear.

// aligned takes the slope along the quasi-Newton direction, in which the parameters that are 0
// are aligned. It replaces the direction by the way to the projected point.
func (w *work) aligned(slope float64) error {
	if !(slope < 0) {
		return w.alignAll()
	}
	w.project(1)
	return w.consider(whetherProjectedDescends)
}

// alignAll aligns the whole direction with the negative pseudo-gradient.
func (w *work) alignAll() error {
	w.align(true)
	w.project(1)
	return w.consider(whetherDescends)
}

// align removes components that do not have the sign of the negative pseudo-gradient: of all
// parameters, or only of those that are 0.
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

// crossing returns the negative of the largest step along the direction before a parameter of r
// changes sign.
func (w *work) crossing(r sharding.Range) float64 {
	most := math.Inf(-1)
	for i := r.Lo; i < r.Hi && w.set.L1 > 0; i++ {
		if p := w.direction[i]; w.penalised(i) && p*w.v[i] < 0 {
			most = max(most, w.v[i]/p)
		}
	}
	return most
}
