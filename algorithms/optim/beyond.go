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

const (
	// apart is by what factor the gradient fell, at least, on the way that is looked at.
	apart = 30
	// fallen is the part of the first gradient below which losses are too alike to compare.
	fallen = 1e-9
	// longWay is how long the way is at least, beside the largest parameter.
	longWay = 0.05
	// parabola is what part of that along a parabola the loss falls at least near an optimum.
	parabola = 0.9
)

// landmark is a point that training has passed.
type landmark struct {
	v, gradient []float64
	loss, norm  float64
}

// pass keeps the point that the iteration arrived at, if the gradient fell enough since the
// one that was kept last. Two are kept: the gradient may have fallen by little since the
// later one.
func (w *work) pass() {
	s := w.state
	if !w.watches || w.failed || s.GradientNorm < fallen*s.FirstNorm || w.passed[0].v != nil && s.GradientNorm*apart > w.passed[0].norm {
		return
	}
	w.passed[0], w.passed[1] = w.passed[1], w.passed[0]
	to := &w.passed[0]
	if to.v == nil {
		to.v, to.gradient = make([]float64, w.n), make([]float64, w.n)
	}
	copy(to.v, w.v)
	copy(to.gradient, w.gradient)
	to.loss, to.norm = s.Loss, s.GradientNorm
}

// farBack returns the last point passed with a gradient much larger than now, or the first.
func (w *work) farBack() *landmark {
	if w.passed[1].v != nil && w.passed[0].norm < apart*w.state.GradientNorm {
		return &w.passed[1]
	}
	return &w.passed[0]
}

// addBeyond adds the stages that look beyond the end, where there is no penalty.
func (d descent) addBeyond(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue {
	if !d.problem.Settings.free() {
		return q
	}
	return q.
		Add(comqueue.Named("read beyond", comqueue.ForEachShard(beyond, d.readBeyond))).
		Add(comqueue.AllReduce(beyond)).
		Add(comqueue.Named("doubt", d.doubt))
}

// free says that nothing holds the parameters.
func (s Settings) free() bool { return s.L1 == 0 && s.L2 == 0 && s.GapTol == 0 }

// looksBeyond has the gradient read beyond the point where training ended, if the way there
// is not that to an optimum.
func (w *work) looksBeyond(ctx *comqueue.ComContext) {
	s := w.state
	if !w.watches || !s.Done || s.Iteration == 0 || s.Reason == MaxIterations || s.Reason == Diverging {
		return
	}
	from := w.farBack()
	way := w.direction
	var length float64
	for i, v := range w.v {
		way[i] = v - from.v[i]
		length = max(length, math.Abs(way[i]))
	}
	before, after := w.space.dot(from.gradient, way), w.space.dot(w.gradient, way)
	turn := -after / (after - before)
	if !(turn > 0) || !finite(turn) || length < longWay*s.Size || from.loss-s.Loss >= -parabola/2*(before+after) {
		return
	}
	w.point = make([]float64, w.n)
	for i, p := range way {
		w.point[i] = w.v[i] + float64(10*turn*p)
	}
	w.doubting = true
	beyond.Put(ctx, make([]float64, 1+w.n))
}

// readBeyond evaluates a shard there.
func (d descent) readBeyond(ctx *comqueue.ComContext, shard int, out []float64) error {
	w := working.Get(ctx)
	if !w.doubting {
		return nil
	}
	return wrap(ctx, w.Evaluate(shard, w.point, out))
}

// doubt tells that training diverges if the loss still falls beyond the end.
func (d descent) doubt(ctx *comqueue.ComContext) error {
	w := working.Get(ctx)
	if !w.doubting {
		return nil
	}
	w.doubting = false
	sums := beyond.Get(ctx)
	beyond.Put(ctx, nil)
	s := w.state
	s.Reads++
	s.Record[len(s.Record)-1].Reads++
	if slope := w.space.dot(sums[1:], w.direction); slope < 0 && sums[0]/w.weight <= s.Loss {
		s.end(Diverging)
	}
	return nil
}
