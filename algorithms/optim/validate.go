package optim

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/internal/kernel"
)

// Validate returns an error that lists everything that is wrong with the settings.
func (s Settings) Validate() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf(format, a...)) }
	if s.Method < Auto || s.Method > SGD {
		bad("Method is %d: want one of Auto, LBFGS, OWLQN, Newton, GD, SGD", int(s.Method))
	}
	for _, v := range []struct {
		name  string
		value float64
	}{{"L1", s.L1}, {"L2", s.L2}, {"LossTol", s.LossTol}, {"StepTol", s.StepTol}, {"GapTol", s.GapTol}} {
		if !(v.value >= 0) || math.IsInf(v.value, 0) {
			bad("%s is %v: want a number of 0 or more", v.name, v.value)
		}
	}
	if !kernel.Finite(s.Tol) {
		bad("Tol is %v: want a number, negative to turn the test off", s.Tol)
	}
	if s.GapTol > 0 && s.Method == SGD {
		bad("GapTol is for the other methods than SGD")
	}
	if s.L1 > 0 && (s.Method == LBFGS || s.Method == Newton || s.Method == GD) {
		bad("Method is %v, which cannot minimise an L1 penalty, as that has no gradient at 0: use OWLQN or SGD", s.Method)
	}
	for _, v := range []struct {
		name        string
		value, most int
	}{{"MaxIter", s.MaxIter, math.MaxInt32}, {"History", s.History, 1000}, {"Trials", s.Trials, 64}} {
		if v.value < 0 || v.value > v.most {
			bad("%s is %d: want 1 to %d, or 0 for the default", v.name, v.value, v.most)
		}
	}
	if s.MaxBytes < 0 {
		bad("MaxBytes is %d: want a number of bytes, or 0 for the default", s.MaxBytes)
	}
	if i := kernel.NonFinite(s.Start); i >= 0 {
		bad("parameter %d of Start is %v", i, s.Start[i])
	}
	if s.Method == SGD {
		errs = append(errs, s.Stochastic.problems(s.L2)...)
	}
	return errors.Join(errs...)
}

// problems returns an error for each invalid setting of SGD.
func (s Stochastic) problems(l2 float64) (errs []error) {
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf("Stochastic."+format, a...)) }
	if s.Batch < 0 || s.Batch > math.MaxInt32 {
		bad("Batch is %d: want a number of rows, or 0 for the default", s.Batch)
	}
	if s.Update < Plain || s.Update > AdaGrad {
		bad("Update is %d: want Plain, Adam or AdaGrad", int(s.Update))
	}
	if s.Schedule < InverseScaling || s.Schedule > Optimal {
		bad("Schedule is %d: want InverseScaling, Constant, Exponential or Optimal", int(s.Schedule))
	}
	if !(s.Rate >= 0) || math.IsInf(s.Rate, 0) {
		bad("Rate is %v: want a number above 0, or 0 for the default", s.Rate)
	}
	if !(s.Power >= 0) || math.IsInf(s.Power, 0) {
		bad("Power is %v: want a number above 0, or 0 for the default", s.Power)
	}
	if !(s.Decay >= 0 && s.Decay <= 1) {
		bad("Decay is %v: want a number above 0 and at most 1, or 0 for the default", s.Decay)
	}
	if !(s.Momentum >= 0 && s.Momentum < 1) {
		bad("Momentum is %v: want a number of 0 or more and below 1", s.Momentum)
	}
	if s.Update != Plain && (s.Momentum > 0 || s.Nesterov) {
		bad("Momentum and Stochastic.Nesterov are for Plain updates")
	}
	if s.Nesterov && s.Momentum == 0 {
		bad("Nesterov needs a Stochastic.Momentum")
	}
	if s.Schedule == Optimal && l2 == 0 {
		bad("Schedule is Optimal, which is made from L2, which is 0: use another schedule")
	}
	return errs
}

// withDefaults returns s with each field that is 0 replaced by its default.
func (s Settings) withDefaults() Settings {
	s.MaxIter, s.History, s.Trials = cmp.Or(s.MaxIter, 100), cmp.Or(s.History, 10), cmp.Or(s.Trials, 1)
	s.Tol, s.MaxBytes = cmp.Or(s.Tol, 1e-6), cmp.Or(s.MaxBytes, 4<<30)
	s.Stochastic.Power, s.Stochastic.Decay = cmp.Or(s.Stochastic.Power, 0.5), cmp.Or(s.Stochastic.Decay, 0.95)
	if s.Method == Auto && s.L1 > 0 {
		s.Method = OWLQN
	}
	return s
}

// String returns the method's name.
func (m Method) String() string {
	names := [...]string{"Auto", "LBFGS", "OWLQN", "Newton", "GD", "SGD"}
	if m < 0 || int(m) >= len(names) {
		return fmt.Sprintf("Method(%d)", int(m))
	}
	return names[m]
}
