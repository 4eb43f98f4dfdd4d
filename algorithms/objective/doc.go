// Package objective is the losses of linear models, and how they are evaluated on
// rows: squared, logistic, softmax, hinge, squared hinge, epsilon-insensitive, Huber,
// quantile, Poisson, gamma, Tweedie, perceptron, and accelerated failure time. A [Linear]
// of a loss and checked rows is an objective for package optim:
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
// A loss is a function of a row's label and its margins, which are linear in the
// parameters: one for most losses, one for each class for [Softmax]; [AFT] has a second
// that is a constant. It gives value, first and second derivatives for a block of rows at
// a time, so that exponentials and logarithms are those of the kernels. A loss in a file
// of its own is all that a new one takes.
//
// # Scaling
//
// Optimisers see features of spread 1, whose objective is better conditioned; the data
// stay as they are. With σ and μ the deviations and means of the features, parameters v
// mean the coefficients β = v/σ and the intercept v₀ − Σ β·μ, margins are products of rows
// and β, and of the sums G = Σ slope·x and S = Σ slope the gradient is (G − μ·S)/σ. Sparse
// rows are not centred, as that would fill them. Centring by the intercept subtracts
// numbers that may be large: a feature loses as many digits as its mean is deviations
// away from 0.
//
// # Passes
//
// Rows are gone through in chunks of about 24 KB, which stay in the cache from the product
// that gives the margins, through the loss, to the sum that gives the gradient: the
// features come from memory once. Every sum begins at the first row of a shard and goes
// through its rows in order, so that chunks change no bit. Evaluate costs 2·d+O(1)
// multiplications a row, Hessian d²/2 more, Trials none that grow with d; 2·K numbers are
// held for each row once a line search needs its margins, K being the margins of a row.
//
// From one superstep to the next half of these are kept, 8·K bytes a row: margins are added up
// along steps, which parameters do not give again bit by bit. So are those of the latest
// steps of the rows that are probed, 24·K bytes for each of some 4096/K in all, and the multipliers
// of a Smooth loss, 8 bytes a row. Rows as they were prepared
// are made again.
//
// # Very many features
//
// Where sparse rows of a shard have few of the features, it has numbers of its own for
// those: then a pass costs what the entries cost, whatever the number of parameters, and
// the sums of a subtask's shards are folded column by column, over the shards that have
// the column, with the bits that buffers of all parameters give.
//
// # Kinks
//
// [Hinge], [EpsilonInsensitive] and [Quantile] are piecewise linear. Their objectives give
// subgradients, with which SGD comes near the minimum; to reach it, minimise a [Smooth] of
// them with Settings.GapTol of package optim: in a few rounds, after each of which the duality
// gap is computed.
package objective
