package optim

import "slices"

// Reason says why training ended.
type Reason string

// The reasons.
const (
	GradientSmall Reason = "gradient"           // the gradient is as small as Tol asks
	LossSettled   Reason = "loss"               // the objective falls no faster than LossTol
	StepSmall     Reason = "parameters"         // the parameters move no more than StepTol
	Exhausted     Reason = "precision"          // no step along any direction lowers the objective
	MaxIterations Reason = "maximum iterations" // MaxIter was reached first
	GapClosed     Reason = "gap"                // the objective is as close to its lower bound as GapTol asks
	// Diverging: without a penalty, parameters grow without end while the loss falls more and
	// more slowly. It goes to 0 if classes are separable, or to the loss of the rows that
	// prevent that. There is no optimum; a penalty creates one.
	Diverging Reason = "diverging"
	// Overshooting: SGD ended well above where it began, as its steps are too long.
	Overshooting Reason = "overshooting"
)

// Result is the result of a minimisation. It is the same on every subtask, at any parallelism.
type Result struct {
	Method     Method
	Parameters []float64
	// Loss is the objective at Parameters, penalty included. With GapTol it is the objective
	// itself, not the approximation, and Gap is an upper bound of its distance to the minimum.
	Loss float64
	Gap  float64 `json:",omitempty"`
	// GradientNorm is the largest component of the gradient at Parameters, or of the
	// pseudo-gradient with L1.
	GradientNorm float64
	Iterations   int
	// Reads is the total number of times that the rows were read.
	Reads float64
	// Converged says that Parameters are an optimum, within the tolerances of Settings and
	// floating point. If precision was exhausted, it is false while the gradient is above 1e-4
	// of the first one.
	Converged bool
	Reason    Reason
	// Record has an entry for the start and for every iteration.
	Record []Iteration
	// Information is the lower triangle, row by row, of the matrix of second derivatives of the
	// mean loss, without the penalty. It is set if Settings asked for it.
	Information []float64
}

// clone returns a copy that shares no memory.
func (r *Result) clone() *Result {
	c := *r
	c.Parameters, c.Record, c.Information = slices.Clone(r.Parameters), slices.Clone(r.Record), slices.Clone(r.Information)
	return &c
}

// Summary is what a model's file tells of a training.
type Summary struct {
	Rows   int64   `json:"rows"`
	Weight float64 `json:"weight"`
	Method string  `json:"method"`
	// Loss is the mean weighted loss with the penalty, and GradientNorm the largest component
	// of its gradient.
	Loss         float64 `json:"loss"`
	GradientNorm float64 `json:"gradient_norm"`
	Iterations   int     `json:"iterations"`
	// Reads is how often the rows were read.
	Reads     float64     `json:"reads"`
	Converged bool        `json:"converged"`
	Reason    Reason      `json:"reason"`
	Record    []Iteration `json:"record"`
}

// Summary tells of a training on rows of a total weight.
func (r *Result) Summary(rows int64, weight float64) Summary {
	return Summary{
		Rows: rows, Weight: weight, Method: r.Method.String(), Loss: r.Loss, GradientNorm: r.GradientNorm,
		Iterations: r.Iterations, Reads: r.Reads, Converged: r.Converged, Reason: r.Reason, Record: r.Record,
	}
}

// Iteration is the record of an iteration, at its end.
type Iteration struct {
	Loss         float64 `json:"loss"`
	GradientNorm float64 `json:"gradient_norm"`
	Step         float64 `json:"step"`
	Reads        float64 `json:"reads"` // of the rows, by this iteration
}
