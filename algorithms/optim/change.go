package optim

import "github.com/superstep-ml/superstep/comqueue"

// If features correlate, the curvatures of the loss differ greatly. L-BFGS, which remembers ten
// steps, then takes hundreds of iterations where Newton's method takes five. If features do not
// correlate, L-BFGS takes five iterations itself, and each is several times as fast. Nothing
// tells in advance which case it is. So Auto begins with L-BFGS, and changes to Newton's method
// once L-BFGS has taken as long as Newton's method takes in all. Training then takes at most
// about twice as long as with the better of the two. This is the ski rental problem (Karlin,
// Manasse, Rudolph and Sleator, Competitive snoopy caching, Algorithmica 3, 1988).

const (
	// newtonReads is roughly how many reads with second derivatives Newton's method takes.
	newtonReads = 4
	// mostChanging is the largest number of parameters for a change to Newton's method: beyond
	// it the factorisation takes long too.
	mostChanging = 512
)

// planChange decides when Auto changes from LBFGS to Newton. It considers the memory of one
// subtask with all shards, as parallelism must not decide anything.
func (c *descentState) planChange(ctx *comqueue.ComContext, p Problem, e *Evaluator) {
	if e.HessianCost == 0 || p.Settings.GapTol > 0 || e.Dim > mostChanging || p.allowMatrix(ctx.TotalShards(), e.Dim) != nil {
		return
	}
	c.ChangeFrom = max(newtonReads, min(newtonReads*e.HessianCost, float64(p.Settings.MaxIter)/2))
}

// changeDue says that it is time to change.
func (c *descentState) changeDue(s *state) bool {
	return c.ChangeFrom > 0 && s.Method == LBFGS && !c.MatrixPending && s.Reads >= c.ChangeFrom
}

// change has rows read with second derivatives from now on. The direction is still that of
// LBFGS, because the second derivatives at the current point are not known.
func (w *work) change(ctx *comqueue.ComContext) {
	w.MatrixPending = true
	w.readMatrices(ctx)
}

// readMatrices allocates what is needed to read second derivatives and to find directions from
// them. The matrix of the last superstep gives the next direction.
func (w *work) readMatrices(ctx *comqueue.ComContext) {
	w.factor = newCholesky(w.Dim, ctx.NumTask(), ctx.TaskID() == 0)
	sums := make([]float64, 1+w.Dim+triangle(w.Dim))
	if before, ok := secondDerivs.Lookup(ctx); ok {
		copy(sums[1+w.Dim:], before)
	}
	reading.Put(ctx, sums)
	secondDerivs.Put(ctx, sums[1+w.Dim:])
}

// newton says that directions are those of Newton's method.
func (w *work) newton() bool { return w.factor != nil && !w.MatrixPending }

// changed completes the change once the matrix at the current point is known: pairs and latest
// steps are dropped.
func (w *work) changed(ctx *comqueue.ComContext) {
	if !w.MatrixPending {
		return
	}
	w.MatrixPending, w.state.Method, w.history = false, Newton, nil
	w.Pairs = historyState{}
	pairVectors.whole.Remove(ctx)
	w.probing.drop()
	latestSteps.Remove(ctx)
}
