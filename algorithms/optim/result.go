package optim

import "slices"

// Reason is the reason why training ended.
type Reason string

// The reasons.
const (
	GradientSmall Reason = "gradient"           // the gradient is as small as Tol requires
	LossSettled   Reason = "loss"               // the objective falls no faster than LossTol
	StepSmall     Reason = "parameters"         // the parameters move no more than StepTol
	Exhausted     Reason = "precision"          // no step along any direction lowers the objective
	MaxIterations Reason = "maximum iterations" // MaxIter was reached first
	GapClosed     Reason = "gap"                // the objective is as close to its lower bound as GapTol requires
	// Diverging means that there is no optimum: without a penalty, parameters grow without
	// bound while the loss falls more and more slowly. The loss goes to 0 if classes are
	// separable. It goes to the loss of the rows in the separating plane if classes are
	// separable except for these rows. With a penalty there is an optimum.
	Diverging Reason = "diverging"
	// Overshooting means that SGD ended with a loss above the first loss, because its steps are
	// too long.
	Overshooting Reason = "overshooting"
)

// Result is the result of a minimisation. It is the same on every subtask, at any parallelism.
type Result struct {
	Method     Method
	Parameters []float64
	// Loss is the objective at Parameters, penalty included. With GapTol it is the objective
	// without approximation, and Gap is an upper bound of the difference between Loss and the
	// minimum of that objective.
	Loss float64
	Gap  float64 `json:",omitempty"`
	// GradientNorm is the largest component of the gradient at Parameters, or of the
	// pseudo-gradient with L1.
	GradientNorm float64
	Iterations   int
	// Reads is the total number of times that the rows were read.
	Reads float64
	// Converged is true if Parameters are an optimum, within the tolerances of Settings and
	// floating point. If Reason is Exhausted, it is true only if the gradient is at most 1e-4
	// of the first gradient.
	Converged bool
	Reason    Reason
	// Record has an entry for the start and for every iteration.
	Record []Iteration
	// Information is the lower triangle, row by row, of the matrix of second derivatives of the
	// mean loss, without the penalty. It is nil unless Settings.Information is set.
	Information []float64
}

// clone returns a copy that shares no memory.
func (r *Result) clone() *Result {
	c := *r
	c.Parameters, c.Record, c.Information = slices.Clone(r.Parameters), slices.Clone(r.Record), slices.Clone(r.Information)
	return &c
}

// Summary is the part of a Result that is written to the file of a model.
type Summary struct {
	Rows   int64   `json:"rows"`
	Weight float64 `json:"weight"`
	Method string  `json:"method"`
	// Loss is the mean weighted loss with the penalty, and GradientNorm is the largest
	// component of the gradient of Loss.
	Loss         float64 `json:"loss"`
	GradientNorm float64 `json:"gradient_norm"`
	Iterations   int     `json:"iterations"`
	// Reads is the total number of times that the rows were read.
	Reads     float64     `json:"reads"`
	Converged bool        `json:"converged"`
	Reason    Reason      `json:"reason"`
	Record    []Iteration `json:"record"`
}

// Summary returns the summary of a training on the given number of rows with the given total
// weight.
func (r *Result) Summary(rows int64, weight float64) Summary {
	return Summary{
		Rows: rows, Weight: weight, Method: r.Method.String(), Loss: r.Loss, GradientNorm: r.GradientNorm,
		Iterations: r.Iterations, Reads: r.Reads, Converged: r.Converged, Reason: r.Reason, Record: r.Record,
	}
}

// Iteration is the record of an iteration. It is made when the iteration ends.
type Iteration struct {
	Loss         float64 `json:"loss"`
	GradientNorm float64 `json:"gradient_norm"`
	Step         float64 `json:"step"`
	Reads        float64 `json:"reads"` // reads of the rows in this iteration
}
