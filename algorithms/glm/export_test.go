package glm

import "github.com/superstep-ml/superstep/algorithms/objective"

// LossOf returns the loss of p for tests. If summed is set, the loss also has the two constants
// for the statistics.
func LossOf(p Params, shift float64, summed bool) objective.Loss {
	l := p.devianceOf(summed)
	l.shift = shift
	return l
}
