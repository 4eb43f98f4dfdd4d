// Package optim minimises sums over partitioned rows: gradient descent, stochastic
// gradient descent, L-BFGS, OWL-QN and Newton's method, each a queue of compute and
// AllReduce stages.
//
// # How it is used
//
//	model := optim.Minimize(b, optim.Problem{
//		Name:      "logistic regression",
//		Init:      table.Init,               // the data that the objective opens
//		Objective: objective,                // Open returns an Evaluator on each subtask
//		Settings:  optim.Settings{L2: 1e-3}, // the zero value is the default
//		Closer:    comqueue.Output(model),   // makes the rows; calls ResultOf
//	})
//
// An [Evaluator] is a struct with the functions and facts of the objective on a subtask. Four
// fields are enough. More fields make more methods possible and save reads of the rows:
//
//	func (o objective) Open(ctx *comqueue.ComContext) (optim.Evaluator, error) {
//		rows := o.rowsOf(ctx) // of the shards of the subtask
//		return optim.Evaluator{
//			Dim:            rows.parameters,
//			Weight:         rows.weight,   // of all shards
//			PenaltyFactors: rows.factors,  // 1, or 0 for an intercept
//			Evaluate:       rows.evaluate, // adds loss and gradient of a shard
//			Hessian:        rows.hessian,  // for Newton
//			Minibatch:      optim.Minibatch{Rows: rows.count, Evaluate: rows.evaluateSome}, // for SGD
//		}, nil
//	}
//
// The short form is [MinimizeRows], which takes a function of a row:
//
//	fit := optim.MinimizeRows(rows, 3, func(row Row, w, grad []float64) (loss float64) { ... }, optim.Settings{})
//
// # What is minimised
//
// With weights u of rows, losses l of an [Objective] and parameters v,
//
//	F(v) = Σ u·l(v) / Σ u + L1·Σ |f·v| + ½·L2·Σ (f·v)²
//
// f is the factor that the objective gives each parameter. It is 0 for a parameter without a
// penalty, such as an intercept. The penalty is part of F everywhere: in line searches, in the
// tests of convergence, in reports.
//
// # Which method
//
//	LBFGS   smooth objectives of any size; needs nothing but loss and gradient
//	OWLQN   LBFGS for an L1 penalty; parameters become exactly 0
//	Newton  smooth objectives of up to some thousand parameters whose second derivatives
//	        are known: few iterations, each with a matrix
//	GD      for comparison
//	SGD     very many rows, for which one or a few epochs are enough; noisy objectives
//
// Auto takes OWLQN with an L1 penalty, Newton for few parameters, and otherwise LBFGS. With up
// to some hundred parameters, it changes from LBFGS to Newton once LBFGS has taken as long as
// Newton would. A superstep is an iteration, or for SGD a step. Superstep 1 evaluates the
// start.
//
// # Reads of the data
//
// Losses of linear models depend on the parameters through margins, which are linear in them.
// [Margins] of an Evaluator keep the margins of its rows and of the search direction. One read
// of the features then gives both the margins of the direction and the gradient at step 1.
// Every further trial step needs no read but one small AllReduce, and an accepted step other
// than 1 needs one more read. Without Margins every trial is a read. Newton's method reads
// second derivatives at the full step, which is nearly always accepted. An iteration thus takes
// between 1 and 1.2 reads on average; [Result] has the count.
//
// A [Subspace] uses a few rows to estimate how far to go, before the read. LBFGS first combines
// its direction with the latest steps, by the curvature in the subspace that these span. That
// saves a third of the iterations of logistic regression. From 65,536 parameters on, it uses
// its direction alone.
//
// The gradient of a shard is a buffer as long as the parameters, and buffers are folded up the
// tree. With sparse rows and very many features, nearly all of a buffer would be zeros. Fold of
// an Evaluator then folds the gradients itself. Subtasks exchange the results without zeros
// while that is smaller, see comqueue.WithoutZeros.
//
// # When it ends
//
// Training ends when the gradient is small (Tol, on by default), when the loss or the
// parameters settle (LossTol, StepTol), at MaxIter, or when no step lowers the loss any more,
// which is the optimum to the precision of the sums. [Reason] says which. Without a penalty
// there may be no optimum, as with separable classes: parameters grow without end and the loss
// goes to 0. That is reported as [Diverging]. SGD with too long steps that ends above where it
// began is reported as [Overshooting].
//
// Losses with kinks are minimised through smooth approximations, in rounds, until the gap to a
// lower bound of the minimum is closed, see [Smoothing] and Settings.GapTol.
//
// If the loss is infinite or NaN at a step, the step is shortened. If that does not help, or if
// the loss is so at the start, training fails with an error that names the superstep.
//
// # The same bits
//
// Sums over rows are folded up the tree over shards, and sums over parameters up the tree over
// fixed blocks of parameters. Every subtask makes the same decisions from the same sums. So
// results do not depend on parallelism. Supersteps allocate nothing, except for the record,
// which grows.
//
// # What is kept
//
// From one superstep to the next, a minimisation keeps the following, under keys of package
// shared: its progress, parameters and gradient; for L-BFGS its pairs and the latest steps; for
// Newton's method the matrix; for SGD its velocities, squares and means; without a penalty two
// earlier points; and for the rows the [Snapshot] of the evaluator. A subtask that finds none
// of the rest makes it anew, so that engine.CheckState changes no bit.
//
// # Very many parameters
//
// From 65,536 parameters on, LBFGS, OWLQN and GD split the parameters among subtasks by these
// blocks, which changes no bit. The split vectors are parameters, gradients, direction, penalty
// and history, 5 + 2·(History+1) in all, and every subtask keeps only its share. A read of the
// rows gives each subtask the gradient of its own share. Two vectors are whole on every
// subtask, both scratch: the one with which rows are read, and the one in which their gradient
// is summed. SGD, and trainings that ask for Information, keep all vectors whole. With GapTol,
// the sums of the bound are whole too.
package optim
