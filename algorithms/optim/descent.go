package optim

import (
	"github.com/superstep-ml/superstep/comqueue"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared"
)

// descent is the queue of all methods that search along a line: GD, L-BFGS, OWL-QN and
// Newton. A superstep is an iteration, the first one the evaluation of the start:
//
//	correlate      products of the newest pair and the gradient with the history
//	AllGather      ... of all subtasks, where the history is split among them
//	combine        the direction from them, or by Cholesky
//	AllGather      ... of all subtasks
//	aim            the derivative along it
//	repeat         until the first step is known:
//	  probe          per shard: along it, a few rows
//	  AllReduce
//	  pace           the direction, with a share of the latest steps; the first step
//	repeat         until a point is accepted:
//	  read rows      per shard: loss and gradient (and second derivatives) at a step
//	  AllReduce
//	  weigh          is the step accepted?
//	  repeat         where margins are cached, until a step is:
//	    try steps      per shard: losses and derivatives at further steps, without a read
//	    AllReduce
//	    choose step
//	arrive         move, test, record
//
// without a penalty, where the steps did not become shorter, see beyond.go,
//
//	read beyond    per shard: loss and gradient farther on
//	AllReduce
//	doubt          is there an optimum at all?
//
// with Settings.GapTol, where the stand-in is minimised, see rounds.go,
//
//	bound          per shard: a read
//	AllReduce
//	tighten        end, or make a better stand-in and begin again
//
// and with Settings.Information, once training has ended, a read of second derivatives.
// Parameters, gradient and direction are replicated, made from the same sums everywhere.
type descent struct {
	problem Problem
	// splitFrom is the number of parameters from which on the history is split among
	// subtasks by blocks, which changes no bit; 0 means widely.
	splitFrom int
}

// widely is the number of parameters from which on every subtask keeping the whole history
// costs more than two more meetings an iteration. Nor are latest steps kept from there on.
const widely = 1 << 16

// mostReads is the largest number of reads of an iteration.
const mostReads = mostSteps + 2

// addTo adds the stages and returns the dataset of the closer's rows.
func (d descent) addTo(q *comqueue.IterativeComQueue) *engine.Dataset {
	q = q.
		Add(comqueue.Named("correlate", d.correlate)).
		Add(comqueue.AllGather(ownSums, allSums)).
		Add(comqueue.Named("combine", d.combine)).
		Add(comqueue.AllGather(ownPart, whole)).
		Add(comqueue.Named("aim", d.aim)).
		Add(comqueue.Repeat(mostProbes, d.paced,
			comqueue.Named("probe", comqueue.ForEachShard(probes, d.probe)),
			comqueue.AllReduce(probes),
			comqueue.Named("pace", d.pace))).
		Add(comqueue.Repeat(mostReads, d.settled,
			comqueue.Named("read rows", comqueue.ForEachShard(reading, d.readRows, comqueue.FoldedBy(d.foldRows))),
			comqueue.AllReduce(reading, comqueue.WithoutZeros()),
			comqueue.Named("weigh", d.weigh),
			comqueue.Repeat(mostSteps, d.chosen,
				comqueue.Named("try steps", comqueue.ForEachShard(trials, d.trySteps)),
				comqueue.AllReduce(trials),
				comqueue.Named("choose step", d.chooseStep)))).
		Add(comqueue.Named("arrive", d.arrive))
	q = d.problem.addInformation(d.addRounds(d.addBeyond(q)))
	return q.
		SetCompareCriterionOfNode0(done).
		SetMaxIter(d.problem.Settings.MaxIter + 1 + d.restarts()).
		CloseOnNode0(d.problem.Closer).
		Exec()
}

// correlate opens the objective in the first superstep. In others it gives the inner
// products that the direction is made of, of the blocks that the subtask keeps.
func (d descent) correlate(ctx *comqueue.ComContext) error {
	if !working.Has(ctx) {
		return d.prepare(ctx)
	}
	w := working.Get(ctx)
	if w.history == nil || w.steepest || w.starting {
		return nil
	}
	sums := w.history.products(w.pseudo, w.held)
	if w.split {
		ownSums.Put(ctx, sums)
	}
	return nil
}

