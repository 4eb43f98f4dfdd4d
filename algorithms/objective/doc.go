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
// Most losses have one margin; [Softmax] has one for each class; [AFT] has a second one that is
// a constant. A loss computes values, first and second derivatives for a block of rows at a
// time, so that it can use the exponentials and logarithms of the kernels. A new loss takes
// only a file of its own.
//
// # Scaling
//
// Optimisers see features of spread 1, whose objective is better conditioned. The data are not
// changed. With the deviations σ and means μ of the features, parameters v stand for the
// coefficients β = v/σ and the intercept v₀ − Σ β·μ. Margins are products of rows and β. From
// the sums G = Σ slope·x and S = Σ slope, the gradient is (G − μ·S)/σ. Sparse rows are not
// centred, as that would make them dense. Centring through the intercept subtracts numbers that
// may be large: a feature loses as many digits as the ratio of its mean to its deviation has.
//
// # Passes
//
// Rows are processed in chunks of about 24 KB. A chunk stays in the cache from the product that
// gives the margins, through the loss, to the sum that gives the gradient, so that features are
// read from memory only once. Every sum begins at the first row of a shard and takes its rows
// in order, so that chunks change no bit. Evaluate costs 2·d+O(1) multiplications per row,
// Hessian d²/2 more, and Trials none that grow with d. Once a line search needs margins, 2·K
// numbers are kept for each row, where K is the number of margins of a row.
//
// Half of these are kept from one superstep to the next, 8·K bytes per row: margins are summed
// along steps, and computing them from the parameters would not give the same bits. Also kept
// are the margins of the latest steps for the rows that are probed, 24·K bytes for each of some
// 4096/K rows in all, and the multipliers of a Smooth loss, 8 bytes per row. Prepared rows are
// made again.
//
// # Very many features
//
// If the sparse rows of a shard have few of the features, the shard has its own numbers for
// these features. A pass then costs what the entries cost, whatever the number of parameters.
// The sums of a subtask's shards are folded column by column, over the shards that have the
// column, with the bits that buffers of all parameters would give.
//
// # Kinks
//
// [Hinge], [EpsilonInsensitive] and [Quantile] are piecewise linear. Their objectives give
// subgradients, with which SGD comes near the minimum. To reach the minimum, minimise a
// [Smooth] of them with Settings.GapTol of package optim. That takes a few rounds, and the
// duality gap is computed after each.
package objective
