// Package optim minimises sums over partitioned rows: gradient descent, stochastic
// gradient descent, L-BFGS, OWL-QN and Newton's method, each a queue of compute and
// AllReduce stages.
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
// # Reads of the data
//
// Losses of linear models depend on the parameters through margins, which are linear
// in them. An [Evaluator] that is a [LinearEvaluator] keeps the margins of its rows
// and those of the search direction: then one read of the features gives both the
// margins of the direction and the gradient at step 1, every further trial step needs
// no read, and an accepted step other than 1 one more.
package optim
