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
	// leastReduction is the least factor by which the gradient fell along the path that is
	// examined.
	leastReduction = 30
	// negligibleNorm is the fraction of the first gradient below which losses differ too little
	// to compare.
	negligibleNorm = 1e-9
	// leastPathLength is the least length of the path, relative to the largest parameter.
	leastPathLength = 0.05
	// quadraticFall is the least fraction of a parabola's fall by which the loss falls near an
	// optimum.
	quadraticFall = 0.9
	// newtonReduction is the least factor by which the last step of Newton's method reduces the
	// gradient near an optimum.
	newtonReduction = 100
	// mostExtraIterations is how many iterations training continues if the reduction is smaller.
	mostExtraIterations = 6
	// extrapolation is the factor of the distance at which the gradient is read.
	extrapolation = 10
	// shortExtrapolation is the fraction of the path by which the read goes farther if no
	// minimum lies ahead.
	shortExtrapolation = 0.1
	// roundingChange is the largest relative change of a parameter in the last step that may be
	// due to rounding.
	roundingChange = 1e-6
)

// pathPoint is a point of the path of training, and pathNorm has its loss and gradient norm.
type pathPoint struct{ v, gradient []float64 }
type pathNorm struct{ Loss, Norm float64 }

// extendPath keeps the current point if the gradient fell enough since the last point that was
// kept. Two points are kept, as the gradient may have fallen only a little since the later one.
func (w *work) extendPath() {
	s := w.state
	if !w.examinesPath || w.failed || s.GradientNorm < negligibleNorm*s.FirstNorm || w.PathPoints > 0 && s.GradientNorm*leastReduction > w.PathNorms[w.LatestPoint].Norm {
		return
	}
	w.LatestPoint, w.PathPoints = 1-w.LatestPoint, min(w.PathPoints+1, len(w.PathNorms))
	copy(w.path[w.LatestPoint].v, w.v)
	copy(w.path[w.LatestPoint].gradient, w.gradient)
	w.PathNorms[w.LatestPoint] = pathNorm{s.Loss, s.GradientNorm}
}

// pathStart returns the index of the last kept point with a gradient much larger than the current
// one, or of the first point.
func (w *work) pathStart() int {
	if w.PathPoints == len(w.PathNorms) && w.PathNorms[w.LatestPoint].Norm < leastReduction*w.state.GradientNorm {
		return 1 - w.LatestPoint
	}
	return w.LatestPoint
}

// addDivergenceCheck adds the stages that read beyond the end, if there is no penalty.
func (d descent) addDivergenceCheck(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue {
	if !d.problem.Settings.free() {
		return q
	}
	stages := append([]comqueue.Stage{d.gatherIf(d.gathersReadVector, d.offerReadVector)}, d.reads()...)
	stages = append(stages, comqueue.Named("divergence", comqueue.Do(d.checkDivergence)), d.decisions())
	return q.
		Add(comqueue.Named("examine path", comqueue.Do(d.examinePath))).
		Add(d.decisions()).
		Add(comqueue.While(1, d.readsBeyondEnd, stages...))
}

// free says that no penalty holds the parameters.
func (s Settings) free() bool { return s.L1 == 0 && s.L2 == 0 && s.GapTol == 0 }

// examinePath has the gradient read beyond the end of training, unless the path looks like one to
// an optimum.
func (d descent) examinePath(ctx *comqueue.ComContext) error {
	w := working.Get(ctx)
	s := w.state
	if !w.examinesPath || !s.Done || s.Iteration == 0 || s.Reason == MaxIterations || s.Reason == Diverging {
		return nil
	}
	if w.reducedTooLittle() {
		w.extrapolate(extrapolation * w.step)
		return nil
	}
	from := &w.path[w.pathStart()]
	for i, v := range w.v {
		w.direction[i] = v - from.v[i]
	}
	return wrap(ctx, w.consider(pathExamined))
}

// judgePath takes the slopes at the beginning and the end of the path, and its length.
func (w *work) judgePath(before, after, length float64) {
	s, from := w.state, &w.PathNorms[w.pathStart()]
	turn := -after / (after - before)
	if !(before < 0) || !finite(turn) || length < leastPathLength*s.Size || from.Loss-s.Loss >= -quadraticFall/2*(before+after) {
		return
	}
	if turn > 0 {
		w.extrapolate(extrapolation * turn)
	} else {
		w.extrapolate(shortExtrapolation) // the last step went a little too far, which explains the slope
	}
}

// reducedTooLittle says that the last step was one of Newton's method and reduced the gradient
// too little.
func (w *work) reducedTooLittle() bool {
	r := w.state.Record
	last := len(r) - 1
	return w.newton() && last > 0 && r[last].Step > 0 && w.latest > roundingChange && r[last-1].GradientNorm < newtonReduction*r[last].GradientNorm
}

// continueTraining continues training for a while if the last step reduced the gradient too
// little.
func (w *work) continueTraining() {
	s := w.state
	if w.examinesPath && s.Done && s.Reason == GradientSmall && s.Iteration < w.set.MaxIter && w.ExtraIterations < mostExtraIterations && w.reducedTooLittle() {
		w.ExtraIterations++
		s.Done, s.Reason = false, ""
	}
}

// extrapolate has the gradient read at a step beyond the end, along the direction.
func (w *work) extrapolate(step float64) {
	w.point = make([]float64, len(w.v))
	for i, p := range w.direction {
		w.point[i] = w.v[i] + float64(step*p)
	}
	w.readingBeyondEnd, w.readKind, w.stale = true, readPointBeyondEnd, true
}

// readsBeyondEnd says that the gradient is to be read beyond the end.
func (d descent) readsBeyondEnd(ctx *comqueue.ComContext) (bool, error) {
	return working.Get(ctx).readingBeyondEnd, nil
}

// checkDivergence takes the result of that read.
func (d descent) checkDivergence(ctx *comqueue.ComContext) error {
	w := working.Get(ctx)
	w.readingBeyondEnd = false
	copy(w.next, w.readResult(ctx))
	return wrap(ctx, w.consider(readBeyondEnd))
}

// detectDivergence records that training diverges if the loss still falls beyond the end.
func (w *work) detectDivergence(loss, slope float64) {
	s := w.state
	s.Reads++
	s.Record[len(s.Record)-1].Reads++
	if slope < 0 && loss/w.Weight <= s.Loss+float64(rounding*math.Abs(s.Loss)) {
		s.end(Diverging)
	}
}
