package optim

import (
	"math"

	"github.com/superstep-ml/superstep/comqueue"
)

// Where nothing penalises the parameters there may be no optimum: with classes that a plane
// separates, or that only rows in the plane keep from being separated, the loss falls
// along some direction for ever, ever more slowly, and the gradient becomes as small as
// one likes. It shows in the way that training took: near an optimum the gradient falls
// in proportion to how far it still is, and the loss along the way is a parabola; towards
// one that does not exist the parameters go as far again each time the gradient falls by
// another factor, and the loss dies away. Then the gradient is read once more, ten times
// farther along that way than where a parabola would have turned. If it still points
// onwards, there is no end to it.
//
// Newton's method near an optimum makes the gradient vanish with its last step. Where it only
// becomes a part of what it was, training goes on for some steps, and then the gradient is read
// ten such steps farther on: down a tail of exponentials each goes as far as the one before.

const (
	// apart is by what factor the gradient fell, at least, on the way that is looked at.
	apart = 30
	// fallen is the part of the first gradient below which losses are too alike to compare.
	fallen = 1e-9
	// longWay is how long the way is at least, beside the largest parameter.
	longWay = 0.05
	// parabola is what part of that along a parabola the loss falls at least near an optimum.
	parabola = 0.9
	// lingering is by what factor the last step of Newton's method makes the gradient smaller
	// at least near an optimum.
	lingering = 100
	// mostLingering is how many iterations training goes on for then.
	mostLingering = 6
	// onwards is how many times as far the gradient is read.
	onwards = 10
	// overshot is the part of the way by which it is farther where it has no turn ahead.
	overshot = 0.1
	// standing is the largest relative change of a parameter, in the last step, that may be one
	// of rounding.
	standing = 1e-6
)

// landmark is a point that training has passed, and mark is what else is known of it.
type landmark struct{ v, gradient []float64 }
type mark struct{ Loss, Norm float64 }

// pass keeps the point that the iteration arrived at, if the gradient fell enough since the
// one that was kept last. Two are kept: the gradient may have fallen by little since the
// later one.
func (w *work) pass() {
	s := w.state
	if !w.watches || w.failed || s.GradientNorm < fallen*s.FirstNorm || w.Marks > 0 && s.GradientNorm*apart > w.Passed[w.Later].Norm {
		return
	}
	w.Later, w.Marks = 1-w.Later, min(w.Marks+1, len(w.Passed))
	copy(w.passed[w.Later].v, w.v)
	copy(w.passed[w.Later].gradient, w.gradient)
	w.Passed[w.Later] = mark{s.Loss, s.GradientNorm}
}

// farBack returns which is the last point passed with a gradient much larger than now, or the
// first.
func (w *work) farBack() int {
	if w.Marks == len(w.Passed) && w.Passed[w.Later].Norm < apart*w.state.GradientNorm {
		return 1 - w.Later
	}
	return w.Later
}

// addDivergenceCheck adds the stages that look beyond the end, where there is no penalty.
func (d descent) addDivergenceCheck(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue {
	if !d.problem.Settings.free() {
		return q
	}
	stages := append([]comqueue.Stage{d.gathered(d.spreads, d.offerWay)}, d.reads()...)
	stages = append(stages, comqueue.Named("doubt", comqueue.Do(d.doubt)), d.decisions())
	return q.
		Add(comqueue.Named("look back", comqueue.Do(d.lookBack))).
		Add(d.decisions()).
		Add(comqueue.While(1, d.doubts, stages...))
}

// free says that nothing holds the parameters.
func (s Settings) free() bool { return s.L1 == 0 && s.L2 == 0 && s.GapTol == 0 }

// lookBack has the gradient read beyond the point where training ended, if the way there
// is not that to an optimum.
func (d descent) lookBack(ctx *comqueue.ComContext) error {
	w := working.Get(ctx)
	s := w.state
	if !w.watches || !s.Done || s.Iteration == 0 || s.Reason == MaxIterations || s.Reason == Diverging {
		return nil
	}
	if w.lingers() {
		w.readOn(onwards * w.step)
		return nil
	}
	from := &w.passed[w.farBack()]
	for i, v := range w.v {
		w.direction[i] = v - from.v[i]
	}
	return wrap(ctx, w.consider(pathBack))
}

// lookedBack takes the slopes at the beginning and the end of the way, and how long it is.
func (w *work) lookedBack(before, after, length float64) {
	s, from := w.state, &w.Passed[w.farBack()]
	turn := -after / (after - before)
	if !(before < 0) || !finite(turn) || length < longWay*s.Size || from.Loss-s.Loss >= -parabola/2*(before+after) {
		return
	}
	if turn > 0 {
		w.readOn(onwards * turn)
	} else {
		w.readOn(overshot) // the last step went a little too far, and the slope is one of it
	}
}

// lingers says that the last step was one of Newton's method that left much of the gradient.
func (w *work) lingers() bool {
	r := w.state.Record
	last := len(r) - 1
	return w.newton() && last > 0 && r[last].Step > 0 && w.latest > standing && r[last-1].GradientNorm < lingering*r[last].GradientNorm
}

// goOn has training go on for a while where the last step left much of the gradient.
func (w *work) goOn() {
	s := w.state
	if w.watches && s.Done && s.Reason == GradientSmall && s.Iteration < w.set.MaxIter && w.Extra < mostLingering && w.lingers() {
		w.Extra++
		s.Done, s.Reason = false, ""
	}
}

// readOn has the gradient read at a step farther along the direction.
func (w *work) readOn(step float64) {
	w.point = make([]float64, len(w.v))
	for i, p := range w.direction {
		w.point[i] = w.v[i] + float64(step*p)
	}
	w.doubting, w.asks, w.stale = true, pointBeyondEnd, true
}

// doubts says that the gradient is to be read beyond the end.
func (d descent) doubts(ctx *comqueue.ComContext) (bool, error) {
	return working.Get(ctx).doubting, nil
}

// doubt takes what was read there.
func (d descent) doubt(ctx *comqueue.ComContext) error {
	w := working.Get(ctx)
	w.doubting = false
	copy(w.next, w.taken(ctx))
	return wrap(ctx, w.consider(readBeyondEnd))
}

// doubted tells that training diverges if the loss still falls beyond the end.
func (w *work) doubted(loss, slope float64) {
	s := w.state
	s.Reads++
	s.Record[len(s.Record)-1].Reads++
	if slope < 0 && loss/w.Weight <= s.Loss+float64(rounding*math.Abs(s.Loss)) {
		s.end(Diverging)
	}
}
