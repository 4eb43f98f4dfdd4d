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

// Evaluator has the rows of the shards of one subtask, and belongs to its goroutine.
// Its methods that take a shard add the part of that shard, which the subtask owns and
// which has rows, to out; out is zeroed before. They allocate nothing after the first
// superstep. What they return as an error names the row.
type Evaluator interface {
	// Len returns the number of parameters, the same on every subtask.
	Len() int
	// Weight returns the total weight of the rows of all shards.
	Weight() float64
	// Factors returns what each parameter is multiplied with in the penalty, 0 where it
	// is not penalised. It must not be modified.
	Factors() []float64
	// Evaluate adds Σ weight·loss to out[0] and its gradient to out[1:], with one read of
	// the rows.
	Evaluate(shard int, v, out []float64) error
}

// FoldingEvaluator is an Evaluator that can fold the parts of shards itself, where that
// costs less than a buffer of all parameters for each shard. If it Folds, its methods that
// give loss and gradient are called with a nil out, which tells them to keep the part of
// the shard for Fold.
type FoldingEvaluator interface {
	Evaluator
	// Folds reports whether parts are to be folded by Fold. It may differ among subtasks.
	Folds() bool
	// Fold adds to out, which is zeroed, what the parts kept for those of the shards that
	// have rows come to when they are folded up the tree over shards, with the bits that
	// buffers would have. The shards are those of a node of the tree.
	Fold(shards shared.Range, out []float64) error
}

// SteadyEvaluator is an Evaluator that can prepare for parameters, or a direction, once for
// all shards of the subtask.
type SteadyEvaluator interface {
	Evaluator
	// Steady says that from now on the methods that take a vector are called for the shards
	// in ascending order, and that what is in the vector changes only before a shard that
	// does not lie behind the one before it.
	Steady()
}

// LinearEvaluator is an Evaluator whose losses depend on v through margins that are
// linear in it. It keeps, for each row, the margins at the current point m, set by
// Start and moved by Advance, and those of a direction q, set by Along. The former go on from
// one superstep to the next: it is a SnapshotEvaluator as well.
type LinearEvaluator interface {
	Evaluator
	// Start sets the margins to those at v, and is Evaluate besides. One read.
	Start(shard int, v, out []float64) error
	// Along sets the margins of the direction p, and adds loss and gradient, as Evaluate
	// does, at the current point plus step·p. One read.
	Along(shard int, p []float64, step float64, out []float64) error
	// Trials adds for each step t, at the current point plus t·direction, Σ weight·loss to
	// out[2i] and its derivative by t to out[2i+1]. No read.
	Trials(shard int, steps, out []float64) error
	// Gradient adds loss and gradient, as Evaluate does, at the current point plus step
	// times the direction. One read.
	Gradient(shard int, step float64, out []float64) error
	// Advance moves the current point by step times the direction. No read.
	Advance(shard int, step float64) error
}

// SnapshotEvaluator is an Evaluator that keeps something of the rows of a shard from one
// superstep to the next which decides results and does not follow from the parameters bit by
// bit: margins that are added up along steps, as a LinearEvaluator has them, or what Tighten of a
// StagedEvaluator made. It is kept with the shard. What can be made anew is not part of it,
// such as rows that were prepared. Other evaluators keep nothing.
type SnapshotEvaluator interface {
	Evaluator
	// AppendSnapshot appends what is kept of a shard, as it is between supersteps.
	AppendSnapshot(shard int, dst []byte) ([]byte, error)
	// RestoreSnapshot makes what is kept of a shard that of a snapshot. It is called before
	// any other method that takes the shard, and does not keep src.
	RestoreSnapshot(shard int, src []byte) error
}

// LatestSteps is how many steps back the plane of a ProbingEvaluator goes.
const LatestSteps = 3

// ProbingEvaluator is a LinearEvaluator that can tell from a few rows of a shard, which
// depend on the shard alone, how the loss changes along a direction, and in the plane of it
// and of the latest steps that Advance has gone. The margins of the direction that Along
// has set stay as they are.
type ProbingEvaluator interface {
	LinearEvaluator
	// Bend sets the direction p, and adds for it and the latest steps, the latest first and
	// as many as past says, the second derivatives of Σ weight·loss of these rows at the
	// current point: the lower triangle row by row, and Σ weight behind it.
	Bend(shard int, p []float64, past int, out []float64) error
	// Probe adds for each step t along a mixture, of mix[0] times the direction that Bend
	// has set and mix[i] times the i-th latest step, the derivative by t of Σ weight·loss
	// of these rows to out[i], and Σ weight to out[len(steps)].
	Probe(shard int, mix, steps, out []float64) error
}

