package optim

import (
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/shared"
)

// Objective is the sum over rows that is minimised. One value serves all subtasks.
type Objective interface {
	// Open is called once on each subtask, in the first superstep of the queue or when the
	// subtask joins later: what it makes must not depend on when.
	Open(ctx *comqueue.ComContext) (Evaluator, error)
}

// Evaluator is an objective over the rows of the shards of one subtask: functions that add up
// losses and derivatives, and facts about them. The first four fields are required. Each of the
// others makes a method possible or saves reads of the rows, and is absent where it is zero. The
// structs of functions are absent or complete, but for what is called optional in them. A field
// that is there without another that it needs is an error of the first superstep, which names
// both.
//
// Functions are called on the goroutine of the subtask, one at a time. Those that take a shard
// get one that the subtask owns and that has rows, and add the part of this shard to out, which
// is zeroed before. They do not change or keep the other slices they are given. What they add
// must follow from their arguments, the rows of the shard and what Snapshot gives of it alone:
// then results have the same bits at any parallelism. They allocate nothing after the first
// superstep, and their errors name the row. Below, n is Dim, and a read is one of all features
// of the rows of the shard.
type Evaluator struct {
	// Dim is the number of parameters, the same on every subtask.
	Dim int
	// Weight is the total weight of the rows of all shards, the same on every subtask.
	Weight float64
	// PenaltyFactors are the n numbers that parameters are multiplied with in the penalty, 0 for
	// one that is not penalised. They are not modified.
	PenaltyFactors []float64
	// Evaluate adds, at v, Σ weight·loss to out[0] and its gradient to out[1:1+n]. One read.
	Evaluate func(shard int, v, out []float64) error

	// Initial are the n parameters to start from where Settings and Problem give none, the same
	// on every subtask; nil means zeros. They are copied, and not held.
	Initial []float64
	// GradientUnit is the size of a derivative of the mean loss that counts as large, for losses
	// that have a unit, such as the square of that of the labels. 0 means 1, and that a first
	// gradient counts whatever its size, where otherwise it counts for 1000 units at most.
	GradientUnit float64
	// NewtonUpTo is up to how many parameters Auto takes Newton, where Hessian is there; 0 means
	// 32, and a negative number that it does not.
	NewtonUpTo int
	// HessianCost is how many times as long a read with second derivatives takes as one without,
	// about, the same on every subtask. With it Auto goes over from LBFGS to Newton where features
	// correlate; 0 means that it does not. It needs Margins.Hessian.
	HessianCost float64
	// NearlyNonsmooth says that second derivatives may hold only near by, as those of a loss that
	// is linear but in a small neighbourhood of its minimum. Then Auto does not take Newton, and
	// LBFGS goes without latest steps, see Subspace.
	NearlyNonsmooth bool

	// Hessian adds, at v, Σ weight·loss to out[0], the gradient to out[1:1+n], and of the second
	// derivatives, or of what stands for them, such as the Fisher information, the lower triangle
	// row by row to out[1+n : 1+n+n(n+1)/2]. One read. Newton and Information need it.
	Hessian func(shard int, v, out []float64) error
	// Margins are for losses that depend on v through margins that are linear in it. They need
	// Snapshot.
	Margins Margins
	// Subspace tells of few rows how far to go. It needs Margins.
	Subspace Subspace
	// Minibatch evaluates some rows of a shard. SGD needs it.
	Minibatch Minibatch
	// Snapshot is for what is kept of the rows of a shard from one superstep to the next.
	Snapshot Snapshot
	// Smoothing is for losses with kinks, of which the other functions evaluate a smooth
	// approximation. Settings.GapTol needs it, and it needs Snapshot.
	Smoothing Smoothing

	// Fold adds up the parts of shards, where that costs less than a buffer of 1+n numbers for
	// each. Where it is set, on some subtasks or on all, Evaluate and, of Margins, Start,
	// Direction and Gradient may get a nil out, which tells them to keep the part of the shard
	// for Fold. It adds to out, 1+n zeros, what the parts kept for those of the shards that have
	// rows come to when they are folded up the tree over shards, with the bits that buffers would
	// have. The shards are those of a node of the tree.
	Fold func(shards shared.Range, out []float64) error
	// Ordered is called once, before any function that takes a vector, by the methods but SGD,
	// which go through shards in passes: those functions are then called for the shards in
	// ascending order, and what is in the vector changes only before a shard that does not lie
	// behind the one before. So what is made of a vector serves all shards of a pass.
	Ordered func()
}

