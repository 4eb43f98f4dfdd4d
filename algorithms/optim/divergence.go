package optim

import (
	"math"

	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// Without a penalty on the parameters there may be no optimum. Classes may be separable by a
// plane, or separable except for rows that lie in the plane. The loss then falls along some
// direction for ever, more and more slowly, and the gradient becomes arbitrarily small. The
// path of training shows whether there is an optimum. Near an optimum, the gradient is
// proportional to the remaining distance, and the loss along the path is a parabola. Without an
// optimum, each reduction of the gradient by the same factor takes the parameters the same
// distance further, and the loss along the path falls like an exponential tail. If the path
// looks as if there were no optimum, the gradient is read once more, ten times as far along the
// path as the minimum of a parabola would be. If the loss still falls at that point, there is
// no optimum.
//
// The path of Newton's method is examined differently. Near an optimum, the last step of
// Newton's method makes the gradient vanish. If the last step reduced the gradient only by a
// moderate factor, training continues for some steps. Then the gradient is read at ten times
// the length of the last step beyond the last point: along an exponential tail, all steps have
// about the same length.

const (
	// minReduction is the least factor by which the gradient must have fallen along the path
	// that is examined.
	minReduction = 30
	// negligibleNorm is a fraction of the first gradient. Where the gradient is smaller, losses
	// differ too little to be compared.
	negligibleNorm = 1e-9
	// minPathLength is the least length of the path, relative to the largest parameter.
	minPathLength = 0.05
	// quadraticFall is a fraction of the fall of a parabola with the same slopes. Near an
	// optimum, the loss falls by at least this fraction.
	quadraticFall = 0.9
	// newtonReduction is the least factor by which the last step of Newton's method reduces the
	// gradient near an optimum.
	newtonReduction = 100
	// maxExtraIterations bounds the iterations that are added if the last step reduced the
	// gradient by less than newtonReduction.
	maxExtraIterations = 6
	// extrapolation is the distance at which the gradient is read, relative to the distance at
	// which a parabola would have its minimum.
	extrapolation = 10
	// shortExtrapolation is the distance beyond the last point at which the gradient is read if
	// the slope shows no minimum ahead. It is a fraction of the length of the path.
	shortExtrapolation = 0.1
	// roundingChange is the largest relative change of a parameter in the last step that may be
	// due to rounding.
	roundingChange = 1e-6
)

// pathPoint is a point of the path of training. pathNorm has the loss and the gradient norm at
// such a point.
type pathPoint struct{ v, gradient []float64 }
type pathNorm struct{ Loss, Norm float64 }

// extendPath stores the current point if the gradient fell enough since the last stored point.
// The latest two points are kept, because the gradient may have fallen only a little since the
// second of them was stored.
func (w *work) extendPath() {
	s := w.state
	if !w.examinesPath || w.failed || s.GradientNorm < negligibleNorm*s.FirstNorm || w.PathPoints > 0 && s.GradientNorm*minReduction > w.PathNorms[w.LatestPoint].Norm {
		return
	}
	w.LatestPoint, w.PathPoints = 1-w.LatestPoint, min(w.PathPoints+1, len(w.PathNorms))
	copy(w.path[w.LatestPoint].v, w.v)
	copy(w.path[w.LatestPoint].gradient, w.gradient)
	w.PathNorms[w.LatestPoint] = pathNorm{s.Loss, s.GradientNorm}
}

// pathStart returns the index of the latest stored point with a gradient much larger than the
// current gradient. If there is none, it returns the index of the older point.
func (w *work) pathStart() int {
	if w.PathPoints == len(w.PathNorms) && w.PathNorms[w.LatestPoint].Norm < minReduction*w.state.GradientNorm {
		return 1 - w.LatestPoint
	}
	return w.LatestPoint
}

// addDivergenceCheck adds the stages that read beyond the last point, if there is no penalty.
func (d descent) addDivergenceCheck(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue {
	if !d.problem.Settings.unpenalised() {
		return q
	}
	stages := append([]comqueue.Stage{d.gatherIf(d.gathersReadVector, d.offerReadVector)}, d.reads()...)
	stages = append(stages, comqueue.Named("divergence", comqueue.Do(d.checkDivergence)), d.decisions())
	return q.
		Add(comqueue.Named("examine path", comqueue.Do(d.examinePath))).
		Add(d.decisions()).
		Add(comqueue.While(1, d.readsBeyondEnd, stages...))
}

// unpenalised reports whether there is no penalty on the parameters, nor a GapTol.
func (s Settings) unpenalised() bool { return s.L1 == 0 && s.L2 == 0 && s.GapTol == 0 }

// examinePath requests a read beyond the last point when training has ended, unless the path
// looks like a path to an optimum.
func (d descent) examinePath(ctx *comqueue.ComContext) error {
	w := workOf.Get(ctx)
	s := w.state
	if !w.examinesPath || !s.Done || s.Iteration == 0 || s.Reason == MaxIterations || s.Reason == Diverging {
		return nil
	}
	if w.reducedTooLittle() {
		w.extrapolate(extrapolation * w.step)
		return nil
	}
	start := &w.path[w.pathStart()]
	for i, v := range w.v {
		w.direction[i] = v - start.v[i]
	}
	return wrap(ctx, w.requestDecision(pathExamined))
}

// judgePath takes the slopes at the first and the last point of the path, and its length. It
// requests a read beyond the last point unless the path is short, or looks like a parabola.
func (w *work) judgePath(firstSlope, lastSlope, length float64) {
	s, start := w.state, &w.PathNorms[w.pathStart()]
	minimum := -lastSlope / (lastSlope - firstSlope)
	if !(firstSlope < 0) || !kernel.Finite(minimum) || length < minPathLength*s.Size || start.Loss-s.Loss >= -quadraticFall/2*(firstSlope+lastSlope) {
		return
	}
	if minimum > 0 {
		w.extrapolate(extrapolation * minimum)
	} else {
		w.extrapolate(shortExtrapolation) // the last step went slightly too far, which explains a slope of 0 or more
	}
}

// reducedTooLittle reports whether the last step was a step of Newton's method and reduced the
// gradient by less than newtonReduction.
func (w *work) reducedTooLittle() bool {
	r := w.state.Record
	last := len(r) - 1
	return w.newton() && last > 0 && r[last].Step > 0 && w.latestChange > roundingChange && r[last-1].GradientNorm < newtonReduction*r[last].GradientNorm
}

// continueTraining continues training for up to maxExtraIterations if the last step reduced
// the gradient too little.
func (w *work) continueTraining() {
	s := w.state
	if w.examinesPath && s.Done && s.Reason == GradientSmall && s.Iteration < w.settings.MaxIter && w.ExtraIterations < maxExtraIterations && w.reducedTooLittle() {
		w.ExtraIterations++
		s.Done, s.Reason = false, ""
	}
}

// extrapolate requests a read of the gradient at the current point plus step times the
// direction.
func (w *work) extrapolate(step float64) {
	w.point = make([]float64, len(w.v))
	for i, p := range w.direction {
		w.point[i] = w.v[i] + float64(step*p)
	}
	w.readingBeyondEnd, w.readKind, w.vectorChanged = true, readPointBeyondEnd, true
}

// readsBeyondEnd reports whether the gradient is to be read beyond the last point.
func (d descent) readsBeyondEnd(ctx *comqueue.ComContext) (bool, error) {
	return workOf.Get(ctx).readingBeyondEnd, nil
}

// checkDivergence takes the result of the read beyond the last point.
func (d descent) checkDivergence(ctx *comqueue.ComContext) error {
	w := workOf.Get(ctx)
	w.readingBeyondEnd = false
	copy(w.next, w.readResult(ctx))
	return wrap(ctx, w.requestDecision(readBeyondEnd))
}

// detectDivergence records that training diverges if the loss still falls beyond the last
// point.
func (w *work) detectDivergence(loss, slope float64) {
	s := w.state
	s.Reads++
	s.Record[len(s.Record)-1].Reads++
	if slope < 0 && loss/w.Weight <= s.Loss+float64(rounding*math.Abs(s.Loss)) {
		s.end(Diverging)
	}
}
