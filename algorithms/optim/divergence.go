package optim

import (
	"math"

	"github.com/superstep-ml/superstep/comqueue"
)

// Without a penalty on the parameters there may be no optimum. Classes may be separable by a
// plane, or almost separable, with only rows within the plane preventing it. The loss then
// falls along some direction for ever, more and more slowly, and the gradient becomes
// arbitrarily small. The path of training shows it. Near an optimum, the gradient falls in
// proportion to the distance that is left, and the loss along the path is a parabola. Without
// an optimum, the parameters go the same distance again each time the gradient falls by another
// factor, and the fall of the loss dies out. In that case the gradient is read once more, ten
// times farther along the path than the minimum of a parabola. If it still points onwards,
// there is no optimum.
//
// Near an optimum, the last step of Newton's method makes the gradient vanish. If the gradient
// only becomes smaller by a factor, training continues for some steps, and then the gradient is
// read ten such steps farther on: along an exponential tail, each step goes as far as the one
// before.

const (
	// apart is the least factor by which the gradient fell along the path that is examined.
	apart = 30
	// fallen is the fraction of the first gradient below which losses differ too little to
	// compare.
	fallen = 1e-9
	// longWay is the least length of the path, relative to the largest parameter.
	longWay = 0.05
	// parabola is the least fraction of a parabola's fall by which the loss falls near an
	// optimum.
	parabola = 0.9
	// lingering is the least factor by which the last step of Newton's method reduces the
	// gradient near an optimum.
	lingering = 100
	// mostLingering is how many iterations training continues if the reduction is smaller.
	mostLingering = 6
	// onwards is the factor of the distance at which the gradient is read.
	onwards = 10
	// overshot is the fraction of the path by which the read goes farther if no minimum lies
	// ahead.
	overshot = 0.1
	// standing is the largest relative change of a parameter in the last step that may be due
	// to rounding.
	standing = 1e-6
)

// landmark is a point of the path of training, and mark has its loss and gradient norm.
type landmark struct{ v, gradient []float64 }
type mark struct{ Loss, Norm float64 }

// pass keeps the current point if the gradient fell enough since the last point that was kept.
// Two points are kept, as the gradient may have fallen only a little since the later one.
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

// farBack returns the index of the last kept point with a gradient much larger than the current
// one, or of the first point.
func (w *work) farBack() int {
	if w.Marks == len(w.Passed) && w.Passed[w.Later].Norm < apart*w.state.GradientNorm {
		return 1 - w.Later
	}
	return w.Later
}

// addDivergenceCheck adds the stages that read beyond the end, if there is no penalty.
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

// free says that no penalty holds the parameters.
func (s Settings) free() bool { return s.L1 == 0 && s.L2 == 0 && s.GapTol == 0 }

// lookBack has the gradient read beyond the end of training, unless the path looks like one to
// an optimum.
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

// lookedBack takes the slopes at the beginning and the end of the path, and its length.
func (w *work) lookedBack(before, after, length float64) {
	s, from := w.state, &w.Passed[w.farBack()]
	turn := -after / (after - before)
	if !(before < 0) || !finite(turn) || length < longWay*s.Size || from.Loss-s.Loss >= -parabola/2*(before+after) {
		return
	}
	if turn > 0 {
		w.readOn(onwards * turn)
	} else {
		w.readOn(overshot) // the last step went a little too far, which explains the slope
	}
}

// lingers says that the last step was one of Newton's method and reduced the gradient too
// little.
func (w *work) lingers() bool {
	r := w.state.Record
	last := len(r) - 1
	return w.newton() && last > 0 && r[last].Step > 0 && w.latest > standing && r[last-1].GradientNorm < lingering*r[last].GradientNorm
}

// goOn continues training for a while if the last step reduced the gradient too little.
func (w *work) goOn() {
	s := w.state
	if w.watches && s.Done && s.Reason == GradientSmall && s.Iteration < w.set.MaxIter && w.Extra < mostLingering && w.lingers() {
		w.Extra++
		s.Done, s.Reason = false, ""
	}
}

// readOn has the gradient read at a step beyond the end, along the direction.
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

// doubt takes the result of that read.
func (d descent) doubt(ctx *comqueue.ComContext) error {
	w := working.Get(ctx)
	w.doubting = false
	copy(w.next, w.taken(ctx))
	return wrap(ctx, w.consider(readBeyondEnd))
}

// doubted records that training diverges if the loss still falls beyond the end.
func (w *work) doubted(loss, slope float64) {
	s := w.state
	s.Reads++
	s.Record[len(s.Record)-1].Reads++
	if slope < 0 && loss/w.Weight <= s.Loss+float64(rounding*math.Abs(s.Loss)) {
		s.end(Diverging)
	}
}
