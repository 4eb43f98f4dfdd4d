package optim

import (
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Objective is a sum over rows that is to be minimised. All subtasks of a process use the same
// Objective value.
type Objective interface {
	// Open is called once on each subtask, in the first superstep of the queue or when the
	// subtask joins later. Its result must not depend on the time of the call.
	Open(ctx *comqueue.ComContext) (Evaluator, error)
}

// Evaluator is an objective over the rows of the shards of one subtask. It has functions that
// add up losses and derivatives, and properties of the objective. The first four fields are
// required. Each of the other fields makes a method possible or saves reads of the rows; its
// zero value means that it is absent. A struct of functions must be absent or complete, except
// for fields that are documented as optional. If a field is set without another field that it
// needs, the first superstep fails with an error that names both.
//
// Functions are called on the goroutine of the subtask, one at a time. A shard that is passed
// to a function is owned by the subtask and has rows. The function adds the sums over this
// shard to out, which is zeroed before the call. Functions neither change nor retain their
// other slices. What they add must depend only on their arguments, the rows of the shard, and
// the shard's Snapshot. Results then have the same bits at any parallelism. Functions allocate
// nothing after the first superstep, and their errors name the row. Below, n is Dim, and a read
// is one pass over all features of the rows of the shard.
type Evaluator struct {
	// Dim is the number of parameters, the same on every subtask.
	Dim int
	// Weight is the total weight of the rows of all shards, the same on every subtask.
	Weight float64
	// PenaltyFactors has the n factors of the parameters in the penalty, 0 for a parameter
	// without a penalty. The slice is not modified.
	PenaltyFactors []float64
	// Evaluate adds, at v, Σ weight·loss to out[0] and the gradient of that sum to out[1:1+n].
	// It takes one read.
	Evaluate func(shard int, v, out []float64) error

	// Initial has the n parameters with which training starts if neither Settings nor Problem
	// gives any. It is the same on every subtask; nil means zeros. The slice is copied.
	Initial []float64
	// GradientUnit is the size of a large derivative of the mean loss. It is for losses that
	// have a unit, such as the square of the labels' unit. If it is set, the first gradient is
	// limited to 1000 times GradientUnit in the reference of Settings.Tol. 0 means a unit of 1
	// and no such limit.
	GradientUnit float64
	// NewtonUpTo is the largest number of parameters for which Auto selects Newton if Hessian
	// is set. 0 means 32, and a negative number means never.
	NewtonUpTo int
	// HessianCost is roughly the time of a read with second derivatives divided by the time of
	// a read without them. It is the same on every subtask. If it is set, Auto may change from
	// LBFGS to Newton; 0 means that it does not. It needs Margins.Hessian.
	HessianCost float64
	// NearlyNonsmooth is true if second derivatives may be valid only in a small neighbourhood,
	// as for a loss that is linear except close to its minimum. Then Auto does not select
	// Newton, and LBFGS does not use the latest steps, see Subspace.
	NearlyNonsmooth bool

	// Hessian adds, at v, Σ weight·loss to out[0], the gradient to out[1:1+n], and the lower
	// triangle of the second derivatives, row by row, to out[1+n : 1+n+n(n+1)/2]. It may add a
	// substitute for the second derivatives, such as the Fisher information. It takes one read.
	// Newton and Information need it.
	Hessian func(shard int, v, out []float64) error
	// Margins are for losses that depend on v only through margins that are linear in v. They
	// need Snapshot.
	Margins Margins
	// Subspace estimates from a few rows how far to go. It needs Margins.
	Subspace Subspace
	// Minibatch evaluates some rows of a shard. SGD needs it.
	Minibatch Minibatch
	// Snapshot saves and restores the evaluator's state of a shard between supersteps.
	Snapshot Snapshot
	// Smoothing is for losses with kinks. The other functions then evaluate a smooth
	// approximation. Settings.GapTol needs it, and it needs Snapshot.
	Smoothing Smoothing

	// Fold sums over several shards at once. It is for evaluators that can do so at less cost
	// than with a buffer of 1+n numbers for each shard. If Fold is set on any subtask,
	// Evaluate, Margins.Start, Margins.Direction and Margins.Gradient may get a nil out. They
	// must then store the sums of the shard for Fold. Fold gets 1+n zeros in out. To these it
	// adds the stored sums of those shards that have rows, folded up the tree over shards, with
	// the bits that buffers would give. The shards passed to Fold are the shards of one node of
	// the tree.
	Fold func(shards sharding.Range, out []float64) error
	// Ordered is called once, by all methods but SGD, before any function that takes a vector.
	// The call promises that functions are called in passes over the shards: within a pass,
	// they are called for ascending shards, and a vector changes only between passes. What is
	// computed from a vector can therefore be reused for all shards of a pass.
	Ordered func()
}

// Margins are for the losses of linear models. The margins of a row are numbers that are linear
// in v, and the loss of the row depends on v only through its margins. The functions keep two
// kinds of margins for each row: the margins at the current point, which Start sets and Advance
// moves, and the margins of a search direction, which Direction sets.
type Margins struct {
	// Start sets the margins of the current point to the margins at v, and also does what
	// Evaluate does. It takes one read.
	Start func(shard int, v, out []float64) error
	// Direction sets the margins of the direction p, which has n numbers. It adds loss and
	// gradient at the current point plus step·p, as Evaluate does. It takes one read.
	Direction func(shard int, p []float64, step float64, out []float64) error
	// Trials adds, for each step t = steps[i], values at the current point plus t times the
	// direction: Σ weight·loss to out[2i] and its derivative by t to out[2i+1]. It takes no
	// read.
	Trials func(shard int, steps, out []float64) error
	// Gradient adds loss and gradient at the current point plus step times the direction, as
	// Evaluate does. It takes one read.
	Gradient func(shard int, step float64, out []float64) error
	// Advance moves the current point by step times the direction. It takes no read.
	Advance func(shard int, step float64) error
	// Hessian, which is optional, is true if Start, Direction and Gradient can also add second
	// derivatives. They do so if out has 1+n+n(n+1)/2 numbers, in the layout of
	// Evaluator.Hessian. That function must be set, too. A Newton step that is rejected can
	// then be shortened without a read. If Hessian is false, Newton does not use margins.
	Hessian bool
}

// LatestSteps is the largest number of earlier steps in a Subspace.
const LatestSteps = 3

// Subspace uses a few rows of a shard to estimate how the loss changes in the subspace of a
// search direction and the latest steps of Advance. The choice of these rows depends only on
// the shard. It does not change the margins that Margins keeps.
type Subspace struct {
	// Hessian sets the direction p, which has n numbers. It adds the second derivatives of Σ
	// weight·loss over the chosen rows at the current point. The axes are p and then the latest
	// steps, the most recent step first. latest is the number of steps, at most LatestSteps.
	// With k = 1+latest, the lower triangle goes to out[:k(k+1)/2] row by row, and Σ weight
	// follows it. Advance was called at least latest times since Start.
	Hessian func(shard int, p []float64, latest int, out []float64) error
	// Slopes takes the combination of mix[0] times the direction that Hessian has set and
	// mix[i] times the i-th latest step. For each t = steps[i] along this combination, it adds
	// the derivative by t of Σ weight·loss over the chosen rows to out[i]. It adds Σ weight to
	// out[len(steps)].
	Slopes func(shard int, mix, steps, out []float64) error
}

// Minibatch evaluates some rows of a shard.
type Minibatch struct {
	// Rows returns the number of rows of a shard.
	Rows func(shard int) int
	// Evaluate does what Evaluate of the Evaluator does, for the rows with the given indices.
	// Indices may repeat. It adds the loss of these rows to out[0], the gradient to out[1:1+n],
	// and their weight to out[1+n].
	Evaluate func(shard int, rows []int32, v, out []float64) error
	// Fold, which is optional, evaluates rows of many shards together, for steps that take few
	// rows of each shard. shards are ascending and below one node of the tree over shards. Fold
	// gets 2+n zeros in out. To these it adds the results of Evaluate for the rows of each
	// shard, folded up that tree, with the same bits. Fold may also return false without
	// changing out; Evaluate is then called for each shard.
	Fold func(shards []int, rows [][]int32, v, out []float64) (bool, error)
}

// Snapshot saves and restores the evaluator's state of a shard between supersteps. The state is
// what results depend on and what cannot be recomputed from the parameters with the same bits:
// margins that are summed along steps, or the results of Refine. It is kept with the shard.
// What can be recomputed, such as prepared rows, is not part of it.
type Snapshot struct {
	// Append appends the state of a shard to dst.
	Append func(shard int, dst []byte) ([]byte, error)
	// Restore replaces the state of a shard by the snapshot src. It is called before any other
	// function that takes the shard, and does not retain src.
	Restore func(shard int, src []byte) error
}

// Smoothing has the functions for minimising losses with kinks through smooth approximations.
// If Settings.GapTol is set, training has rounds. Each round minimises the approximation,
// beginning at the result of the previous round. Then Bound and Gap compute by how much the
// objective without approximation exceeds a lower bound of its minimum. If that is too much,
// Refine makes a closer approximation for the next round.
type Smoothing struct {
	// BoundLen is the number of sums of Bound, 1 or more.
	BoundLen int
	// Bound adds, at v, the sums over the shard that Gap needs to out[:BoundLen]. It takes one
	// read.
	Bound func(shard int, v, out []float64) error
	// Gap returns the objective at v, without approximation and with the penalty, and a lower
	// bound of its minimum. sums has the sums of Bound over all shards.
	Gap func(v, sums []float64, l1, l2 float64) (objective, bound float64)
	// Refine makes the approximation of the losses of the shard's rows closer. It is called
	// after Bound. It takes no read.
	Refine func(shard int) error
}
