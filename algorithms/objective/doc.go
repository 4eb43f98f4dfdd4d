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
// Most losses have one margin; [Softmax] has one for each class; [AFT] has a second margin,
// which is the same for all rows and is itself a parameter. A loss computes values, first and
// second derivatives for a block of rows at a time, so that it can use the exponentials and
// logarithms of the kernels. A new loss needs only one new file.
//
// # Scaling
//
// Optimisers work with features scaled to standard deviation 1, for which the objective is
// better conditioned. The data are not changed. With the deviations σ and means μ of the
// features, parameters v correspond to the coefficients β = v/σ and the intercept v₀ − Σ β·μ.
// Margins are products of rows and β. From the sums G = Σ slope·x and S = Σ slope, the gradient
// is (G − μ·S)/σ. Sparse rows are not centred, as that would make them dense. Dense rows are
// centred by correcting the intercept and the gradient. This subtracts numbers that may be
// large: for a feature whose mean is 10^n times its deviation, n digits are lost.
//
// # Passes
//
// Rows are processed in chunks of about 24 KB. A chunk stays in the cache while margins, losses
// and gradient are computed, so that features are read from memory only once. Every sum begins
// at the first row of a shard and adds its rows in order, so that the size of chunks does not
// change any bit of the results. Evaluate costs 2·d+O(1) multiplications per row, Hessian d²/2
// more, and the cost of Trials does not depend on d. From the first call of Start on, 2·K
// numbers are stored for each row, where K is the number of margins of a row: the margins at
// the current point, and the margins of the direction.
//
// Some of the stored numbers belong to the state of the optimiser, which must survive from one
// superstep to the next and is part of checkpoints. They are: the margins at the current point,
// with 8·K bytes per row; the margins of the latest steps for probed rows, on which package
// optim estimates curvatures, with 24·K bytes for each of about 4096/K rows in all; and the
// multipliers of a Smooth loss, with 8 bytes per row. The margins are sums over steps, so
// computing them from the parameters would not give the same bits. Prepared rows do not belong
// to the state; they are prepared again.
//
// # Very many features
//
// If the sparse rows of a subtask's shards contain, on average, only few of the features, each
// shard has its own numbering of its features. The cost of a pass then depends on the number of
// entries, not on the number of parameters. The sums of a subtask's shards are added column by
// column, over the shards that have the column. They have the same bits as if every shard had a
// buffer for all parameters.
//
// # Kinks
//
// [Hinge], [EpsilonInsensitive] and [Quantile] are piecewise linear. Their derivatives are
// subgradients, with which SGD comes near the minimum. To reach the minimum, minimise a
// [Smooth] of the loss with Settings.GapTol of package optim. That takes a few rounds, and the
// duality gap is computed after each round.
package objective
