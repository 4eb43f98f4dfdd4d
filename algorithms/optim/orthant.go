package optim

import (
	"math"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// The functions below are what OWL-QN adds to L-BFGS (Andrew and Gao, Scalable training of
// L1-regularized log-linear models, ICML 2007). Directions are computed from the
// pseudo-gradient. A step stays in one orthant: for a parameter that is not 0, the orthant has
// the sign of the parameter, and for a parameter that is 0, the sign of the negative
// pseudo-gradient. The implementation differs from the paper in two ways.
//
// First, in the paper every component of the direction whose sign differs from that of the
// negative pseudo-gradient becomes 0. Setting components to 0 is necessary only for parameters
// that are 0. Other parameters may move in either direction, and removing their components
// spoils the direction. So at first only the components of parameters that are 0 are aligned.
// All components are aligned if the result is not a descent direction. For the same reason,
// parameters that are 0 and stay 0 are left out of the pairs of the history, see
// history.products.
//
// Second, in the paper the search follows the path of points projected onto the orthant. That
// path is not linear in the step, so each trial would be a read. Here the direction is replaced
// by the difference from v to the projected point of the full step. The loss is read at that
// point, where parameters that would change sign are exactly 0. If the point is rejected, the
// search goes back along the straight line to v, without a read. The whole line lies in the
// closed orthant, where F is smooth and margins are linear.

// aligned is called after the components of parameters that are 0 were aligned. slope is the
// slope along the direction. aligned replaces the direction by the difference from v to the
// projected point. If the direction does not descend, it aligns all components first.
func (w *work) aligned(slope float64) error {
	if !(slope < 0) {
		return w.alignAll()
	}
	w.project(1)
	return w.requestDecision(whetherProjectedDescends)
}

// alignAll aligns the whole direction with the negative pseudo-gradient.
func (w *work) alignAll() error {
	w.align(true)
	w.project(1)
	return w.requestDecision(whetherDescends)
}

// align removes the components whose sign is not that of the negative pseudo-gradient. It does
// so for all parameters, or, if all is false, only for parameters that are 0.
func (w *work) align(all bool) {
	for i, p := range w.direction {
		if w.penalised(i) && (all || w.v[i] == 0) && !(p*w.pseudo[i] < 0) {
			w.direction[i] = 0
		}
	}
}

// project replaces the direction by the difference from v to the projected point of
// step·direction.
func (w *work) project(step float64) {
	w.vectorChanged = true
	for i, p := range w.direction {
		by := float64(step * p)
		if w.movedParameter(i, by) == 0 {
			by = -w.v[i]
		}
		w.direction[i] = by
	}
}

// crossing returns the negative of the first step along the direction at which a parameter of r
// changes its sign, or −Inf if none does.
func (w *work) crossing(r sharding.Range) float64 {
	most := math.Inf(-1)
	for i := r.Lo; i < r.Hi && w.settings.L1 > 0; i++ {
		if p := w.direction[i]; w.penalised(i) && p*w.v[i] < 0 {
			most = max(most, w.v[i]/p)
		}
	}
	return most
}
