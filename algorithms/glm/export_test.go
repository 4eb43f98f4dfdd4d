package glm

import "github.com/superstep-ml/superstep/algorithms/objective"

// LossOf returns the loss of parameters for tests; tallied it has the constants.
func LossOf(p Params, shift float64, tallied bool) objective.Loss {
	l := p.devianceOf(tallied)
	l.shift = shift
	return l
}
