// Package optim minimises sums over partitioned rows. The methods are gradient descent,
// stochastic gradient descent, L-BFGS, OWL-QN and Newton's method; each is a queue of compute
// and AllReduce stages.
//
// # Usage
//
//	model := optim.Minimize(b, optim.Problem{
//		Name:      "logistic regression",
//		Init:      table.Init,               // the data that the objective opens
//		Objective: objective,                // Open returns an Evaluator on each subtask
//		Settings:  optim.Settings{L2: 1e-3}, // the zero value is the default
//		Closer:    comqueue.Output(model),   // makes the rows; calls ResultOf
//	})
//
// An [Evaluator] is a struct with the functions and properties of the objective on a subtask.
// Four fields are required. Further fields make more methods possible and save reads of the
// rows:
//
//	func (o objective) Open(ctx *comqueue.ComContext) (optim.Evaluator, error) {
//		rows := o.rowsOf(ctx) // the rows of the subtask's shards
//		return optim.Evaluator{
//			Dim:            rows.parameters,
//			Weight:         rows.weight,   // total weight of the rows of all shards
//			PenaltyFactors: rows.factors,  // 1, or 0 for an intercept
//			Evaluate:       rows.evaluate, // adds loss and gradient of a shard
//			Hessian:        rows.hessian,  // for Newton
//			Minibatch:      optim.Minibatch{Rows: rows.count, Evaluate: rows.evaluateSome}, // for SGD
//		}, nil
//	}
//
// [MinimizeRows] is a simpler alternative, which takes a function of a row:
//
//	fit := optim.MinimizeRows(rows, 3, func(row Row, w, grad []float64) (loss float64) { ... }, optim.Settings{})
//
// # What is minimised
//
// With the weight u and the loss l of each row, and the parameters v, the function is
//
//	F(v) = Σ u·l(v) / Σ u + L1·Σ |f·v| + ½·L2·Σ (f·v)²
//
// f is the factor that the objective gives each parameter. It is 0 for a parameter without a
// penalty, such as an intercept. F includes the penalty everywhere: in line searches, in the
// tests of convergence and in reports.
//
// # Methods
//
//	LBFGS   smooth objectives of any size; needs nothing but loss and gradient
//	OWLQN   LBFGS for an L1 penalty; parameters become exactly 0
//	Newton  smooth objectives of up to some thousand parameters whose second derivatives
//	        are known: few iterations, each with a matrix
//	GD      for comparison
//	SGD     very many rows, for which one or a few epochs are enough; noisy objectives
//
// Auto selects OWLQN if there is an L1 penalty. Otherwise it selects Newton for few parameters,
// and LBFGS for more. With up to some hundred parameters, it changes from LBFGS to Newton once
// LBFGS has taken as long as Newton would take in total. A superstep is an iteration; for SGD
// it is a step. Superstep 1 evaluates the start.
//
// # Reads of the data
//
// The loss of a linear model depends on the parameters only through margins, which are linear
// in the parameters. [Margins] of an Evaluator store the margins of its rows at the current
// point and along the search direction. One read of the features then computes both the margins
// of the direction and the gradient at step 1. Every further trial step needs no read, but only
// one small AllReduce. An accepted step other than 1 needs one more read. Without Margins every
// trial is a read. Newton's method reads second derivatives at the full step, which is nearly
// always accepted. An iteration thus takes between 1 and 1.2 reads on average; [Result] has the
// count.
//
// A [Subspace] uses a few rows to estimate a good first step before the read. LBFGS also
// combines its direction with the latest steps, according to the curvature in the subspace that
// they span. That saves a third of the iterations of logistic regression. From 65,536
// parameters on, LBFGS does not use the latest steps.
//
// The gradient of a shard is a buffer as long as the parameters, and buffers are folded up the
// tree. With sparse rows and very many features, nearly all of a buffer would be zeros. For
// that case an Evaluator may set Fold, which folds the gradients itself. Subtasks exchange the
// results without their zeros while that needs fewer bytes, see comqueue.WithoutZeros.
//
// # When training ends
//
// Training ends when the gradient is small (Tol, on by default), when the loss or the
// parameters change little (LossTol, StepTol), at MaxIter, or when no step lowers the loss any
// more. In the last case the parameters are optimal to the precision of the sums. [Reason]
// tells which of these happened. Without a penalty there may be no optimum, as with separable
// classes: parameters grow without bound and the loss goes to 0. That is reported as
// [Diverging]. If the steps of SGD are so long that the final loss is higher than the first,
// that is reported as [Overshooting].
//
// Losses with kinks are minimised through smooth approximations, in rounds, until the gap to a
// lower bound of the minimum is closed, see [Smoothing] and Settings.GapTol.
//
// If the loss is infinite or NaN at a step, the step is shortened. Training fails with an error
// that names the superstep if shortening does not help, or if the loss is infinite or NaN at
// the start.
//
// # The same bits
//
// Sums over rows are folded up the tree over shards, and sums over parameters up the tree over
// fixed blocks of parameters. Every subtask makes the same decisions from the same sums.
// Therefore results do not depend on parallelism. Supersteps allocate no memory, except that
// the record grows.
//
// # What is kept
//
// From one superstep to the next, a minimisation keeps the following objects, under keys of
// package shared: its progress, parameters and gradient; for L-BFGS its pairs and the latest
// steps; for Newton's method the matrix; for SGD its velocities, squares and means; without a
// penalty two earlier points; and for each shard the [Snapshot] of the evaluator. Everything
// else is recomputed by a subtask that does not find it, so that engine.CheckState changes no
// bit.
//
// # Very many parameters
//
// From 65,536 parameters on, LBFGS, OWLQN and GD split the parameters among subtasks by the
// blocks mentioned above. Splitting does not change the bits of the results. The split vectors
// are parameters, gradients, direction, penalty and history, 5 + 2·(History+1) in all. Every
// subtask keeps only its share of them. A read of the rows gives each subtask the gradient of
// its own share. Two vectors are whole on every subtask, and neither is kept between
// supersteps: the vector with which rows are read, and the vector in which their gradient is
// summed. SGD, and trainings with Information, keep all vectors whole. With GapTol, the sums of
// the bound are whole too.
package optim
