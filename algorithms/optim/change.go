package optim

import "github.com/superstep-ml/superstep/comqueue"

// Where features correlate the curvatures of the loss are of very different sizes, and L-BFGS,
// which knows ten of them, takes hundreds of iterations for what takes Newton's method five.
// Where they do not, it takes five itself, of which each is several times as quick. Nothing
// tells beforehand. So Auto begins with L-BFGS, and once that has taken as long as Newton's
// method takes in all, goes over to it: then training takes at most about twice as long as
// with the better of the two (as one buys skis who has paid their price in rents: Karlin,
// Manasse, Rudolph and Sleator, Competitive snoopy caching, Algorithmica 3, 1988).

const (
	// newtonReads is how many reads with second derivatives Newton's method takes, about.
	newtonReads = 4
	// mostChanging is the number of parameters up to which it is gone over to: beyond that the
	// factorisation, too, takes long.
	mostChanging = 512
)

// plan decides from when on, for an evaluation that Auto takes LBFGS for. Of the memory it
// takes what one subtask would need that had all shards, as parallelism must decide nothing.
func (c *course) plan(ctx *comqueue.ComContext, p Problem, e *Evaluator) {
	if e.HessianCost == 0 || p.Settings.GapTol > 0 || e.Dim > mostChanging || p.allowMatrix(ctx.TotalShards(), e.Dim) != nil {
		return
	}
	c.ChangeFrom = max(newtonReads, min(newtonReads*e.HessianCost, float64(p.Settings.MaxIter)/2))
}

// due says that it is time.
func (c *course) due(s *state) bool {
	return c.ChangeFrom > 0 && s.Method == LBFGS && !c.Blind && s.Reads >= c.ChangeFrom
}

// change has rows read with second derivatives from now on. The direction is still that of
// LBFGS: of the point where training has come to they are not known.
func (w *work) change(ctx *comqueue.ComContext) {
	w.Blind = true
	w.readMatrices(ctx)
}

// readMatrices makes what it takes to read second derivatives and to find directions by them.
// The matrix of the superstep before is that of the next direction.
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
func (w *work) newton() bool { return w.factor != nil && !w.Blind }

// changed takes note that the matrix at the point that was arrived at is known: pairs and
// latest steps are of no more use.
func (w *work) changed(ctx *comqueue.ComContext) {
	if !w.Blind {
		return
	}
	w.Blind, w.state.Method, w.history = false, Newton, nil
	w.Pairs = remembered{}
	pairVectors.whole.Remove(ctx)
	w.probing.drop()
	latestSteps.Remove(ctx)
}
