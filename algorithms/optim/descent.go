package optim

import (
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// descent is the queue of the methods that search along a line: GD, L-BFGS, OWL-QN and Newton.
// A superstep is an iteration. The first superstep evaluates the start. The stages of a
// superstep are:
//
//	products       inner products of the newest pair and of the gradient with the history
//	direction      from these products, or by Cholesky factorisation
//	slope          the derivative along the direction
//	repeat         until the first step is known:
//	  probe          per shard: a few rows along the direction
//	  AllReduce
//	  first step     the direction combined with the latest steps; the first step
//	repeat         until a point is accepted:
//	  read rows      per shard: loss and gradient (and second derivatives) at a step
//	  AllReduce
//	  judge step     is the step accepted?
//	  repeat         if margins are cached, until a step is accepted:
//	    try steps      per shard: losses and derivatives at further steps, without a read
//	    AllReduce
//	    choose step
//	move, record   move to the accepted point; test whether training ends
//
// Without a penalty, further stages follow if the steps did not become shorter (see
// divergence.go):
//
//	read rows      per shard: loss and gradient at a point beyond the last one
//	AllReduce
//	divergence     is there an optimum?
//
// With Settings.GapTol, further stages follow when the approximation is minimised (see
// rounds.go):
//
//	bound          per shard: a read that computes the sums of the bound
//	AllReduce
//	refine         end training, or make a closer approximation and begin again
//
// With Settings.Information, a read of second derivatives follows after training has ended.
// Parameters, gradient and direction are replicated: every subtask computes them from the same
// sums.
//
// If there are very many parameters, each subtask keeps only some blocks of them (see
// split.go). ReduceScatter then distributes the loss and the gradient of a read. AllGather
// distributes the products, the sums of blocks for decisions, and, before rows are read, the
// direction.
type descent struct {
	problem Problem
	// splitFrom is the least number of parameters that are split among subtasks. It changes no
	// bit of the results; 0 means splitFromDefault.
	splitFrom int
}

// maxReads is the largest number of reads in an iteration.
const maxReads = maxSteps + 2

// supersteps returns the largest number of supersteps.
func (d descent) supersteps() int { return d.problem.Settings.MaxIter + 1 + d.restarts() }

// addTo adds the stages to q and returns the dataset of the rows that the Closer returns.
func (d descent) addTo(q *comqueue.IterativeComQueue) *engine.Dataset {
	search := append([]comqueue.Stage{d.gatherIf(d.gathersReadVector, d.offerReadVector)}, d.reads()...)
	search = append(search,
		comqueue.Named("accept step", comqueue.Do(d.takeRead)),
		d.decisions(),
		comqueue.Repeat(maxSteps, d.trialsDone,
			comqueue.Named("try steps", comqueue.ForEachShard(trials, d.trySteps)),
			comqueue.AllReduce(trials),
			comqueue.Named("choose step", comqueue.Do(d.chooseStep))))
	q = q.
		Add(comqueue.Named("products", comqueue.Do(d.computeProducts))).
		Add(comqueue.While(1, d.exchangesProducts, comqueue.AllGather(ownSums, allSums))).
		Add(comqueue.Named("direction", comqueue.Do(d.computeDirection))).
		Add(comqueue.While(1, d.solvesSystem, comqueue.AllGather(ownPart, gathered))).
		Add(comqueue.Named("slope", comqueue.Do(d.completeDirection))).
		Add(d.decisions()).
		Add(comqueue.Named("prepare probe", comqueue.Do(d.prepareProbe))).
		Add(d.gatherIf(d.gathersReadVector, d.offerReadVector)).
		Add(comqueue.Repeat(maxProbes, d.stepFound,
			comqueue.Named("probe", comqueue.ForEachShard(probes, d.probe)),
			comqueue.AllReduce(probes),
			comqueue.Named("first step", comqueue.Do(d.firstStep)))).
		Add(d.decisions()).
		Add(comqueue.Repeat(maxReads, d.searchDone, search...)).
		Add(comqueue.Named("move", comqueue.Do(d.moveToAccepted))).
		Add(d.decisions()).
		Add(comqueue.Named("record", comqueue.Do(d.record)))
	q = d.problem.addInformation(d.addRounds(d.addDivergenceCheck(q)))
	return q.
		Add(comqueue.While(1, d.endsSplit, comqueue.Named("offer", comqueue.Do(d.offerParameters)), comqueue.Gather(ownPart, gathered))).
		Add(keepResult(d.isLast)).
		SetCompareCriterionOfNode0(done).
		SetMaxIter(d.supersteps()).
		CloseOnNode0(d.problem.Closer).
		Exec()
}

// computeProducts opens the objective in the first superstep, and when a subtask joins later.
// Then it computes the inner products for the direction, over the blocks of the subtask.
func (d descent) computeProducts(ctx *comqueue.ComContext) error {
	if !workOf.Has(ctx) {
		if err := d.prepare(ctx); err != nil {
			return err
		}
	}
	w := workOf.Get(ctx)
	if !w.blocked && w.newtonDue(w.state) {
		w.startNewton(ctx)
	}
	if w.usesHistory() {
		ownSums.Put(ctx, w.history.products(w.pseudo, w.heldAtZero))
	}
	return nil
}

// usesHistory reports whether the direction is computed from the history.
func (w *work) usesHistory() bool { return w.history != nil && !w.Steepest && !w.Starting }

// exchangesProducts reports whether subtasks exchange the products.
func (d descent) exchangesProducts(ctx *comqueue.ComContext) (bool, error) {
	w := workOf.Get(ctx)
	return w.split && w.usesHistory(), nil
}

// computeDirection computes the subtask's blocks of the direction. For Newton's method, subtask
// 0 computes the whole direction.
func (d descent) computeDirection(ctx *comqueue.ComContext) error {
	w := workOf.Get(ctx)
	switch {
	case w.Starting || w.Steepest:
	case w.newton():
		if ctx.TaskID() == 0 {
			if err := w.factor.solve(ctx.Context(), reading.Get(ctx)[1+w.Dim:], w.Weight, &w.penalty, w.pseudo, w.direction); err != nil {
				return wrap(ctx, err)
			}
			ownPart.Put(ctx, w.direction)
		}
	case w.history != nil:
		sums := w.history.partial
		if w.split {
			sums = allSums.Get(ctx)
		}
		w.history.update(sums)
		w.history.direction(w.pseudo, w.direction)
		w.vectorChanged = true
	}
	return nil
}

// solvesSystem reports whether subtask 0 has computed the direction for all subtasks.
func (d descent) solvesSystem(ctx *comqueue.ComContext) (bool, error) {
	w := workOf.Get(ctx)
	return w.newton() && !w.Starting && !w.Steepest && ctx.NumTask() > 1, nil
}

// completeDirection computes the derivative along the direction, and requests the first step.
func (d descent) completeDirection(ctx *comqueue.ComContext) error {
	w := workOf.Get(ctx)
	w.reads, w.trialsDue, w.accepted, w.failed, w.searchDone = 0, false, false, false, false
	if w.Starting {
		w.readKind = readStart
		w.vectorChanged = ctx.StepNo() > 1 // in the first superstep, all subtasks have the whole vector
		return nil
	}
	if found, err := d.solvesSystem(ctx); err != nil {
		return err
	} else if found {
		copy(w.direction, gathered.Get(ctx))
	}
	w.readKind = noRead
	return wrap(ctx, w.completeDirection())
}

// prepareProbe allocates the buffer for a probe.
func (d descent) prepareProbe(ctx *comqueue.ComContext) error {
	w := workOf.Get(ctx)
	probes.Put(ctx, w.probes[:w.probing.length()])
	return nil
}

// probe evaluates a few rows of a shard along the direction, if a probe is due.
func (d descent) probe(ctx *comqueue.ComContext, shard int, out []float64) error {
	w := workOf.Get(ctx)
	switch p := &w.probing; p.kind {
	case probeCurvature:
		return wrap(ctx, w.Subspace.Hessian(shard, w.full(w.direction), p.pastSteps(), out))
	case probeSlopes:
		return wrap(ctx, w.Subspace.Slopes(shard, p.mix[:p.dim], p.trials, out))
	}
	return nil
}

// firstStep takes the result of a probe. It requests another probe, or the first step.
func (d descent) firstStep(ctx *comqueue.ComContext) error {
	w := workOf.Get(ctx)
	if w.probing.kind == noProbe {
		return nil
	}
	err := w.takeProbe(probes.Get(ctx))
	probes.Put(ctx, w.probes[:w.probing.length()])
	return wrap(ctx, err)
}

// stepFound reports whether the probes of the superstep are done.
func (d descent) stepFound(ctx *comqueue.ComContext) (bool, error) {
	return workOf.Get(ctx).probing.kind == noProbe, nil
}

// readRows evaluates a shard in the way that work.readKind requests.
func (d descent) readRows(ctx *comqueue.ComContext, shard int, out []float64) error {
	return wrap(ctx, workOf.Get(ctx).readShard(shard, out))
}

// foldRows does what readRows does, for all shards of a node of the tree, if the evaluator
// folds the results of shards itself.
func (d descent) foldRows(ctx *comqueue.ComContext, shards sharding.Range, out []float64) (bool, error) {
	w := workOf.Get(ctx)
	switch {
	case w.readKind == noRead:
		return true, nil
	case w.Fold == nil || w.factor != nil:
		return false, nil
	}
	err := ctx.ForShardsWithin(shards, w.keepPart)
	if err == nil {
		err = w.Fold(shards, out)
	}
	return true, wrap(ctx, err)
}

// takeRead takes the result of a read.
func (d descent) takeRead(ctx *comqueue.ComContext) error {
	w := workOf.Get(ctx)
	return wrap(ctx, w.takeRead(w.readResult(ctx)))
}

// searchDone reports whether the reads of the superstep are done.
func (d descent) searchDone(ctx *comqueue.ComContext) (bool, error) {
	return workOf.Get(ctx).searchDone, nil
}

// trySteps evaluates a shard at the steps to try, without a read.
func (d descent) trySteps(ctx *comqueue.ComContext, shard int, out []float64) error {
	w := workOf.Get(ctx)
	if !w.trialsDue {
		return nil
	}
	return wrap(ctx, w.Margins.Trials(shard, w.steps, out))
}

// chooseStep takes the results of the trials.
func (d descent) chooseStep(ctx *comqueue.ComContext) error {
	if w := workOf.Get(ctx); w.trialsDue {
		return wrap(ctx, w.chooseTrial(trials.Get(ctx)))
	}
	return nil
}

// trialsDone reports whether the trials between two reads are done.
func (d descent) trialsDone(ctx *comqueue.ComContext) (bool, error) {
	return !workOf.Get(ctx).trialsDue, nil
}

// moveToAccepted moves to the accepted point.
func (d descent) moveToAccepted(ctx *comqueue.ComContext) error {
	w := workOf.Get(ctx)
	if !w.Starting && !w.failed && w.keepsMargins() {
		if err := ctx.ForShards(w.advance); err != nil {
			return wrap(ctx, err)
		}
	}
	return wrap(ctx, w.moveToAccepted(ctx))
}

// record records the result of the iteration, and tests whether training or a round ends.
func (d descent) record(ctx *comqueue.ComContext) error {
	w := workOf.Get(ctx)
	w.requestBound(ctx)
	if !w.roundBegun {
		w.report(ctx)
	}
	return nil
}
