package linearmodel

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/optim"
)

// Summary tells about a training. It holds no NaN and no infinity, so that it can be
// written as JSON.
type Summary struct {
	Rows int64 `json:"rows"`
	// Weight is the total weight of the rows, with class weights.
	Weight float64 `json:"weight"`
	// Method is the optimiser that was taken.
	Method     string `json:"method"`
	Iterations int    `json:"iterations"`
	Converged  bool   `json:"converged"`
	// Reason says why training ended.
	Reason optim.Reason `json:"reason"`
	// Loss is the mean weighted loss, Objective that with the penalty, and GradientNorm the
	// largest component of its gradient.
	Loss         float64 `json:"loss"`
	Objective    float64 `json:"objective"`
	GradientNorm float64 `json:"gradient_norm"`
	// Reads is how often the rows were read.
	Reads float64 `json:"reads"`
	// Record has an entry for the start and for every iteration.
	Record []optim.Iteration `json:"record"`
	// Measures say how well the model fits its rows, as far as they are defined.
	Measures []Measure `json:"measures,omitempty"`
	// Inference is the table of standard errors, nil where it was not asked for or is not
	// defined.
	Inference *Inference `json:"inference,omitempty"`
}

// Measure is a measure of fit.
type Measure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// Note enters a measure, unless its value is not a finite number.
func (s *Summary) Note(name string, value float64) {
	if finite(value) {
		s.Measures = append(s.Measures, Measure{name, value})
	}
}

// Measure returns the measure of a name. ok is false where it is not defined for the model.
func (s *Summary) Measure(name string) (value float64, ok bool) {
	for _, m := range s.Measures {
		if m.Name == name {
			return m.Value, true
		}
	}
	return 0, false
}

// Inference is what the second derivatives at the optimum tell of the coefficients.
type Inference struct {
	// Statistic is "t" or "z".
	Statistic string `json:"statistic"`
	// Rank is the number of coefficients, intercept included, that the rows determine.
	Rank int `json:"rank"`
	// Freedom is the residual degrees of freedom, rows less Rank.
	Freedom float64 `json:"residual_df"`
	// Collinear are the features that are determined by those before them (and the
	// intercept), constant ones included. Neither their coefficients nor those of the
	// features that determine them, and that of the intercept with these, have standard
	// errors: the rows do not tell how they share what they have in common.
	Collinear []int `json:"collinear,omitempty"`
	// Terms has an entry for each coefficient, and a last one for the intercept if there is
	// one.
	Terms []Term `json:"terms"`
}

// Term is a line of the table. Without Defined there is no more than the estimate.
type Term struct {
	Name      string  `json:"name"`
	Estimate  float64 `json:"estimate"`
	Defined   bool    `json:"defined"`
	StdError  float64 `json:"std_error"`
	Statistic float64 `json:"statistic"`
	PValue    float64 `json:"p_value"`
}

// summaryOf tells about a result.
func summaryOf(r *optim.Result, rows int64, weight, penalty float64) Summary {
	return Summary{
		Rows: rows, Weight: weight, Method: r.Method.String(), Iterations: r.Iterations, Converged: r.Converged, Reason: r.Reason,
		Loss: r.Loss - penalty, Objective: r.Loss, GradientNorm: r.GradientNorm, Reads: r.Reads, Record: r.Record,
	}
}

// check tells what of a summary does not hold together.
func (s *Summary) check(features int) error {
	for _, v := range []float64{s.Weight, s.Loss, s.Objective, s.GradientNorm, s.Reads} {
		if !finite(v) {
			return fmt.Errorf("there is a number %v", v)
		}
	}
	for _, m := range s.Measures {
		if !finite(m.Value) {
			return fmt.Errorf("the measure %q is %v", m.Name, m.Value)
		}
	}
	switch {
	case s.Rows < 0 || s.Iterations < 0:
		return fmt.Errorf("there are %d rows and %d iterations", s.Rows, s.Iterations)
	case s.Inference == nil:
		return nil
	case len(s.Inference.Terms) != features && len(s.Inference.Terms) != features+1:
		return fmt.Errorf("there are %d terms for %d features", len(s.Inference.Terms), features)
	}
	for _, t := range s.Inference.Terms {
		if !finite(t.Estimate) || !finite(t.StdError) || !finite(t.Statistic) || math.IsNaN(t.PValue) || t.PValue < 0 || t.PValue > 1 {
			return fmt.Errorf("the term %q has numbers that cannot be", t.Name)
		}
	}
	for _, j := range s.Inference.Collinear {
		if j < 0 || j >= features {
			return fmt.Errorf("the collinear features have %d of %d", j, features)
		}
	}
	return nil
}
