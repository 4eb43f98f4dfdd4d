package optim

// Method is an optimiser.
type Method int

const (
	// Auto selects OWLQN if there is an L1 penalty. Otherwise it selects Newton if the
	// parameters are few and second derivatives are known, and LBFGS in all other cases. If
	// LBFGS is slow, Auto changes to Newton. Result.Method is the method used last.
	Auto Method = iota
	// LBFGS keeps a history of gradients and steps in place of second derivatives.
	LBFGS
	// OWLQN is LBFGS for objectives with an L1 penalty.
	OWLQN
	// Newton solves a system with the matrix of second derivatives.
	Newton
	// GD takes steps along the negative gradient.
	GD
	// SGD takes steps along the negative gradient of a few rows at a time.
	SGD
)

// Settings are the settings of a minimisation. In every field, the zero value selects the
// default.
type Settings struct {
	Method Method
	// L1 and L2 are the strengths of the penalty, 0 or more.
	L1, L2 float64
	// MaxIter is the largest number of iterations, or of epochs for SGD; 0 means 100.
	MaxIter int
	// Tol ends training when the largest component of the gradient (of the pseudo-gradient with
	// L1) is at most Tol times a reference. The reference is the larger of the largest
	// component at the start and the unit of the objective, see Evaluator.GradientUnit. 0 means
	// 1e-6, and a negative value turns the test off.
	Tol float64
	// LossTol ends training when the objective falls by at most LossTol, relative to its value;
	// 0 turns the test off.
	LossTol float64
	// StepTol ends training when no parameter moves by more than StepTol, relative to the
	// larger of its size and 1; 0 turns the test off.
	StepTol float64
	// GapTol minimises an objective with Smoothing in rounds, until the objective without
	// approximation exceeds a lower bound of its minimum by at most GapTol, relative to the
	// objective. 0 means one round, and the result is the minimum of the approximation. Rounds
	// may use a smaller tolerance than Tol.
	GapTol float64
	// Start has the first parameters; nil means Evaluator.Initial, or zeros if that is nil,
	// too.
	Start []float64
	// History is the number of steps that LBFGS and OWLQN remember; 0 means 10.
	History int
	// Stochastic are the settings of SGD.
	Stochastic Stochastic
	// Information requests the matrix of second derivatives at the final parameters.
	Information bool
	// Seed is the seed for the order of rows in SGD; 0 means the seed of the job.
	Seed uint64
	// Trials is the number of steps, 1 to 64, that a line search evaluates at a time if
	// evaluating them needs no read of the rows. 0 means 1. One step at a time takes the least
	// arithmetic; more steps at a time take fewer rounds of communication.
	Trials int
	// MaxBytes bounds the memory of the matrix of second derivatives on a subtask, including
	// all copies; 0 means 4 GiB.
	MaxBytes int64
}

// Update is the rule by which SGD turns gradients into steps.
type Update int

const (
	// Plain takes steps along the negative gradient, with Momentum if that is set.
	Plain Update = iota
	// Adam scales steps by running means of gradients and of their squares.
	Adam
	// AdaGrad scales steps by the sum of squared gradients.
	AdaGrad
)

// Schedule is the rule for the learning rate of SGD after t completed steps.
type Schedule int

const (
	// InverseScaling is rate/(1+t)^Power.
	InverseScaling Schedule = iota
	// Constant keeps the rate.
	Constant
	// Exponential multiplies the rate by Decay after every epoch.
	Exponential
	// Optimal is 1/(L2·(t0+t)). t0 is chosen so that the first step has the learning rate Rate.
	// It is for convex losses with an L2 penalty.
	Optimal
)

// Stochastic are the settings of SGD. In every field, the zero value selects the default.
type Stochastic struct {
	// Batch is the approximate number of rows in a step; 0 means one row of each shard.
	Batch    int
	Update   Update
	Schedule Schedule
	// Rate is the first learning rate. 0 means a default for features with a standard deviation
	// of 1. For steps of 128 rows, the default is in the table below. With these rates each
	// schedule ends within 1e-3 of the optimum in 50 epochs of some thousand rows:
	//
	//	         InverseScaling  Constant  Exponential  Optimal
	//	Plain    1               0.1       0.3          0.1
	//	Adam     0.1             0.003     0.01         0.003
	//	AdaGrad  1               0.1       0.3          0.1
	//
	// With Momentum the default is multiplied by 1−Momentum, as steps add up. With fewer rows
	// in a step, gradients are noisier and an epoch has more steps, so the default is smaller.
	Rate float64
	// Power is the exponent of InverseScaling; 0 means 0.5.
	Power float64
	// Decay is the factor of Exponential; 0 means 0.95.
	Decay float64
	// Momentum is the momentum of Plain, at least 0 and below 1. Nesterov selects Nesterov's
	// variant.
	Momentum float64
	Nesterov bool
	// Average makes the result the mean of the parameters over the last half of the steps.
	Average bool
}
