package optim

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/comqueue"
)

// work is what a subtask has of a minimisation by descent. All of it but the blocks of a
// split history is the same on every subtask.
type work struct {
	*training

	gradient  []float64 // of the smooth part of F, at v
	next      []float64 // ... at the point read last
	pseudo    []float64 // what directions are made of: the gradient, with L1 the pseudo-gradient
	direction []float64
	point     []float64 // parameters of the point to read, where margins are not cached

	history     *history // of LBFGS and OWLQN
	factor      *cholesky
	split       bool // the history is split among subtasks
	first, last int  // parameters whose direction is made here

	starting bool // the superstep evaluates v, from which a round begins
	bounding bool // a round has ended in this superstep
	watches  bool // the way is looked at in the end
	passed   [2]landmark
	doubting bool // the gradient is read beyond the end
	ended    Reason
	rounds   int
	gap      float64 // of the round before
	steepest bool    // the direction of this superstep is the negative (pseudo-)gradient
	asks     asked
	step     float64 // that is asked for, or accepted
	line     line
	search   search
	steps    []float64 // to try next
	trialing bool      // they are to be tried
	final    bool      // the point that is read was accepted already
	settled  bool
	failed   bool    // no step was found
	losses   float64 // mean loss at the point read last
	reads    float64 // of this superstep

	pacing pacing
	probes []float64 // room for what is probed

	lastStep, lastSlope float64   // of the iteration before, for GD
	sums                []float64 // of bounds
	advance             func(shard int) error
	keep                func(shard int) error // has a folding evaluator keep the part of a shard
	held                func(i int) bool      // parameters that are 0 and stay so in this iteration
}

// asked is what the reads of a superstep are asked for.
type asked int

const (
	theStart asked = iota // loss and gradient at the first parameters
	thePoint              // ... at point
	theRay                // ... along a new direction, whose margins are set
	theStep               // ... at a step along it
	nothing
)

// prepare opens the objective and makes what the supersteps use.
func (d descent) prepare(ctx *comqueue.ComContext) error {
	p := d.problem
	base, err := p.begin(ctx)
	if err != nil {
		return err
	}
	n := base.n
	w := &work{
		training: base, gradient: make([]float64, n), next: make([]float64, n), direction: make([]float64, n),
		steps: make([]float64, p.Settings.Trials), starting: true, gap: math.Inf(1), watches: p.Settings.free(),
	}
	if w.state.Method == Auto {
		w.state.Method = LBFGS
		if rough, _ := w.Evaluator.(RoughEvaluator); w.curved != nil && n <= fewParameters && !(rough != nil && rough.Rough()) {
			w.state.Method = Newton
		}
	}
	w.pseudo = w.gradient
	if p.Settings.L1 > 0 {
		w.pseudo = make([]float64, n)
	}
	w.advance = func(shard int) error { return w.linear.Advance(shard, w.step) }
	w.keep = func(shard int) error { return w.readShard(shard, nil) }
	w.held = func(i int) bool { return w.penalised(i) && w.v[i] == 0 && w.pseudo[i] == 0 }
	w.steepest = w.state.Method != Newton
	length := 1 + n
	own := ctx.Shards()
	switch w.state.Method {
	case Newton:
		if w.curved == nil {
			return fmt.Errorf("the objective has no second derivatives, which Newton needs: use LBFGS")
		}
		if err := p.allowMatrix(ctx, n); err != nil {
			return err
		}
		length += triangle(n)
		w.factor = newCholesky(n, ctx.NumTask(), ctx.TaskID() == 0)
		if w.both == nil {
			w.linear = nil
		}
	case LBFGS, OWLQN:
		from := d.splitFrom
		if from == 0 {
			from = widely
		}
		if w.split = ctx.NumTask() > 1 && n >= from; !w.split {
			own.Lo, own.Hi = 0, ctx.TotalShards()
		}
		w.history = newHistory(&w.space, w.space.own(own), p.Settings.History, w.state.Method == OWLQN)
		w.first, w.last = w.space.at(w.history.own.Lo).Lo, w.space.at(w.history.own.Hi).Lo
	}
	if w.linear == nil {
		w.point = make([]float64, n)
	}
	working.Put(ctx, w)
	if p.Settings.GapTol > 0 {
		bounds.Put(ctx, nil)
		w.sums = make([]float64, w.staged.BoundLen())
	}
	if w.linear == nil {
		w.probing = nil
	}
	if w.probing != nil {
		w.probes = make([]float64, len(farPaces)+1)
		if rough, _ := w.Evaluator.(RoughEvaluator); w.state.Method == LBFGS && n < widely && !(rough != nil && rough.Rough()) {
			w.pacing.prepare(n)
		}
	}
	probes.Put(ctx, nil)
	beyond.Put(ctx, nil)
	reading.Put(ctx, make([]float64, length))
	trials.Put(ctx, make([]float64, 2*len(w.steps)))
	ownSums.Put(ctx, nil)
	allSums.Put(ctx, nil)
	ownPart.Put(ctx, nil)
	whole.Put(ctx, nil)
	return nil
}

// fewParameters is up to how many Auto takes Newton's method. It needs about half as many
// reads as LBFGS to come within 1e-6 of the optimum; of 50 dense parameters a read of
// second derivatives takes three to four times as long as one of gradients.
const fewParameters = 32

// readShard evaluates a shard as asked.
func (w *work) readShard(shard int, out []float64) error {
	if w.factor != nil && w.linear != nil {
		switch w.asks {
		case theStart:
			return w.both.StartHessian(shard, w.v, out)
		case theRay:
			return w.both.AlongHessian(shard, w.direction, w.step, out)
		case theStep:
			return w.both.StepHessian(shard, w.step, out)
		}
		return nil
	}
	switch w.asks {
	case theRay:
		return w.linear.Along(shard, w.direction, w.step, out)
	case theStep:
		return w.linear.Gradient(shard, w.step, out)
	case theStart, thePoint:
		at := w.v
		if w.asks == thePoint {
			at = w.point
		}
		switch {
		case w.factor != nil:
			return w.curved.Hessian(shard, at, out)
		case w.linear != nil:
			return w.linear.Start(shard, at, out)
		}
		return w.Evaluate(shard, at, out)
	}
	return nil
}
