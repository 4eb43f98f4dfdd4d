// Package objective has the losses of linear models, and evaluates them on rows: squared,
// logistic, softmax, hinge, squared hinge, epsilon-insensitive, Huber, quantile, Poisson,
// gamma, Tweedie, perceptron, and accelerated failure time. A [Linear] with a loss and checked
// rows is an objective for package optim:
//
//	table, err := rows.Check("train", points, rows.Columns{Vector: "features", Label: "y"}, rows.ClassLabel)
//	linear := objective.Linear{Table: table, Loss: objective.Logistic{}}
//	model := optim.Minimize(b, optim.Problem{
//		Name: "train", Init: table.Init, Objective: linear, Settings: optim.Settings{L2: 0.01},
//		Closer: comqueue.Output(func(ctx *comqueue.ComContext) ([]row, error) {
//			facts, err := table.FactsOf(ctx)
//			...
//			coefficients, err := linear.Coefficients(facts, optim.ResultOf(ctx).Parameters)
//			...
//		}),
//	})
//
// # Losses
//
// A loss is a function of a row's label and its margins, which are linear in the parameters.
// Most losses have one margin; [Softmax] has one for each class; [AFT] has a second margin that
// is the same parameter for all rows. A loss computes values, first and second derivatives for
// a block of rows at a time, so that it can use the exponentials and logarithms of the kernels.
// A new loss needs only one new file.
//
// # Scaling
//
// Optimisers work with features scaled to standard deviation 1, for which the objective is
// better conditioned. The data are not changed. With the deviations σ and means μ of the
// features, parameters v correspond to the coefficients β = v/σ and the intercept v₀ − Σ β·μ.
// Margins are products of rows and β. From the sums G = Σ slope·x and S = Σ slope, the gradient
// is (G − μ·S)/σ. Sparse rows are not centred, as that would make them dense. Centring through
// the intercept subtracts numbers that may be large: for a feature whose mean is 10^n times its
// deviation, n digits are lost.
//
// # Passes
//
// Rows are processed in chunks of about 24 KB. A chunk stays in the cache while margins, losses
// and gradient are computed, so that features are read from memory only once. Every sum begins
// at the first row of a shard and adds its rows in order, so that the size of chunks changes no
// bit. Evaluate costs 2·d+O(1) multiplications per row, Hessian d²/2 more, and the cost of
// Trials does not depend on d. From the first call of Start on, 2·K numbers are kept for each
// row, where K is the number of margins of a row.
//
// The margins at the current point, half of these numbers, are also kept between supersteps,
// 8·K bytes per row. They are summed along steps, and computing them from the parameters would
// not give the same bits. Also kept are the margins of the latest steps for the rows that are
// probed, 24·K bytes for each of some 4096/K rows in all, and the multipliers of a Smooth loss,
// 8 bytes per row. Prepared rows are not kept; they are prepared again.
//
// # Very many features
//
// If the sparse rows of a shard contain only few of the features, the shard numbers these
// features itself. The cost of a pass then depends on the number of entries, not on the number
// of parameters. The sums of a subtask's shards are folded column by column, over the shards
// that have the column, with the bits that buffers of all parameters would give.
//
// # Kinks
//
// [Hinge], [EpsilonInsensitive] and [Quantile] are piecewise linear. Their derivatives are
// subgradients, with which SGD comes near the minimum. To reach the minimum, minimise a
// [Smooth] of the loss with Settings.GapTol of package optim. That takes a few rounds, and the
// duality gap is computed after each round.
package objective
