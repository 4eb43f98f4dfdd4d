package optim

import (
	"math"
)

// state is the progress of training, the same on every subtask.
type state struct {
	Method         Method
	Iteration      int // number of iterations done
	Loss           float64
	GradientNorm   float64
	FirstLoss      float64
	FirstNorm      float64
	Reads          float64
	Unit           float64 // size of a large gradient
	Huge           float64 // limit of FirstNorm as the reference of Tol, see referenceNorm
	Done           bool
	FarFromOptimum bool // whether training ended as Exhausted although the gradient was still large
	Reason         Reason
	Record         []Iteration

	LowestLoss, LowestNorm float64
	Stalled                int     // number of iterations since LowestLoss or LowestNorm last fell
	Gap                    float64 // gap to the lower bound, if there are rounds
	Size                   float64 // largest absolute value of a parameter
	Growing                int     // number of consecutive iterations in which Size grew and the loss fell
}

// Thresholds of the tests that end training, in addition to the tolerances in Settings.
const (
	maxStalled       = 5     // number of iterations without a new lowest loss or gradient after which training ends
	growth           = 1.01  // least factor by which diverging parameters grow in an iteration
	largestLossRatio = 0.9   // largest ratio of the loss after such an iteration to the loss before it
	maxGrowing       = 3     // number of consecutive iterations with such growth
	smallLoss        = 1e-3  // fraction of the first loss below which growing parameters are reported as diverging
	vanishedLoss     = 1e-10 // fraction of the first loss below which training ends as diverging
	farNorm          = 1e-4  // fraction of the first gradient; if the last gradient is larger, training has not converged
	maxUnits         = 1e3   // limit of the first gradient as the reference of Tol, in units of GradientUnit
	minScalingFall   = 1.0   // least value of -d log F / d log scale for parameters that diverge
)

// iterationEnd has the values known at the end of an iteration.
type iterationEnd struct {
	loss, norm, step, reads float64
	change                  float64 // largest relative change of a parameter
	size                    float64 // largest absolute value of a parameter
	radialSlope             float64 // derivative of F in the direction of the parameter vector
	failed                  bool    // no step was found, and there is no other direction to try
}

// endIteration records the start or the end of an iteration, and decides whether training ends.
func (s *state) endIteration(end iterationEnd, set *Settings) {
	first := len(s.Record) == 0
	previousLoss := s.Loss
	s.Loss, s.GradientNorm = end.loss, end.norm
	s.Reads += end.reads
	s.Record = append(s.Record, Iteration{Loss: end.loss, GradientNorm: end.norm, Step: end.step, Reads: end.reads})
	if first {
		s.FirstLoss, s.FirstNorm = end.loss, end.norm
		s.LowestLoss, s.LowestNorm, s.Size = end.loss, end.norm, end.size
	} else {
		s.Iteration++
		s.observe(end, previousLoss)
	}
	switch {
	case set.Tol >= 0 && end.norm <= set.Tol*s.referenceNorm():
		s.end(GradientSmall)
	case !first && end.step > 0 && set.LossTol > 0 && previousLoss-end.loss <= set.LossTol*max(math.Abs(previousLoss), math.Abs(end.loss)):
		s.end(LossSettled)
	case !first && end.step > 0 && set.StepTol > 0 && end.change <= set.StepTol:
		s.end(StepSmall)
	case end.failed || s.Stalled >= maxStalled:
		s.end(Exhausted)
		s.FarFromOptimum = end.norm > farNorm*s.referenceNorm()
	case s.Iteration >= set.MaxIter:
		s.end(MaxIterations)
	}
	s.detectDivergence(end, set)
}

// beginRound records the start of another round.
func (s *state) beginRound(end iterationEnd, set *Settings) {
	s.Loss, s.GradientNorm = end.loss, end.norm
	s.Reads += end.reads
	s.Record[len(s.Record)-1].Reads += end.reads
	s.LowestLoss, s.LowestNorm, s.Stalled, s.Growing = end.loss, end.norm, 0, 0
	if set.Tol >= 0 && end.norm <= set.Tol*s.referenceNorm() {
		s.end(GradientSmall)
	}
}

// referenceNorm returns the reference for gradient norms: the first norm, or the objective's
// unit if training began near an optimum. The first norm may exceed the unit by orders of
// magnitude, as with exponential losses far from the optimum. It is therefore limited to Huge.
func (s *state) referenceNorm() float64 { return max(s.Unit, min(s.FirstNorm, s.Huge)) }

// end ends training for a reason.
func (s *state) end(r Reason) { s.Done, s.Reason = true, r }

// observe tracks loss, gradient and parameters over the iterations.
func (s *state) observe(end iterationEnd, previousLoss float64) {
	s.Stalled++
	if end.loss < s.LowestLoss {
		s.LowestLoss, s.Stalled = end.loss, 0
	}
	if end.norm < s.LowestNorm {
		s.LowestNorm, s.Stalled = end.norm, 0
	}
	if end.size >= growth*s.Size && end.loss <= largestLossRatio*previousLoss {
		s.Growing++
	} else {
		s.Growing = 0
	}
	s.Size = end.size
}

// detectDivergence tests whether parameters diverge. If classes are separable and there is no
// penalty, the loss goes to 0 while parameters grow without bound, and scaling all parameters
// up lowers the loss. Then there is no optimum, however small the gradient has become.
func (s *state) detectDivergence(end iterationEnd, set *Settings) {
	if set.L1 > 0 || set.L2 > 0 || s.Growing < maxGrowing || -end.radialSlope < minScalingFall*end.loss {
		return
	}
	if s.Done && end.loss <= smallLoss*s.FirstLoss || end.loss <= vanishedLoss*s.FirstLoss {
		s.end(Diverging)
	}
}

// converged reports whether the point is an optimum, as far as can be determined from Reason.
func (s *state) converged() bool {
	switch s.Reason {
	case MaxIterations, Diverging, Overshooting:
		return false
	}
	return s.Done && !s.FarFromOptimum
}

// result returns the result. It retains v.
func (s *state) result(v []float64) *Result {
	return &Result{
		Method: s.Method, Parameters: v, Loss: s.Loss, Gap: s.Gap, GradientNorm: s.GradientNorm,
		Iterations: s.Iteration, Reads: s.Reads, Converged: s.converged(), Reason: s.Reason, Record: s.Record,
	}
}