// Margins are of the losses of linear models: numbers of each row that are linear in v, through
// which its loss depends on v. The functions keep for each row the margins at the current
// point, which Start sets and Advance moves, and those of a search direction, which Direction
// sets.
type Margins struct {
	// Start sets the margins of the current point to those at v, and is Evaluate besides. One
	// read.
	Start func(shard int, v, out []float64) error
	// Direction sets the margins of the direction p, n numbers, and adds loss and gradient, as
	// Evaluate does, at the current point plus step·p. One read.
	Direction func(shard int, p []float64, step float64, out []float64) error
	// Trials adds for each step t of a line search, at the current point plus t times the
	// direction, Σ weight·loss to out[2i] and its derivative by t to out[2i+1]. No read.
	Trials func(shard int, steps, out []float64) error
	// Gradient adds loss and gradient, as Evaluate does, at the current point plus step times the
	// direction. One read.
	Gradient func(shard int, step float64, out []float64) error
	// Advance moves the current point by step times the direction. No read.
	Advance func(shard int, step float64) error
	// Hessian says that Start, Direction and Gradient can add second derivatives besides: they do
	// where out has 1+n+n(n+1)/2 numbers, as Hessian of the Evaluator, which it needs. By it a step
	// of Newton that is refused is cut without a read; without, Newton goes without margins. It is
	// optional.
	Hessian bool
}

// LatestSteps is how many steps back a Subspace goes.
const LatestSteps = 3

// Subspace tells of a few rows of a shard, which depend on the shard alone, how the loss
// changes in the subspace of a search direction and the latest steps that Advance of Margins
// has gone. It leaves the margins that Margins keeps as they are.
type Subspace struct {
	// Hessian sets the direction p, n numbers, and adds for it and the latest steps, the latest
	// first and as many as latest says, up to LatestSteps, the second derivatives of Σ weight·loss
	// of these rows at the current point: with k = 1+latest the lower triangle row by row to
	// out[:k(k+1)/2], and Σ weight behind it. Advance was called latest times or more since Start.
	Hessian func(shard int, p []float64, latest int, out []float64) error
	// Slopes adds for each step t along a combination, mix[0] times the direction that Hessian
	// has set and mix[i] times the i-th latest step, the derivative by t of Σ weight·loss of
	// these rows to out[i], and Σ weight to out[len(steps)].
	Slopes func(shard int, mix, steps, out []float64) error
}

// Minibatch evaluates some rows of a shard.
type Minibatch struct {
	// Rows returns the number of rows of a shard.
	Rows func(shard int) int
	// Evaluate is Evaluate of the Evaluator for the rows of the given indices, which may repeat:
	// it adds their loss to out[0], the gradient to out[1:1+n], and their weight to out[1+n].
	Evaluate func(shard int, rows []int32, v, out []float64) error
	// Fold, which is optional, evaluates rows of many shards together, where a step takes few of
	// each. It adds to out, 2+n zeros, what Evaluate gives for some rows of each of some shards,
	// ascending and below one node of the tree over shards, when it is folded up that tree, with
	// the same bits; or it returns false and leaves out as it is.
	Fold func(shards []int, rows [][]int32, v, out []float64) (bool, error)
}

// Snapshot gives and takes what is kept of the rows of a shard from one superstep to the next,
// decides results, and does not follow from the parameters bit by bit: margins that are added
// up along steps, or what Refine of Smoothing made. It is kept with the shard. What can be made
// anew is not part of it, such as rows that were prepared.
type Snapshot struct {
	// Append appends what is kept of a shard, as it is between supersteps, to dst.
	Append func(shard int, dst []byte) ([]byte, error)
	// Restore makes what is kept of a shard that of a snapshot. It is called before any other
	// function that takes the shard, and does not keep src.
	Restore func(shard int, src []byte) error
}

// Smoothing is what smooth approximations of losses with kinks have besides. Where
// Settings.GapTol asks for it, training goes in rounds: each minimises the approximation, from
// where the last one ended, then Bound and Gap tell how far the parameters are from the minimum
// of the losses themselves, and if that is too far Refine makes a closer approximation for the
// next.
type Smoothing struct {
	// BoundLen is the number of sums of Bound, 1 or more.
	BoundLen int
	// Bound adds what Gap needs of the shard, at v, to out[:BoundLen]. One read.
	Bound func(shard int, v, out []float64) error
	// Gap returns the objective itself at v, penalty included, and a lower bound of its minimum,
	// from the sums of Bound over all shards.
	Gap func(v, sums []float64, l1, l2 float64) (objective, bound float64)
	// Refine makes the approximation of the losses of the shard's rows a closer one, after Bound.
	// No read.
	Refine func(shard int) error
}
