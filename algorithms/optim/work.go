package optim

import (
	"fmt"
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/shared"
)

// work is what a subtask has of a minimisation by descent. Vectors are of the blocks of
// parameters that it keeps, see split.go; all else is the same on every subtask.
type work struct {
	*training
	own    shared.Range // blocks kept here
	lo, hi int          // parameters of these
	stale  bool         // what rows are to be read with is not yet whole
	tally  tally
	moves  []float64 // by block kept here, the largest relative change of a parameter
	limit  float64   // of steps along the direction

	gradient  []float64 // of the smooth part of F, at v
	next      []float64 // ... at the point read last
	pseudo    []float64 // what directions are made of: the gradient, with L1 the pseudo-gradient
	direction []float64
	point     []float64 // parameters of the point to read, where margins are not cached

	history *history // of LBFGS and OWLQN
	factor  *cholesky
	changing

	starting bool // the superstep evaluates v, from which a round begins
	bounding bool // a round has ended in this superstep
	watches  bool // the way is looked at in the end
	passed   [2]landmark
	extra    int     // iterations that training went on for, see goOn
	latest   float64 // the largest relative change of a parameter in the last step
	doubting bool    // the gradient is read beyond the end
	again    bool    // the superstep began another round
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
	theStart  asked = iota // loss and gradient at the first parameters
	thePoint               // ... at point
	theRay                 // ... along a new direction, whose margins are set
	theStep                // ... at a step along it
	theBeyond              // ... at point, beyond the end
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
		training: base,
		steps:    make([]float64, p.Settings.Trials), starting: true, gap: math.Inf(1), watches: p.Settings.free(),
	}
	if w.state.Method == Auto {
		w.pick(ctx, p)
	}
	from := d.splitFrom
	if from == 0 {
		from = widely
	}
	// Second derivatives take much more than what splitting saves.
	matrix := w.state.Method == Newton || p.Settings.Information
	w.divide(ctx, n >= from && !matrix && ctx.NumTask() > 1)
	kept := len(w.v)
	w.gradient, w.next, w.direction = make([]float64, kept), make([]float64, kept), make([]float64, kept)
	w.pseudo = w.gradient
	if p.Settings.L1 > 0 {
		w.pseudo = make([]float64, kept)
	}
	if steady, ok := w.Evaluator.(SteadyEvaluator); ok {
		steady.Steady() // a stage goes through the shards, and between stages vectors change
	}
	w.advance = func(shard int) error { return w.linear.Advance(shard, w.step) }
	w.keep = func(shard int) error { return w.readShard(shard, nil) }
	w.held = func(i int) bool { return w.penalised(i) && w.v[i] == 0 && w.pseudo[i] == 0 }
	w.steepest = w.state.Method != Newton
	length := 1 + n
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
		w.history = newHistory(&w.space, w.own, p.Settings.History, w.state.Method == OWLQN)
	}
	if w.linear == nil {
		w.point = make([]float64, kept)
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
		if rough, _ := w.Evaluator.(RoughEvaluator); w.state.Method == LBFGS && n < from && !(rough != nil && rough.Rough()) {
			w.pacing.prepare(&w.space)
		}
	}
	probes.Put(ctx, nil)
	reading.Put(ctx, make([]float64, length))
	trials.Put(ctx, make([]float64, 2*len(w.steps)))
	ownSums.Put(ctx, nil)
	allSums.Put(ctx, nil)
	ownPart.Put(ctx, nil)
	return nil
}

// fewParameters is up to how many Auto takes Newton's method where a FewEvaluator does not say. It needs about half as many
// reads as LBFGS to come within 1e-6 of the optimum; of 50 dense parameters a read of
// second derivatives takes three to four times as long as one of gradients.
const fewParameters = 32

// pick makes Auto a method.
func (w *work) pick(ctx *comqueue.ComContext, p Problem) {
	w.state.Method = LBFGS
	few := fewParameters
	if f, ok := w.Evaluator.(FewEvaluator); ok {
		few = f.Few()
	}
	if rough, _ := w.Evaluator.(RoughEvaluator); w.curved == nil || rough != nil && rough.Rough() {
		return
	}
	if w.n <= few {
		w.state.Method = Newton
		return
	}
	w.changing.plan(ctx, p, w.evaluation)
}

// readShard evaluates a shard as asked.
func (w *work) readShard(shard int, out []float64) error {
	if w.asks == theBeyond {
		if out != nil {
			out = out[:1+w.n] // no second derivatives are asked for
		}
		return w.Evaluate(shard, w.entire(w.point), out)
	}
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
		return w.linear.Along(shard, w.entire(w.direction), w.step, out)
	case theStep:
		return w.linear.Gradient(shard, w.step, out)
	case theStart, thePoint:
		at := w.entire(w.v)
		if w.asks == thePoint {
			at = w.entire(w.point)
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
