package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
)

// Validate is called before the job is built. An error is reported as wrong usage.
func (a args) Validate() error {
	if !(a.Rate > 0) || math.IsInf(a.Rate, 1) { // written so that NaN is refused too
		return fmt.Errorf("--rate is %v; want a number greater than 0, such as 0.01", a.Rate)
	}
	return nil
}

// converging returns an error if the loss or a weight is not finite.
func converging(loss float64, weights []float64, rate float64) error {
	infinite := func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) }
	if infinite(loss) || slices.ContainsFunc(weights, infinite) {
		return fmt.Errorf("the descent diverged: its steps are too long at --rate %v; make it smaller", rate)
	}
	return nil
}

// report prints the loss of every superstep, or with --lbfgs the minimum.
func report(a args, r *engine.Result) error {
	if a.LBFGS {
		found, err := engine.Rows[optim.Minimum](r, "minimum")
		if err != nil {
			return err
		}
		m := found[0]
		_, err = fmt.Printf("mean loss after %d iterations (%s): %.6g\ncoefficients: %.5g\n", m.Iterations, m.Reason, m.Loss, m.Parameters)
		return err
	}
	_, err := fmt.Printf("loss per superstep: %.6g\n", r.Series("descent", "loss"))
	return err
}
