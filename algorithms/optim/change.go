package optim

import "github.com/superstep-ml/superstep/comqueue"

// If features correlate, the curvatures of the loss differ greatly. L-BFGS remembers ten steps,
// and then takes hundreds of iterations where Newton's method takes five. If features do not
// correlate, L-BFGS also takes about five iterations, and each of them is several times as fast
// as an iteration of Newton's method. Whether features correlate is not known in advance. So
// Auto begins with L-BFGS, and changes to Newton's method once L-BFGS has taken as long as
// Newton's method would take in total. Training then takes at most about twice as long as with
// the better of the two methods. This is the ski rental problem (Karlin, Manasse, Rudolph and
// Sleator, Competitive snoopy caching, Algorithmica 3, 1988).

const (
	// newtonReads is roughly the number of times that Newton's method reads the rows. Each read
	// computes second derivatives.
	newtonReads = 4
	// maxNewtonParameters is the largest number of parameters for which Auto changes to Newton's
	// method. With more parameters, factoring the matrix takes long too.
	maxNewtonParameters = 512
)

// planNewton decides after how many reads Auto changes from LBFGS to Newton. It checks the
// memory that one subtask with all shards would need, so that the decision does not depend on
// parallelism.
func (c *descentState) planNewton(ctx *comqueue.ComContext, p Problem, e *Evaluator) {
	if e.HessianCost == 0 || p.Settings.GapTol > 0 || e.Dim > maxNewtonParameters || p.allowMatrix(ctx.TotalShards(), e.Dim) != nil {
		return
	}
	c.ChangeFrom = max(newtonReads, min(newtonReads*e.HessianCost, float64(p.Settings.MaxIter)/2))
}

// newtonDue reports whether Auto changes to Newton's method now.
func (c *descentState) newtonDue(s *state) bool {
	return c.ChangeFrom > 0 && s.Method == LBFGS && !c.MatrixPending && s.Reads >= c.ChangeFrom
}

// startNewton makes all further reads compute second derivatives. The next direction is still
// computed by LBFGS, because the second derivatives at the current point are not known yet.
func (w *work) startNewton(ctx *comqueue.ComContext) {
	w.MatrixPending = true
	w.readMatrices(ctx)
}

// readMatrices allocates memory to read second derivatives and to compute directions from them.
// It copies the matrix that was kept in the last superstep, if any, as the next direction needs
// it.
func (w *work) readMatrices(ctx *comqueue.ComContext) {
	w.factor = newCholesky(w.Dim, ctx.NumTask(), ctx.TaskID() == 0)
	sums := make([]float64, 1+w.Dim+triangle(w.Dim))
	if before, ok := secondDerivs.Lookup(ctx); ok {
		copy(sums[1+w.Dim:], before)
	}
	reading.Put(ctx, sums)
	secondDerivs.Put(ctx, sums[1+w.Dim:])
}

// newton reports whether directions are computed by Newton's method.
func (w *work) newton() bool { return w.factor != nil && !w.MatrixPending }

// completeNewton completes the change to Newton's method once the matrix at the current point is
// known. It drops the pairs of the history and the latest steps.
func (w *work) completeNewton(ctx *comqueue.ComContext) {
	if !w.MatrixPending {
		return
	}
	w.MatrixPending, w.state.Method, w.history = false, Newton, nil
	w.Pairs = historyState{}
	pairVectors.whole.Remove(ctx)
	w.probing.drop()
	latestSteps.Remove(ctx)
}
