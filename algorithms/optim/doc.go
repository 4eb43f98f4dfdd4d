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
// An [Evaluator] is a struct of what is known of the objective on a subtask. Four fields are
// enough; more of them make for more methods and fewer reads of the rows:
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
// where f is the factor that the objective gives each parameter, 0 for one that is not
// penalised, such as an intercept. The penalty is part of F everywhere: in line
// searches, in the tests of convergence, in what is reported.
//
// # Which method
//
//	LBFGS   smooth objectives of any size; needs nothing but loss and gradient
//	OWLQN   LBFGS for an L1 penalty; parameters become exactly 0
//	Newton  smooth objectives of up to some thousand parameters whose second derivatives
//	        are known: few iterations, each with a matrix
//	GD      for comparison
//	SGD     very many rows, of which an epoch or a few are enough; objectives with noise
//
// Auto takes OWLQN where there is an L1 penalty, Newton where parameters are few, and
// LBFGS else; of some hundred parameters it goes over from LBFGS to Newton once that has
// taken as long as Newton would. A superstep is an iteration, for SGD a step; superstep 1
// evaluates the start.
//
// # Reads of the data
//
// Losses of linear models depend on the parameters through margins, which are linear
// in them. [Margins] of an Evaluator keep those of its rows and those of the search
// direction: then one read of the features gives both the margins of the direction and the
// gradient at step 1, every further trial step needs no read but one small AllReduce, and
// an accepted step other than 1 one more read. Without them every trial is a read. Newton's
// method reads second derivatives at the full step, which is nearly always accepted. So an
// iteration takes between 1 and 1.2 reads on average; [Result] has the count.
//
// A [Subspace] tells from a few rows how far to go, before the read: LBFGS first combines
// its direction with the latest steps, by the curvature in the subspace of these, which saves
// a third of the iterations of logistic regression. From 65,536 parameters on it goes along
// its direction alone.
//
// Gradients of shards are buffers as long as the parameters, which are folded up the tree.
// Of sparse rows they would be zeros nearly everywhere, if there are very many features: Fold
// of an Evaluator folds them itself. What subtasks then tell each other goes without its
// zeros while that is smaller, see comqueue.WithoutZeros.
//
// # When it ends
//
// Training ends where the gradient is small (Tol, on by default), where the loss or the
// parameters settle (LossTol, StepTol), at MaxIter, or where no step lowers the loss any
// more, which is the optimum to the precision of the sums; [Reason] says which. Without
// a penalty there may be no optimum, as with classes that a plane separates: parameters
// grow without end and the loss goes to 0. That is told apart as [Diverging]; SGD whose
// steps are too long, and which ends above where it began, as [Overshooting].
//
// Losses with kinks are minimised by smooth approximations of them, in rounds, until the gap to
// a lower bound of the minimum is closed, see [Smoothing] and Settings.GapTol.
//
// Where the loss is infinite or NaN at a step, the step is shortened; if that does not
// help, or it is so at the start, training fails with an error that names the superstep.
//
// # The same bits
//
// Sums over rows are folded up the tree over shards, sums over parameters up that over
// fixed blocks of them, and every subtask makes the same decisions from the same sums. So
// results do not depend on parallelism. Supersteps allocate nothing, but for the record,
// which grows.
//
// # What is kept
//
// From one superstep to the next a minimisation keeps, under keys of package shared: how far it
// has come, parameters and gradient; L-BFGS its pairs and the latest steps, Newton's method
// the matrix, SGD its velocities, squares and means; without a penalty two points that were
// passed; and of the rows what [Snapshot] of the evaluator says. All else is made anew
// by a subtask that finds none of it, so that engine.CheckState changes no bit.
//
// # Very many parameters
//
// From 65,536 parameters on LBFGS, OWLQN and GD split them among subtasks by such blocks,
// which changes no bit: parameters, gradients, direction, penalty and history, 5 +
// 2·(History+1) vectors of which every subtask keeps its share alone. A read of the rows
// gives each the gradient of its own share. What is whole on every subtask is scratch: the
// vector that rows are read with, and the one that their gradient is added up in. SGD, and
// trainings that ask for Information, keep all vectors whole; with GapTol so are the sums of
// the bound.
package optim
