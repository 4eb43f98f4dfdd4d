package optim

import (
	"fmt"
	"math"
)

// Validate reports the first setting that cannot be meant.
func (s Settings) Validate() error {
	if s.Method < Auto || s.Method > SGD {
		return fmt.Errorf("the method is %d; want one of Auto, LBFGS, OWLQN, Newton, GD, SGD", int(s.Method))
	}
	for _, v := range []struct {
		name  string
		value float64
	}{{"L1", s.L1}, {"L2", s.L2}, {"LossTol", s.LossTol}, {"StepTol", s.StepTol}, {"GapTol", s.GapTol}} {
		if !(v.value >= 0) || math.IsInf(v.value, 0) {
			return fmt.Errorf("%s is %v; want a number of 0 or more", v.name, v.value)
		}
	}
	if !finite(s.Tol) {
		return refuse("Tol", "is %v; want a number, negative to turn the test off", s.Tol)
	}
	if s.GapTol > 0 && s.Method == SGD {
		return refuse("GapTol", "is for the other methods than SGD")
	}
	if s.L1 > 0 && (s.Method == LBFGS || s.Method == Newton || s.Method == GD) {
		return fmt.Errorf("%v cannot minimise an L1 penalty, which has no gradient at 0: use Auto, OWLQN or SGD", s.Method)
	}
	for _, v := range []struct {
		name        string
		value, most int
	}{{"MaxIter", s.MaxIter, math.MaxInt32}, {"History", s.History, 1000}, {"Trials", s.Trials, 64}} {
		if v.value < 0 || v.value > v.most {
			return fmt.Errorf("%s is %d; want 1 to %d, or 0 for the default", v.name, v.value, v.most)
		}
	}
	if s.MaxBytes < 0 {
		return refuse("MaxBytes", "is %d; want a number of bytes, or 0 for the default", s.MaxBytes)
	}
	for i, v := range s.Start {
		if !finite(v) {
			return fmt.Errorf("parameter %d of Start is %v", i, v)
		}
	}
	if err := s.Stochastic.validate(s.L2); err != nil && s.Method == SGD {
		return fmt.Errorf("the settings of SGD: %w", err)
	}
	return nil
}

func (s Stochastic) validate(l2 float64) error {
	switch {
	case s.Batch < 0 || s.Batch > math.MaxInt32:
		return refuse("Batch", "is %d; want a number of rows, or 0 for the default", s.Batch)
	case s.Update < Plain || s.Update > AdaGrad:
		return refuse("Update", "is %d; want Plain, Adam or AdaGrad", int(s.Update))
	case s.Schedule < InverseScaling || s.Schedule > Optimal:
		return refuse("Schedule", "is %d; want InverseScaling, Constant, Exponential or Optimal", int(s.Schedule))
	case !(s.Rate >= 0) || math.IsInf(s.Rate, 0):
		return refuse("Rate", "is %v; want a number above 0, or 0 for the default", s.Rate)
	case !(s.Power >= 0) || math.IsInf(s.Power, 0):
		return refuse("Power", "is %v; want a number above 0, or 0 for the default", s.Power)
	case !(s.Decay >= 0 && s.Decay <= 1):
		return refuse("Decay", "is %v; want a number above 0 and at most 1, or 0 for the default", s.Decay)
	case !(s.Momentum >= 0 && s.Momentum < 1):
		return refuse("Momentum", "is %v; want a number of 0 or more and below 1", s.Momentum)
	case s.Update != Plain && (s.Momentum > 0 || s.Nesterov):
		return refuse("Momentum", "and Nesterov are for Plain updates")
	case s.Nesterov && s.Momentum == 0:
		return refuse("Nesterov", "needs a Momentum")
	case s.Schedule == Optimal && l2 == 0:
		return fmt.Errorf("the Optimal schedule is made from L2, which is 0: use another schedule")
	}
	return nil
}

// refuse is an error about the field of a name.
func refuse(field, format string, a ...any) error {
	return fmt.Errorf("%s %s", field, fmt.Sprintf(format, a...))
}

// withDefaults puts the default in place of fields that are 0.
func (s Settings) withDefaults() Settings {
	orInt := func(v *int, to int) {
		if *v == 0 {
			*v = to
		}
	}
	or := func(v *float64, to float64) {
		if *v == 0 {
			*v = to
		}
	}
	orInt(&s.MaxIter, 100)
	orInt(&s.History, 10)
	orInt(&s.Trials, 1)
	or(&s.Tol, 1e-6)
	if s.MaxBytes == 0 {
		s.MaxBytes = 4 << 30
	}
	or(&s.Stochastic.Power, 0.5)
	or(&s.Stochastic.Decay, 0.95)
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
