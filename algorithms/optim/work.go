package optim

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/comqueue"
)

// work is the state of a minimisation by descent on a subtask. Vectors have only the blocks of
// parameters that the subtask keeps, see split.go. Everything else is the same on every
// subtask. The descent state and the first group of fields are kept between supersteps, see
// kept.go. The other fields are derived from them or set up again in each superstep.
type work struct {
	*training
	*descentState
	ownBlocks

	gradient []float64 // gradient of the smooth part of F, at v
	path     [2]pathPoint
	history  *history // for LBFGS and OWLQN

	next      []float64 // the gradient at the last point read
	pseudo    []float64 // the vector from which directions are made: the gradient, or with L1 the pseudo-gradient
	direction []float64
	point     []float64 // parameters of the point to read, if margins are not cached

	vectorChanged bool // whether the vector with which rows are read has changed since it was gathered
	pending       blockSums
	moves         []float64 // for each block of the subtask, the largest relative change of a parameter
	limit         float64   // largest step along the direction

	factor           *cholesky
	boundDue         bool    // whether a round has ended in this superstep
	examinesPath     bool    // whether the path is examined when training ends
	latestChange     float64 // the largest relative change of a parameter in the last step
	readingBeyondEnd bool    // whether the gradient is read beyond the last point
	roundBegun       bool    // whether the superstep began another round
	endReason        Reason
	readKind         readKind
	step             float64 // the step that is requested or accepted
	line             line
	search           search
	steps            []float64 // steps to be tried next
	trialsDue        bool      // whether steps are to be tried without a read
	accepted         bool      // whether the point that is being read has already been accepted
	searchDone       bool
	failed           bool    // whether no step was found
	losses           float64 // mean loss at the last point read
	reads            float64 // number of reads in this superstep

	probing probing
	probes  []float64 // buffer for probes

	sums       []float64 // sums of the bound over all shards
	advance    func(shard int) error
	keepPart   func(shard int) error // makes an evaluator that has Fold store the sums of a shard
	heldAtZero func(i int) bool      // reports whether parameter i is 0 and stays 0 in this iteration
}

// readKind is what the next read of the rows computes.
type readKind int

const (
	readStart          readKind = iota // loss and gradient at the first parameters
	readPoint                          // loss and gradient at point
	readDirection                      // loss and gradient along a new direction, whose margins are set
	readStep                           // loss and gradient at another step along the same direction
	readPointBeyondEnd                 // loss and gradient at point, beyond the last point of training
	noRead
)

