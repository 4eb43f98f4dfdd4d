package linearmodel

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Summary describes a training. It holds no NaN and no infinity, so that it can be written as
// JSON.
type Summary struct {
	Rows int64 `json:"rows"`
	// Weight is the total weight of the rows, including class weights.
	Weight float64 `json:"weight"`
	// Method is the optimiser that was used.
	Method     string `json:"method"`
	Iterations int    `json:"iterations"`
	Converged  bool   `json:"converged"`
	// Reason says why training ended.
	Reason optim.Reason `json:"reason"`
	// Loss is the weighted mean of the losses. Objective is Loss plus the penalty. GradientNorm
	// is the largest absolute component of the gradient of Objective.
	Loss         float64 `json:"loss"`
	Objective    float64 `json:"objective"`
	GradientNorm float64 `json:"gradient_norm"`
	// Reads is the number of times that the rows were read.
	Reads float64 `json:"reads"`
	// Record has an entry for the start of training and for every iteration.
	Record []optim.Iteration `json:"record"`
	// Measures are the measures of fit that are defined for the model.
	Measures []Measure `json:"measures,omitempty"`
	// Inference is the table of standard errors. It is nil if it was not requested or is not
	// defined.
	Inference *Inference `json:"inference,omitempty"`
}

// Measure is a measure of fit.
type Measure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
}

// Note adds a measure of fit if its value is finite.
func (s *Summary) Note(name string, value float64) {
	if kernel.Finite(value) {
		s.Measures = append(s.Measures, Measure{name, value})
	}
}

// Measure returns the value of the measure of fit with the given name. ok is false if the
// measure is not defined for the model.
func (s *Summary) Measure(name string) (value float64, ok bool) {
	for _, m := range s.Measures {
		if m.Name == name {
			return m.Value, true
		}
	}
	return 0, false
}

// Inference is the table of standard errors, which are computed from the second derivatives at
// the optimum.
type Inference struct {
	// Statistic is "t" or "z".
	Statistic string `json:"statistic"`
	// Rank is the number of coefficients, including the intercept, that the rows determine.
	Rank int `json:"rank"`
	// Freedom is the residual degrees of freedom: the number of rows with a weight above 0,
	// minus Rank.
	Freedom float64 `json:"residual_df"`
	// Collinear are the features that are determined by the features before them and the
	// intercept, such as constant features. These features, and the features that determine
	// them, have no standard errors, because the rows do not determine their coefficients
	// separately. If at least one feature determines another feature, the intercept has no
	// standard error either.
	Collinear []int `json:"collinear,omitempty"`
	// Terms has an entry for each coefficient, followed by an entry for the intercept if there
	// is an intercept.
	Terms []Term `json:"terms"`
}

// Term is a row of the table of standard errors. If Defined is false, only Name and Estimate
// are set.
type Term struct {
	Name      string  `json:"name"`
	Estimate  float64 `json:"estimate"`
	Defined   bool    `json:"defined"`
	StdError  float64 `json:"std_error"`
	Statistic float64 `json:"statistic"`
	PValue    float64 `json:"p_value"`
}

// summaryOf returns the summary of the optimiser's result r. penalty is the penalty at the
// parameters of r.
func summaryOf(r *optim.Result, rows int64, weight, penalty float64) Summary {
	return Summary{
		Rows: rows, Weight: weight, Method: r.Method.String(), Iterations: r.Iterations, Converged: r.Converged, Reason: r.Reason,
		Loss: r.Loss - penalty, Objective: r.Loss, GradientNorm: r.GradientNorm, Reads: r.Reads, Record: r.Record,
	}
}

// check returns an error if the summary is not valid.
func (s *Summary) check(features int) error {
	for _, v := range []float64{s.Weight, s.Loss, s.Objective, s.GradientNorm, s.Reads} {
		if !kernel.Finite(v) {
			return fmt.Errorf("there is a number %v", v)
		}
	}
	for _, m := range s.Measures {
		if !kernel.Finite(m.Value) {
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
		if !kernel.Finite(t.Estimate) || !kernel.Finite(t.StdError) || !kernel.Finite(t.Statistic) || math.IsNaN(t.PValue) || t.PValue < 0 || t.PValue > 1 {
			return fmt.Errorf("the term %q has a number that is not finite, or a p value outside 0 to 1", t.Name)
		}
	}
	for _, j := range s.Inference.Collinear {
		if j < 0 || j >= features {
			return fmt.Errorf("the collinear features have %d of %d", j, features)
		}
	}
	return nil
}
