package optim

import (
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/internal/kernel"
)

// maxRounds is the largest number of rounds over smooth approximations. If each approximation
// is ten times closer than the approximation of the previous round, the last one is closer than
// the precision of a float64.
const maxRounds = 40

// minTol is the least tolerance that rounds use if they need a smaller tolerance than
// Settings.Tol.
const minTol = 1e-13

// restarts returns the largest number of additional supersteps that begin a round.
func (d descent) restarts() int {
	if d.problem.Settings.GapTol > 0 {
		return maxRounds
	}
	return 0
}

// addRounds adds the stages between rounds, if Settings.GapTol is set.
func (d descent) addRounds(q *comqueue.IterativeComQueue) *comqueue.IterativeComQueue {
	if d.problem.Settings.GapTol == 0 {
		return q
	}
	return q.
		Add(d.gatherIf(d.boundNeedsGather, d.offerParameters)).
		Add(comqueue.Named("bound", comqueue.ForEachShard(bounds, d.readBound))).
		Add(comqueue.AllReduce(bounds)).
		Add(comqueue.Named("refine", comqueue.Do(d.refine)))
}

// boundNeedsGather reports whether the bound is to be read and the parameters are split.
func (d descent) boundNeedsGather(ctx *comqueue.ComContext) (bool, error) {
	w := workOf.Get(ctx)
	return w.split && w.boundDue, nil
}

// requestBound requests a read of the bound if there are rounds and a round has ended.
func (w *work) requestBound(ctx *comqueue.ComContext) {
	if w.settings.GapTol == 0 || !w.state.Done {
		return
	}
	w.endReason, w.boundDue = w.state.Reason, true
	w.state.Done, w.state.Reason = false, ""
	bounds.Put(ctx, w.sums)
}

// readBound evaluates the bound of a shard, at the end of a round.
func (d descent) readBound(ctx *comqueue.ComContext, shard int, out []float64) error {
	w := workOf.Get(ctx)
	if !w.boundDue {
		return nil
	}
	return wrap(ctx, w.Smoothing.Bound(shard, w.full(w.v), out))
}

// refine ends training if the gap is closed or cannot be closed. Otherwise it begins another
// round.
func (d descent) refine(ctx *comqueue.ComContext) error {
	w, s := workOf.Get(ctx), trained.Get(ctx).state
	if !w.boundDue {
		return nil
	}
	w.boundDue = false
	w.Rounds++
	s.Reads++
	s.Record[len(s.Record)-1].Reads++
	objective, bound := w.Smoothing.Gap(w.full(w.v), bounds.Get(ctx), w.settings.L1, w.settings.L2)
	bounds.Put(ctx, nil)
	s.Loss, s.Gap = objective, objective-bound
	ctx.Report("gap", s.Gap)
	switch {
	case s.Gap <= w.settings.GapTol*max(objective, -objective):
		s.end(GapClosed)
	case w.endReason == MaxIterations || w.endReason == Diverging:
		s.end(w.endReason)
	case w.Rounds >= maxRounds || !kernel.Finite(s.Gap):
		s.end(Exhausted)
		s.FarFromOptimum = !(s.Gap <= farNorm*max(objective, -objective))
	}
	if s.Done {
		s.Record[len(s.Record)-1].Loss = s.Loss
		if w.settings.Information {
			curvatures.Put(ctx, w.information)
		}
		return nil
	}
	w.restart(w.factor == nil)
	// If the gap has hardly fallen, the approximation was not minimised exactly enough. A
	// closer approximation would be even harder to minimise, so the next round keeps the
	// approximation and uses a smaller Tol.
	before := w.Gap
	if w.Gap = s.Gap; w.Gap > before/2 && w.settings.Tol > minTol {
		w.Tol = max(w.settings.Tol/100, minTol)
		w.settings.Tol = w.Tol
		return nil
	}
	return wrap(ctx, ctx.ForShards(w.Smoothing.Refine))
}