// prepare opens the objective and sets up the objects that the supersteps use.
func (d descent) prepare(ctx *comqueue.ComContext) error {
	p := d.problem
	base, err := p.begin(ctx)
	if err != nil {
		return err
	}
	n := base.Dim
	w := &work{training: base, steps: make([]float64, p.Settings.Trials), examinesPath: p.Settings.unpenalised()}
	if w.joined {
		w.descentState = descentKey.Get(ctx)
		w.settings.Tol = w.Tol
	} else {
		w.descentState = &descentState{Starting: true, Gap: math.Inf(1), Tol: w.settings.Tol}
		descentKey.Put(ctx, w.descentState)
		if w.state.Method == Auto {
			w.chooseMethod(ctx, p)
		}
		w.Steepest = w.state.Method != Newton
	}
	from := d.splitFrom
	if from == 0 {
		from = splitFromDefault
	}
	// Parameters are not split if there is a matrix of second derivatives, because the matrix
	// takes much more memory than splitting saves.
	matrix := w.state.Method == Newton || p.Settings.Information
	w.splitParameters(ctx, n >= from && !matrix)
	kept := len(w.v)
	w.gradient = w.recall(ctx, latestGradient, w.local)
	w.next, w.direction = make([]float64, kept), make([]float64, kept)
	if p.Settings.L1 > 0 {
		w.pseudo = make([]float64, kept)
	}
	w.derivePseudo()
	for i := range w.path {
		if w.examinesPath {
			w.path[i] = pathPoint{w.recall(ctx, pathVectors[i], w.local), w.recall(ctx, pathGradients[i], w.local)}
		}
	}
	if w.Ordered != nil {
		w.Ordered() // a stage calls ascending shards, and vectors change only between stages
	}
	w.advance = func(shard int) error { return w.Margins.Advance(shard, w.step) }
	w.keepPart = func(shard int) error { return w.readShard(shard, nil) }
	w.heldAtZero = func(i int) bool { return w.penalised(i) && w.v[i] == 0 && w.pseudo[i] == 0 }
	w.probing.ring = &w.Steps
	reading.Put(ctx, make([]float64, 1+n))
	switch w.state.Method {
	case Newton:
		if w.Hessian == nil {
			return fmt.Errorf("the objective has no Hessian, which Newton needs: use LBFGS")
		}
		if err := p.allowMatrix(ctx.Shards().Len(), n); err != nil {
			return err
		}
		w.readMatrices(ctx)
		if !w.Margins.Hessian {
			w.Margins, w.Subspace = Margins{}, Subspace{}
		}
	case LBFGS, OWLQN:
		w.history = newHistory(&w.space, w.own, p.Settings.History, w.state.Method == OWLQN, &w.Pairs)
		w.history.pairs = w.recall(ctx, pairVectors, w.history.pairRange)
		if w.MatrixPending {
			w.readMatrices(ctx)
		}
	}
	if !w.keepsMargins() {
		w.point = make([]float64, kept)
	}
	workOf.Put(ctx, w)
	if p.Settings.GapTol > 0 {
		bounds.Put(ctx, nil)
		w.sums = make([]float64, w.Smoothing.BoundLen)
	}
	if w.Subspace.Hessian != nil {
		w.probes = make([]float64, len(farSteps)+1)
		if w.state.Method == LBFGS && n < from && !w.NearlyNonsmooth {
			w.probing.prepare(&w.space, recall(ctx, latestSteps, LatestSteps*n))
		}
	}
	probes.Put(ctx, nil)
	trials.Put(ctx, make([]float64, 2*len(w.steps)))
	ownSums.Put(ctx, nil)
	allSums.Put(ctx, nil)
	ownPart.Put(ctx, nil)
	return nil
}

// fewParameters is the largest number of parameters for which Auto selects Newton's method,
// unless the evaluator sets NewtonUpTo. Newton's method needs about half as many reads as LBFGS
// to come within 1e-6 of the optimum. With 50 dense parameters, a read with second derivatives
// takes three to four times as long as a read without them.
const fewParameters = 32

// chooseMethod replaces Auto by Newton or LBFGS.
func (w *work) chooseMethod(ctx *comqueue.ComContext, p Problem) {
	w.state.Method = LBFGS
	upTo := w.NewtonUpTo
	if upTo == 0 {
		upTo = fewParameters
	}
	switch {
	case w.Hessian == nil || w.NearlyNonsmooth:
	case w.Dim <= upTo:
		w.state.Method = Newton
	default:
		w.planNewton(ctx, p, &w.Evaluator)
	}
}

// readShard evaluates a shard as readKind requests, with second derivatives if out is long
// enough for them.
func (w *work) readShard(shard int, out []float64) error {
	switch w.readKind {
	case readPointBeyondEnd: // second derivatives are not needed beyond the end
		return w.Evaluate(shard, w.full(w.point), out[:min(len(out), 1+w.Dim)])
	case readDirection:
		return w.Margins.Direction(shard, w.full(w.direction), w.step, out)
	case readStep:
		return w.Margins.Gradient(shard, w.step, out)
	case readStart, readPoint:
		at := w.full(w.v)
		if w.readKind == readPoint {
			at = w.full(w.point)
		}
		switch {
		case w.keepsMargins():
			return w.Margins.Start(shard, at, out)
		case w.factor != nil:
			return w.Hessian(shard, at, out)
		}
		return w.Evaluate(shard, at, out)
	}
	return nil
}