// combine makes the direction: the part of the blocks that the subtask keeps, or for
// Newton's method all of it on subtask 0.
func (d descent) combine(ctx *comqueue.ComContext) error {
	w := working.Get(ctx)
	switch {
	case w.starting:
	case w.steepest:
		for i, g := range w.pseudo {
			w.direction[i] = -g
		}
	case w.factor != nil:
		if ctx.TaskID() == 0 {
			if err := w.factor.solve(ctx.Context(), reading.Get(ctx)[1+w.n:], w.weight, &w.penalty, w.pseudo, w.direction); err != nil {
				return wrap(ctx, err)
			}
		}
	case w.history != nil:
		sums := w.history.partial
		if w.split {
			sums = allSums.Get(ctx)
		}
		w.history.settle(sums)
		w.history.direction(w.pseudo, w.direction[w.first:])
	}
	if ctx.NumTask() == 1 {
		return nil
	}
	switch {
	case w.starting || w.steepest || w.factor == nil && !w.split, w.factor != nil && ctx.TaskID() != 0:
		ownPart.Put(ctx, nil)
	case w.factor != nil:
		ownPart.Put(ctx, w.direction)
	default:
		ownPart.Put(ctx, w.direction[w.first:w.last])
	}
	return nil
}

// aim finds the derivative along the direction, and asks for the first step.
func (d descent) aim(ctx *comqueue.ComContext) error {
	w := working.Get(ctx)
	w.reads, w.trialing, w.final, w.failed, w.settled = 0, false, false, false, false
	if w.starting {
		w.asks = theStart
		return nil
	}
	if all := whole.Get(ctx); len(all) == w.n {
		copy(w.direction, all)
	}
	w.aim()
	probes.Put(ctx, w.probes[:w.pacing.length()])
	return nil
}

// probe evaluates a few rows of a shard along the direction, where the scale of a step is
// not known.
func (d descent) probe(ctx *comqueue.ComContext, shard int, out []float64) error {
	w := working.Get(ctx)
	switch p := &w.pacing; p.asks {
	case theBend:
		return wrap(ctx, w.probing.Bend(shard, w.direction, p.past(), out))
	case theSlopes:
		return wrap(ctx, w.probing.Probe(shard, p.mix[:p.dim], p.paces, out))
	}
	return nil
}

// pace takes what was probed: it asks for more, or for the first step.
func (d descent) pace(ctx *comqueue.ComContext) error {
	w := working.Get(ctx)
	if w.pacing.asks == noProbe {
		return nil
	}
	w.pace(probes.Get(ctx))
	probes.Put(ctx, w.probes[:w.pacing.length()])
	return nil
}

// paced ends the probes of a superstep.
func (d descent) paced(ctx *comqueue.ComContext) (bool, error) {
	return working.Get(ctx).pacing.asks == noProbe, nil
}

// readRows evaluates a shard where the iteration asks for it.
func (d descent) readRows(ctx *comqueue.ComContext, shard int, out []float64) error {
	return wrap(ctx, working.Get(ctx).readShard(shard, out))
}

// foldRows is readRows for the shards of a node, where the evaluator folds what they give.
func (d descent) foldRows(ctx *comqueue.ComContext, shards shared.Range, out []float64) (bool, error) {
	w := working.Get(ctx)
	switch {
	case w.asks == nothing:
		return true, nil
	case w.folding == nil || w.factor != nil:
		return false, nil
	}
	err := ctx.ForShardsWithin(shards, w.keep)
	if err == nil {
		err = w.folding.Fold(shards, out)
	}
	return true, wrap(ctx, err)
}

// weigh takes what was read.
func (d descent) weigh(ctx *comqueue.ComContext) error {
	return wrap(ctx, working.Get(ctx).weigh(reading.Get(ctx)))
}

// settled ends the reads of a superstep.
func (d descent) settled(ctx *comqueue.ComContext) (bool, error) {
	return working.Get(ctx).settled, nil
}

// trySteps evaluates a shard at further steps, without a read.
func (d descent) trySteps(ctx *comqueue.ComContext, shard int, out []float64) error {
	w := working.Get(ctx)
	if !w.trialing {
		return nil
	}
	return wrap(ctx, w.linear.Trials(shard, w.steps, out))
}

// chooseStep takes what was tried.
func (d descent) chooseStep(ctx *comqueue.ComContext) error {
	if w := working.Get(ctx); w.trialing {
		return wrap(ctx, w.choose(trials.Get(ctx)))
	}
	return nil
}

// chosen ends the trials between two reads.
func (d descent) chosen(ctx *comqueue.ComContext) (bool, error) {
	return !working.Get(ctx).trialing, nil
}

// arrive moves to the point that was accepted, records it and decides whether it is the
// last.
func (d descent) arrive(ctx *comqueue.ComContext) error {
	w := working.Get(ctx)
	if !w.starting && !w.failed && w.linear != nil {
		if err := ctx.ForShards(w.advance); err != nil {
			return wrap(ctx, err)
		}
	}
	again := w.starting && len(w.state.Record) > 0
	w.arrive()
	w.begins(ctx)
	w.looksBeyond(ctx)
	if !again {
		w.tell(ctx)
	}
	return nil
}