// StagedEvaluator is an Evaluator whose losses are a smooth stand-in for others that have
// kinks. Where Settings.GapTol asks for it, training goes in rounds: each minimises the
// stand-in, from where the last one ended, then Bound and Gap tell how far the parameters
// are from the minimum that is meant, and Tighten makes a better stand-in for the next.
type StagedEvaluator interface {
	Evaluator
	// BoundLen returns the length of the sums of Bound.
	BoundLen() int
	// Bound adds what Gap needs of the shard to out. One read.
	Bound(shard int, v, out []float64) error
	// Gap returns the objective that is meant at v, penalty included, and a lower bound of
	// its minimum, from the sums of Bound over all shards.
	Gap(v, sums []float64, l1, l2 float64) (objective, bound float64)
	// Tighten makes the stand-in of the shard's rows a better one, after Bound. No read.
	Tighten(shard int) error
}

// BeginningEvaluator is an Evaluator that knows better parameters to start from than
// zeros, where Settings and Problem give none.
type BeginningEvaluator interface {
	Evaluator
	// Begin puts them in v, which is zeroed.
	Begin(v []float64)
}

// RoughEvaluator is a CurvedEvaluator whose second derivatives may hold only near by, as
// those of a loss that is linear but in a small neighbourhood of its minimum. Where it is
// Rough, Auto does not take Newton.
type RoughEvaluator interface {
	CurvedEvaluator
	Rough() bool
}

// FewEvaluator is a CurvedEvaluator that knows up to how many parameters Auto is to take
// Newton; for others 32 is presumed.
type FewEvaluator interface {
	CurvedEvaluator
	Few() int
}

// PricedEvaluator is a CurvedLinearEvaluator that knows how many times as long a read with
// second derivatives takes as one without, about, the same on every subtask. With it Auto
// goes over from LBFGS to Newton where features correlate.
type PricedEvaluator interface {
	CurvedLinearEvaluator
	HessianPrice() float64
}

// UnitEvaluator is an Evaluator whose losses have a unit, such as the square of that of
// the labels. GradientUnit returns the size of a derivative of the mean loss that counts
// as large; that of other evaluators is 1.
type UnitEvaluator interface {
	Evaluator
	GradientUnit() float64
}

// CurvedEvaluator is an Evaluator that knows second derivatives, or what stands for
// them, such as the Fisher information.
type CurvedEvaluator interface {
	Evaluator
	// Hessian adds, at v, Σ weight·loss to out[0], the gradient to out[1:1+n], and the
	// lower triangle of the matrix of second derivatives, row by row, to
	// out[1+n : 1+n+n(n+1)/2], with n = Len(). One read.
	Hessian(shard int, v, out []float64) error
}

// CurvedLinearEvaluator is a LinearEvaluator that finds second derivatives by the margins
// it keeps. With it a step of Newton that is refused is cut without a read.
type CurvedLinearEvaluator interface {
	LinearEvaluator
	CurvedEvaluator
	// StartHessian, AlongHessian and StepHessian are Start, Along and Gradient that add what
	// Hessian adds. One read each.
	StartHessian(shard int, v, out []float64) error
	AlongHessian(shard int, p []float64, step float64, out []float64) error
	StepHessian(shard int, step float64, out []float64) error
}

// SampledEvaluator is an Evaluator that evaluates some rows of a shard alone.
type SampledEvaluator interface {
	Evaluator
	// Rows returns the number of rows of a shard.
	Rows(shard int) int
	// EvaluateRows is Evaluate for the rows of the given indices, which may repeat; out[0]
	// gets their loss, out[1:1+n] the gradient, and out[1+n] their weight.
	EvaluateRows(shard int, rows []int32, v, out []float64) error
}

// FoldingSampledEvaluator is a SampledEvaluator that can evaluate some rows of many
// shards together, where a step takes few of each.
type FoldingSampledEvaluator interface {
	SampledEvaluator
	// FoldRows adds to out, which is zeroed, what EvaluateRows gives for some rows of each
	// of some shards, ascending and below one node of the tree over shards, when it is
	// folded up that tree, with the same bits; or it returns false and leaves out as it is.
	FoldRows(shards []int, rows [][]int32, v, out []float64) (bool, error)
}
