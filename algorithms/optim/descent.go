package optim

import (
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// descent is the queue of all methods that search along a line: GD, L-BFGS, OWL-QN and Newton.
// A superstep is an iteration; the first superstep evaluates the start:
//
//	products       of the newest pair and the gradient with the history
//	direction      from them, or by Cholesky
//	slope          the derivative along it
//	repeat         until the first step is known:
//	  probe          per shard: a few rows along the direction
//	  AllReduce
//	  first step     the direction with a share of the latest steps; the first step
//	repeat         until a point is accepted:
//	  read rows      per shard: loss and gradient (and second derivatives) at a step
//	  AllReduce
//	  accept step    is the step accepted?
//	  repeat         where margins are cached, until a step is:
//	    try steps      per shard: losses and derivatives at further steps, without a read
//	    AllReduce
//	    choose step
//	move, record   to the accepted point; test whether training ends
//
// without a penalty, if the steps did not become shorter (see divergence.go):
//
//	read rows      per shard: loss and gradient farther on
//	AllReduce
//	divergence     is there an optimum?
//
// with Settings.GapTol, when the approximation is minimised (see rounds.go):
//
//	bound          per shard: a read of the bound
//	AllReduce
//	refine         end, or make a closer approximation and begin again
//
// and with Settings.Information, after training has ended, a read of second derivatives.
// Parameters, gradient and direction are replicated: every subtask computes them from the same
// sums.
//
// If there are very many parameters, each subtask keeps some blocks of them (see split.go).
// ReduceScatter then distributes loss and gradient of a read. AllGather distributes products,
// the sums of blocks for decisions, and the direction before rows are read.
type descent struct {
	problem Problem
	// splitFrom is the number of parameters from which they are split among subtasks, which
	// changes no bit; 0 means splitFromDefault.
	splitFrom int
}

// mostReads is the largest number of reads of an iteration.
const mostReads = mostSteps + 2

// supersteps returns the largest number of supersteps.
func (d descent) supersteps() int { return d.problem.Settings.MaxIter + 1 + d.restarts() }

// addTo adds the stages and returns the dataset of the closer's rows.
func (d descent) addTo(q *comqueue.IterativeComQueue) *engine.Dataset {
	search := append([]comqueue.Stage{d.gatherIf(d.gathersReadVector, d.offerReadVector)}, d.reads()...)
	search = append(search,
		comqueue.Named("accept step", comqueue.Do(d.takeRead)),
		d.decisions(),
		comqueue.Repeat(mostSteps, d.trialsDone,
			comqueue.Named("try steps", comqueue.ForEachShard(trials, d.trySteps)),
			comqueue.AllReduce(trials),
			comqueue.Named("choose step", comqueue.Do(d.chooseStep))))
	q = q.
		Add(comqueue.Named("products", comqueue.Do(d.computeProducts))).
		Add(comqueue.While(1, d.exchangesProducts, comqueue.AllGather(ownSums, allSums))).
		Add(comqueue.Named("direction", comqueue.Do(d.computeDirection))).
		Add(comqueue.While(1, d.solves, comqueue.AllGather(ownPart, whole))).
		Add(comqueue.Named("slope", comqueue.Do(d.completeDirection))).
		Add(d.decisions()).
		Add(comqueue.Named("prepare probe", comqueue.Do(d.prepareProbe))).
		Add(d.gatherIf(d.gathersReadVector, d.offerReadVector)).
		Add(comqueue.Repeat(mostProbes, d.stepFound,
			comqueue.Named("probe", comqueue.ForEachShard(probes, d.probe)),
			comqueue.AllReduce(probes),
			comqueue.Named("first step", comqueue.Do(d.firstStep)))).
		Add(d.decisions()).
		Add(comqueue.Repeat(mostReads, d.searchDone, search...)).
		Add(comqueue.Named("move", comqueue.Do(d.moveToAccepted))).
		Add(d.decisions()).
		Add(comqueue.Named("record", comqueue.Do(d.record)))
	q = d.problem.addInformation(d.addRounds(d.addDivergenceCheck(q)))
	return q.
		Add(comqueue.While(1, d.ends, comqueue.Named("offer", comqueue.Do(d.offerParameters)), comqueue.Gather(ownPart, whole))).
		Add(keepResult(d.isLast)).
		SetCompareCriterionOfNode0(done).
		SetMaxIter(d.supersteps()).
		CloseOnNode0(d.problem.Closer).
		Exec()
}

// computeProducts opens the objective in the first superstep, and when a subtask joins. Then it
// computes the inner products for the direction, over the blocks of the subtask.
func (d descent) computeProducts(ctx *comqueue.ComContext) error {
	if !working.Has(ctx) {
		if err := d.prepare(ctx); err != nil {
			return err
		}
	}
	w := working.Get(ctx)
	if !w.blocked && w.changeDue(w.state) {
		w.change(ctx)
	}
	if w.usesHistory() {
		ownSums.Put(ctx, w.history.products(w.pseudo, w.held))
	}
	return nil
}

// usesHistory says that the direction is computed from the history.
func (w *work) usesHistory() bool { return w.history != nil && !w.Steepest && !w.Starting }

// exchangesProducts says that subtasks exchange the products.
func (d descent) exchangesProducts(ctx *comqueue.ComContext) (bool, error) {
	w := working.Get(ctx)
	return w.split && w.usesHistory(), nil
}

// computeDirection computes the direction: the part of the subtask's blocks, or for Newton's
// method all of it on subtask 0.
func (d descent) computeDirection(ctx *comqueue.ComContext) error {
	w := working.Get(ctx)
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
		w.stale = true
	}
	return nil
}

