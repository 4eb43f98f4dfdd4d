package optim

// Method is an optimiser.
type Method int

const (
	// Auto takes OWLQN with an L1 penalty, Newton if the parameters are few and the objective
	// is curved, and otherwise LBFGS, from which it changes to Newton if that is slow. The
	// result names the last method.
	Auto Method = iota
	// LBFGS keeps a history of gradients and steps in place of second derivatives.
	LBFGS
	// OWLQN is LBFGS for objectives with an L1 penalty.
	OWLQN
	// Newton solves with the matrix of second derivatives.
	Newton
	// GD follows the gradient.
	GD
	// SGD follows the gradient of a few rows at a time.
	SGD
)

// Settings say how to minimise. The zero value is the default of every field.
type Settings struct {
	Method Method
	// L1 and L2 are the strengths of the penalty, 0 or more.
	L1, L2 float64
	// MaxIter is the largest number of iterations, epochs for SGD; 0 means 100.
	MaxIter int
	// Tol ends training when the largest component of the gradient (of the pseudo-gradient with
	// L1) is at most Tol times a reference. The reference is the larger of that component at
	// the start and the unit of the objective, see Evaluator.GradientUnit. 0 means 1e-6, and a
	// negative value turns the test off.
	Tol float64
	// LossTol ends training when the objective falls relatively by at most LossTol; 0 turns the
	// test off.
	LossTol float64
	// StepTol ends training when no parameter moves relatively by more than StepTol; 0 turns
	// the test off.
	StepTol float64
	// GapTol minimises an objective with Smoothing in rounds, until the objective itself is
	// relatively at most GapTol above a lower bound of its minimum. 0 means one round, whose
	// result is that of the approximation. Rounds use a smaller Tol than the one set if the gap
	// needs it.
	GapTol float64
	// Start are the first parameters; nil means those of the objective, or zeros.
	Start []float64
	// History is the number of steps that LBFGS and OWLQN remember; 0 means 10.
	History int
	// Stochastic are the settings of SGD.
	Stochastic Stochastic
	// Information asks for the matrix of second derivatives at the end.
	Information bool
	// Seed is the seed of the draws of SGD; 0 means the seed of the job.
	Seed uint64
	// Trials is the number of steps that a line search tries at a time if they need no read of
	// the rows, 1 to 64; 0 means 1. One has the least arithmetic; several at a time need fewer
	// rounds of communication.
	Trials int
	// MaxBytes bounds the memory of the matrix of second derivatives on a subtask, in all of
	// its copies; 0 means 4 GiB.
	MaxBytes int64
}

// Update is how SGD turns gradients into steps.
type Update int

const (
	// Plain steps follow the gradient, with Momentum if that is set.
	Plain Update = iota
	// Adam scales by running means of gradients and their squares.
	Adam
	// AdaGrad scales by the sum of squared gradients.
	AdaGrad
)

// Schedule is how the learning rate of SGD depends on the number t of completed steps.
type Schedule int

const (
	// InverseScaling is rate/(1+t)^Power.
	InverseScaling Schedule = iota
	// Constant keeps the rate.
	Constant
	// Exponential multiplies the rate by Decay after every epoch.
	Exponential
	// Optimal is 1/(L2·(t0+t)), with t0 such that the first step has Rate. It is for convex
	// losses with an L2 penalty.
	Optimal
)

// Stochastic are the settings of SGD. The zero value is the default of every field.
type Stochastic struct {
	// Batch is the approximate number of rows of a step; 0 means one row of each shard.
	Batch    int
	Update   Update
	Schedule Schedule
	// Rate is the first learning rate. 0 means a default for features of spread 1 and steps of
	// 128 rows. With it each schedule ends within 1e-3 of the optimum in 50 epochs of some
	// thousand rows:
	//
	//	         InverseScaling  Constant  Exponential  Optimal
	//	Plain    1               0.1       0.3          0.1
	//	Adam     0.1             0.003     0.01         0.003
	//	AdaGrad  1               0.1       0.3          0.1
	//
	// With Momentum the default is multiplied by 1−Momentum, as steps add up. With fewer rows,
	// gradients are noisier and an epoch has more steps, so the default is smaller.
	Rate float64
	// Power of InverseScaling; 0 means 0.5.
	Power float64
	// Decay of Exponential; 0 means 0.95.
	Decay float64
	// Momentum of Plain, 0 to 1; Nesterov's if Nesterov is set.
	Momentum float64
	Nesterov bool
	// Average returns the mean of the parameters of the last half of the steps.
	Average bool
}
