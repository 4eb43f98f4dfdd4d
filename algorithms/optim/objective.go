package optim

import (
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Objective is a sum over rows to be minimised. One value serves all subtasks.
type Objective interface {
	// Open is called once on each subtask, in the first superstep of the queue or when the
	// subtask joins later. Its result must not depend on the time of the call.
	Open(ctx *comqueue.ComContext) (Evaluator, error)
}

// Evaluator is an objective over the rows of the shards of one subtask: functions that add up
// losses and derivatives, and facts about them. The first four fields are required. Each of the
// others makes a method possible or saves reads of the rows; the zero value means that it is
// absent. A struct of functions must be absent or complete, except for parts that are called
// optional. If a field lacks another field that it needs, the first superstep fails with an
// error that names both.
//
// Functions are called on the goroutine of the subtask, one at a time. A function that takes a
// shard gets one that the subtask owns and that has rows. It adds the part of this shard to
// out, which is zeroed before. Functions do not change or keep their other slices. What they
// add must depend only on their arguments, the rows of the shard, and its Snapshot. Results
// then have the same bits at any parallelism. They allocate nothing after the first superstep,
// and their errors name the row. Below, n is Dim, and a read is one pass over all features of
// the rows of the shard.
type Evaluator struct {
	// Dim is the number of parameters, the same on every subtask.
	Dim int
	// Weight is the total weight of the rows of all shards, the same on every subtask.
	Weight float64
	// PenaltyFactors are the n factors of the parameters in the penalty, 0 for a parameter
	// without a penalty. They are not modified.
	PenaltyFactors []float64
	// Evaluate adds, at v, Σ weight·loss to out[0] and its gradient to out[1:1+n]. One read.
	Evaluate func(shard int, v, out []float64) error

	// Initial are the n first parameters if neither Settings nor Problem gives any, the same on
	// every subtask; nil means zeros. They are copied.
	Initial []float64
	// GradientUnit is the size of a large derivative of the mean loss. It is for losses that
	// have a unit, such as the square of the labels' unit. 0 means 1. Then a first gradient
	// counts whatever its size; otherwise it counts for at most 1000 units.
	GradientUnit float64
	// NewtonUpTo is the largest number of parameters for which Auto takes Newton, if there is a
	// Hessian. 0 means 32, and a negative number means never.
	NewtonUpTo int
	// HessianCost is roughly how many times as long a read with second derivatives takes as one
	// without, the same on every subtask. With it, Auto changes from LBFGS to Newton if
	// features correlate; 0 means that it does not change. It needs Margins.Hessian.
	HessianCost float64
	// NearlyNonsmooth says that second derivatives may be valid only near by, as for a loss
	// that is linear except in a small neighbourhood of its minimum. Then Auto does not take
	// Newton, and LBFGS does not use the latest steps, see Subspace.
	NearlyNonsmooth bool

	// Hessian adds, at v, Σ weight·loss to out[0], the gradient to out[1:1+n], and the lower
	// triangle of the second derivatives, row by row, to out[1+n : 1+n+n(n+1)/2]. A substitute
	// for the second derivatives will do, such as the Fisher information. One read. Newton and
	// Information need it.
	Hessian func(shard int, v, out []float64) error
	// Margins are for losses that depend on v only through margins that are linear in v. They
	// need Snapshot.
	Margins Margins
	// Subspace estimates from a few rows how far to go. It needs Margins.
	Subspace Subspace
	// Minibatch evaluates some rows of a shard. SGD needs it.
	Minibatch Minibatch
	// Snapshot saves and restores what is kept of the rows of a shard from one superstep to the
	// next.
	Snapshot Snapshot
	// Smoothing is for losses with kinks. The other functions then evaluate a smooth
	// approximation. Settings.GapTol needs it, and it needs Snapshot.
	Smoothing Smoothing

	// Fold sums the parts of shards, if that costs less than a buffer of 1+n numbers for each.
	// If it is set, on some subtasks or on all, Evaluate and, of Margins, Start, Direction and
	// Gradient may get a nil out. They must then keep the part of the shard for Fold. Fold gets
	// out with 1+n zeros. It adds the kept parts of those of the shards that have rows, folded
	// up the tree over shards, with the bits that buffers would give. The shards are those of a
	// node of the tree.
	Fold func(shards sharding.Range, out []float64) error
	// Ordered is called once, by all methods but SGD, before any function that takes a vector.
	// These methods make passes over the shards: within a pass, functions are called for
	// ascending shards, and a vector changes only between passes. What is computed from a
	// vector therefore serves all shards of a pass.
	Ordered func()
}

// Margins are for the losses of linear models. The margins of a row are numbers that are linear
// in v, and its loss depends on v only through them. The functions keep two kinds of margins
// for each row: those at the current point, which Start sets and Advance moves, and those of a
// search direction, which Direction sets.
type Margins struct {
	// Start sets the margins of the current point to those at v, and also does what Evaluate
	// does. One read.
	Start func(shard int, v, out []float64) error
	// Direction sets the margins of the direction p, n numbers. It adds loss and gradient, as
	// Evaluate does, at the current point plus step·p. One read.
	Direction func(shard int, p []float64, step float64, out []float64) error
	// Trials adds, for each step t of a line search, the values at the current point plus t
	// times the direction: Σ weight·loss to out[2i] and its derivative by t to out[2i+1]. No
	// read.
	Trials func(shard int, steps, out []float64) error
	// Gradient adds loss and gradient, as Evaluate does, at the current point plus step times the
	// direction. One read.
	Gradient func(shard int, step float64, out []float64) error
	// Advance moves the current point by step times the direction. No read.
	Advance func(shard int, step float64) error
	// Hessian says that Start, Direction and Gradient can also add second derivatives. They do
	// so if out has 1+n+n(n+1)/2 numbers, like Hessian of the Evaluator, which must be set. A
	// Newton step that is refused can then be shortened without a read. Otherwise Newton does
	// not use margins. It is optional.
	Hessian bool
}

// LatestSteps is the largest number of earlier steps in a Subspace.
const LatestSteps = 3

// Subspace uses a few rows of a shard, which must depend on the shard alone. It tells how the
// loss changes in the subspace of a search direction and the latest steps of Advance. It does
// not change the margins that Margins keeps.
type Subspace struct {
	// Hessian sets the direction p, n numbers. It adds the second derivatives of Σ weight·loss
	// of these rows at the current point, in p and the latest steps, the last one first. latest
	// is the number of steps, at most LatestSteps. With k = 1+latest, the lower triangle goes
	// to out[:k(k+1)/2] row by row, and Σ weight follows it. Advance was called at least latest
	// times since Start.
	Hessian func(shard int, p []float64, latest int, out []float64) error
	// Slopes takes a combination of mix[0] times the direction that Hessian has set and mix[i]
	// times the i-th latest step. For each step t along it, it adds the derivative by t of Σ
	// weight·loss of these rows to out[i]. It adds Σ weight to out[len(steps)].
	Slopes func(shard int, mix, steps, out []float64) error
}

// Minibatch evaluates some rows of a shard.
type Minibatch struct {
	// Rows returns the number of rows of a shard.
	Rows func(shard int) int
	// Evaluate is Evaluate of the Evaluator for the rows with the given indices, which may
	// repeat. It adds their loss to out[0], the gradient to out[1:1+n], and their weight to
	// out[1+n].
	Evaluate func(shard int, rows []int32, v, out []float64) error
	// Fold, which is optional, evaluates rows of many shards together, if a step takes few rows
	// of each. shards are ascending and below one node of the tree over shards. Fold adds to
	// out, 2+n zeros, the results of Evaluate for the rows of each shard, folded up that tree,
	// with the same bits. Or it returns false and does not change out.
	Fold func(shards []int, rows [][]int32, v, out []float64) (bool, error)
}

// Snapshot saves and restores what is kept of the rows of a shard from one superstep to the
// next. That is what decides results and does not follow from the parameters bit by bit:
// margins that are summed along steps, or the results of Refine. It is kept with the shard.
// What can be made anew, such as prepared rows, is not part of it.
type Snapshot struct {
	// Append appends what is kept of a shard between supersteps to dst.
	Append func(shard int, dst []byte) ([]byte, error)
	// Restore replaces what is kept of a shard by a snapshot. It is called before any other
	// function that takes the shard, and does not keep src.
	Restore func(shard int, src []byte) error
}

// Smoothing has what smooth approximations of losses with kinks need. If Settings.GapTol is
// set, training has rounds. Each round minimises the approximation, from where the last one
// ended. Then Bound and Gap tell how far the parameters are from the minimum of the losses
// themselves. If that is too far, Refine makes a closer approximation for the next round.
type Smoothing struct {
	// BoundLen is the number of sums of Bound, 1 or more.
	BoundLen int
	// Bound adds what Gap needs of the shard, at v, to out[:BoundLen]. One read.
	Bound func(shard int, v, out []float64) error
	// Gap returns the objective itself at v, penalty included, and a lower bound of its
	// minimum. sums are the sums of Bound over all shards.
	Gap func(v, sums []float64, l1, l2 float64) (objective, bound float64)
	// Refine makes the approximation of the losses of the shard's rows closer. It is called
	// after Bound. No read.
	Refine func(shard int) error
}