// solves says that subtask 0 has computed the direction for all.
func (d descent) solves(ctx *comqueue.ComContext) (bool, error) {
	w := working.Get(ctx)
	return w.newton() && !w.Starting && !w.Steepest && ctx.NumTask() > 1, nil
}

// completeDirection computes the derivative along the direction, and asks for the first step.
func (d descent) completeDirection(ctx *comqueue.ComContext) error {
	w := working.Get(ctx)
	w.reads, w.trialsDue, w.final, w.failed, w.searchDone = 0, false, false, false, false
	if w.Starting {
		w.readKind = readStart
		w.stale = ctx.StepNo() > 1 // in the first superstep, all subtasks have the whole vector
		return nil
	}
	if found, err := d.solves(ctx); err != nil {
		return err
	} else if found {
		copy(w.direction, whole.Get(ctx))
	}
	w.readKind = noRead
	return wrap(ctx, w.completeDirection())
}

// prepareProbe allocates the buffer for a probe.
func (d descent) prepareProbe(ctx *comqueue.ComContext) error {
	w := working.Get(ctx)
	probes.Put(ctx, w.probes[:w.probing.length()])
	return nil
}

// probe evaluates a few rows of a shard along the direction, if the scale of the step is
// unknown.
func (d descent) probe(ctx *comqueue.ComContext, shard int, out []float64) error {
	w := working.Get(ctx)
	switch p := &w.probing; p.kind {
	case probeCurvature:
		return wrap(ctx, w.Subspace.Hessian(shard, w.full(w.direction), p.past(), out))
	case probeSlopes:
		return wrap(ctx, w.Subspace.Slopes(shard, p.mix[:p.dim], p.trials, out))
	}
	return nil
}

// firstStep takes the result of a probe, and asks for another probe or for the first step.
func (d descent) firstStep(ctx *comqueue.ComContext) error {
	w := working.Get(ctx)
	if w.probing.kind == noProbe {
		return nil
	}
	err := w.firstStep(probes.Get(ctx))
	probes.Put(ctx, w.probes[:w.probing.length()])
	return wrap(ctx, err)
}

// stepFound ends the probes of a superstep.
func (d descent) stepFound(ctx *comqueue.ComContext) (bool, error) {
	return working.Get(ctx).probing.kind == noProbe, nil
}

// readRows evaluates a shard as the iteration asks.
func (d descent) readRows(ctx *comqueue.ComContext, shard int, out []float64) error {
	return wrap(ctx, working.Get(ctx).readShard(shard, out))
}

// foldRows is readRows for the shards of a node, if the evaluator folds their results itself.
func (d descent) foldRows(ctx *comqueue.ComContext, shards sharding.Range, out []float64) (bool, error) {
	w := working.Get(ctx)
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
	w := working.Get(ctx)
	return wrap(ctx, w.takeRead(w.readResult(ctx)))
}

// searchDone ends the reads of a superstep.
func (d descent) searchDone(ctx *comqueue.ComContext) (bool, error) {
	return working.Get(ctx).searchDone, nil
}

// trySteps evaluates a shard at further steps, without a read.
func (d descent) trySteps(ctx *comqueue.ComContext, shard int, out []float64) error {
	w := working.Get(ctx)
	if !w.trialsDue {
		return nil
	}
	return wrap(ctx, w.Margins.Trials(shard, w.steps, out))
}

// chooseStep takes the results of the trials.
func (d descent) chooseStep(ctx *comqueue.ComContext) error {
	if w := working.Get(ctx); w.trialsDue {
		return wrap(ctx, w.choose(trials.Get(ctx)))
	}
	return nil
}

// trialsDone ends the trials between two reads.
func (d descent) trialsDone(ctx *comqueue.ComContext) (bool, error) {
	return !working.Get(ctx).trialsDue, nil
}

// moveToAccepted moves to the accepted point.
func (d descent) moveToAccepted(ctx *comqueue.ComContext) error {
	w := working.Get(ctx)
	if !w.Starting && !w.failed && w.keepsMargins() {
		if err := ctx.ForShards(w.advance); err != nil {
			return wrap(ctx, err)
		}
	}
	return wrap(ctx, w.moveToAccepted(ctx))
}

// record records the result of the iteration, and whether it is the last of a round.
func (d descent) record(ctx *comqueue.ComContext) error {
	w := working.Get(ctx)
	w.requestBound(ctx)
	if !w.roundBegun {
		w.report(ctx)
	}
	return nil
}
