package svm

import (
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/internal/linearmodel"
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
)

// Measures of fit in Summary.Measures.
const (
	// DualityGap is the difference between the objective and a lower bound of its minimum. It
	// is not computed with Squared or with the method SGD.
	DualityGap = "duality_gap"
	// RelativeDualityGap is DualityGap divided by the objective.
	RelativeDualityGap = "relative_duality_gap"
)

// Defaults.
const (
	defaultGapTol  = 1e-6
	defaultL2      = 0.01
	defaultMaxIter = 1000
)

// shrink is the factor by which the smoothing is reduced from each round to the next. With a
// factor of 3 the total number of iterations is smaller than with 10, the default of package
// objective, because each round begins closer to its optimum.
const shrink = 3

// kinked returns the loss that method m minimises: l itself for SGD, and otherwise l smoothed.
func kinked(l objective.Kinked, m optim.Method) objective.Loss {
	if m == optim.SGD {
		return l
	}
	return objective.Smooth{Loss: l, Shrink: shrink}
}

// withDefaults returns p with the defaults of this package.
func withDefaults(p linearmodel.Params) linearmodel.Params {
	if p.L1 == 0 && p.L2 == 0 {
		p.L2 = defaultL2
	}
	if p.MaxIter == 0 && p.Method != optim.SGD {
		p.MaxIter = defaultMaxIter
	}
	return p
}

// gapTolOf returns the tolerance of the gap, or 0 if no gap is computed.
func gapTolOf(tol float64, squared bool, m optim.Method) float64 {
	switch {
	case squared || m == optim.SGD:
		return 0
	case tol == 0:
		return defaultGapTol
	}
	return tol
}

// validate returns the errors in the parameters that LinearSVC and LinearSVR share.
func validate(p linearmodel.Params, squared bool, gapTol float64) []error {
	errs := []error{p.Validate()}
	if !(gapTol >= 0) || math.IsInf(gapTol, 0) {
		errs = append(errs, fmt.Errorf("GapTol is %v: want a number above 0, or 0 for %v", gapTol, defaultGapTol))
	}
	if !squared && p.L1 > 0 && p.L2 == 0 && p.Method != optim.SGD {
		errs = append(errs, errors.New("L1 is set and L2 is 0: a loss that is not squared needs an L2 penalty too, without which there is no lower bound of the minimum"))
	}
	return errs
}

// training returns the training that both TrainSVC and TrainSVR add to a job. losses returns
// the loss of each part, given facts about the rows.
func training(op, queue string, p linearmodel.Params, squared bool, gapTol float64, losses func(f *rows.Facts) ([]objective.Loss, error)) linearmodel.Training {
	return linearmodel.Training{
		Op: op, Queue: queue, Params: p, GapTol: gapTolOf(gapTol, squared, p.Method), LossesOf: losses,
		Join: join,
	}
}

// noteGap adds the measures of the duality gap, if gapTol is not 0.
func noteGap(f *linearmodel.Fit, gapTol float64) {
	if gapTol == 0 {
		return
	}
	s := &f.Model.Summary
	gap := max(f.Result.Gap, 0) // rounding may make it negative
	s.Note(DualityGap, gap)
	if f.Result.Loss > 0 {
		s.Note(RelativeDualityGap, gap/f.Result.Loss)
	}
}
