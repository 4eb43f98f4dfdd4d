package task

import (
	"context"
	"errors"
	"fmt"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Worker runs one part of a plan; the workers of the other parts are in other processes. Its
// methods are called in this order, by one goroutine, except for Fail:
//
//	w, err := task.NewWorker(plan, graph, bindings, env, part) // takes rows from now on
//	err = w.Prepare()                  // on worker 0, before any other worker runs
//	outcome, err := w.Run(ctx)
//	err = w.Commit(outcomes)           // on worker 0, with the outcomes of all workers
//	err = w.Abort()                    // instead of Commit, if something failed
//	w.Close()                          // in any case
//
// A worker must not be closed before all workers have run or one has failed, as other workers
// may still be receiving rows from it.
type Worker struct {
	run   *run
	sinks *sinks
	stage workerStage
}

// workerStage is the last step that a worker has done.
type workerStage int

const (
	workerMade workerStage = iota
	workerPrepared
	workerRan    // and succeeded
	workerFailed // at any step
	workerCommitted
)

// NewWorker makes the receiving ends of a part, so that other workers may send as soon as all
// workers exist. It calls none of the bound functions. The worker owns env.Network: Close closes
// it, and so does NewWorker if it fails. Env.MemoryBudget is shared by the slots of this worker.
func NewWorker(p *plan.Plan, g *plan.Graph, bind Bindings, env Env, part Part) (*Worker, error) {
	w, err := newWorker(p, g, bind, env, part)
	if err != nil && env.Network != nil {
		err = joinError(err, env.Network.Close())
	}
	return w, err
}

func newWorker(p *plan.Plan, g *plan.Graph, bind Bindings, env Env, part Part) (*Worker, error) {
	if p == nil {
		return nil, errors.New("there is no plan to run")
	}
	if g != nil && g.Fingerprint() != p.Fingerprint {
		return nil, fmt.Errorf("the plan of job %q was compiled from another graph: its fingerprint is %s, the graph's %s", p.Job, p.Fingerprint, g.Fingerprint())
	}
	if err := part.check(p); err != nil {
		return nil, err
	}
	if len(part.Slots) > 1 && env.Network == nil {
		return nil, fmt.Errorf("worker %d of %d has no network to reach the others by", part.Worker, len(part.Slots))
	}
	if err := checkBindings(p, &bind); err != nil {
		return nil, err
	}
	r := &run{
		plan: p, bind: &bind, env: env.withDefaults(), part: part, subtaskRange: part.Slots[part.Worker],
		hosts: part.hosts(), progress: make([]vertexProgress, len(p.Vertices)),
	}
	if env.Retained != nil {
		env.Retained.begin(p, env.withDefaults())
	}
	scratch, err := newScratch(env.SpillDir)
	if err != nil {
		return nil, err
	}
	r.scratch = scratch
	r.makeBudgets()
	env.Retained.openAhead(r)
	if r.network = r.env.Network; r.network == nil {
		r.network = transport.NewMem(r.env.Credits)
	}
	w := &Worker{run: r, sinks: newSinks(p, r.bind)}
	if err := r.listen(); err != nil {
		w.Close()
		return nil, err
	}
	return w, nil
}

// Whole returns the part that is the whole plan.
func Whole(p *plan.Plan) Part {
	slots := 1
	if p != nil {
		slots = max(p.Slots, 1)
	}
	return Part{Slots: []sharding.Range{{Lo: 0, Hi: slots}}}
}

// check returns an error if the part is not a valid part of the plan.
func (p *Part) check(pl *plan.Plan) error {
	if p.Worker < 0 || p.Worker >= len(p.Slots) {
		return fmt.Errorf("worker %d of %d: want one of 0 to %d", p.Worker, len(p.Slots), len(p.Slots)-1)
	}
	at := 0
	for w, slots := range p.Slots[:Running(p.Slots)] {
		if slots.Lo != at || slots.Hi <= slots.Lo {
			return fmt.Errorf("worker %d has the slots %v: want at least one, from slot %d on", w, slots, at)
		}
		at = slots.Hi
	}
	if want := max(pl.Slots, 1); at != want {
		return fmt.Errorf("the workers have %d slots together, and the plan needs %d", at, want)
	}
	if len(p.Slots) > 1 && len(pl.Queues) > 0 && p.Join == nil {
		return fmt.Errorf("worker %d of %d cannot join the others in queue %q", p.Worker, len(p.Slots), pl.Queues[0].Name)
	}
	return nil
}

// hosts returns the worker of each subtask index.
func (p *Part) hosts() []int {
	hosts := make([]int, 0, p.Slots[len(p.Slots)-1].Hi)
	for w, slots := range p.Slots {
		for range slots.Len() {
			hosts = append(hosts, w)
		}
	}
	return hosts
}

// Prepare begins the sinks, in node order, on worker 0. If it fails, it aborts the sinks that
// have begun.
func (w *Worker) Prepare() error {
	switch {
	case w.run.part.Worker != 0:
		return fmt.Errorf("worker %d was told to begin the sinks, which is worker 0's", w.run.part.Worker)
	case w.stage != workerMade:
		return errors.New("the sinks have begun already")
	}
	if err := w.sinks.begin(); err != nil {
		w.stage = workerFailed
		return err
	}
	w.stage = workerPrepared
	return nil
}

// Run runs the subtasks of the part and returns when all have ended. It returns the outcome for
// Commit and MergeOutcomes. On workers other than 0 it joins the sinks that worker 0 has begun.
// It returns the same errors as the function Run. If FollowsPeer returns true for an error, its
// cause is in another process. If Run fails, Abort must be called.
func (w *Worker) Run(ctx context.Context) ([]byte, error) {
	o, err := w.runSubtasks(ctx)
	if err != nil {
		return nil, err
	}
	if w.run.part.gives() { // it has joined no sinks
		return o.encode()
	}
	if o.Written, err = w.sinks.written(); err != nil {
		w.stage = workerFailed
		return nil, err
	}
	return o.encode()
}

func (w *Worker) runSubtasks(ctx context.Context) (*outcome, error) {
	want := workerMade
	if w.run.part.Worker == 0 {
		want = workerPrepared
	}
	if w.stage != want {
		return nil, fmt.Errorf("worker %d cannot run now: worker 0 runs once, after Prepare, the others once", w.run.part.Worker)
	}
	w.stage = workerFailed
	if w.run.part.Worker != 0 && !w.run.part.gives() {
		if err := w.sinks.join(); err != nil {
			return nil, err
		}
	}
	if err := w.run.execute(ctx); err != nil {
		w.run.explain(ctx, err)
		return nil, err
	}
	o := w.run.result()
	w.stage = workerRan
	return o, nil
}

// Commit makes the outputs of all sinks visible; if a sink fails, all are aborted, and the
// error is a *CommitError. It is called on worker 0 when all workers have run. outcomes[i] is
// what Run returned on worker i, of those that run subtasks. The caller must have recorded the outcomes and the decision to
// commit them, so that a Resumption can finish the commit if this process ends before it has
// committed.
func (w *Worker) Commit(outcomes [][]byte) error { return w.decodeAndCommit(outcomes, true) }

// decodeAndCommit does the work of Commit. recorded says whether the caller has recorded the
// outcomes.
func (w *Worker) decodeAndCommit(outcomes [][]byte, recorded bool) error {
	decoded, err := decodeOutcomes(w.run.plan, outcomes)
	if want := Running(w.run.part.Slots); err == nil && len(decoded) != want {
		err = fmt.Errorf("commit with the outcomes of %d workers, of %d", len(decoded), want)
	}
	if err != nil {
		return &CommitError{Err: err}
	}
	return w.commit(decoded, recorded)
}

func (w *Worker) commit(outcomes []*outcome, recorded bool) error {
	if w.run.part.Worker != 0 || w.stage != workerRan {
		return fmt.Errorf("worker %d cannot commit: that is worker 0's, once, after it ran", w.run.part.Worker)
	}
	w.stage = workerFailed
	if err := w.sinks.commit(outcomes, recorded); err != nil {
		return err
	}
	w.stage = workerCommitted
	return nil
}

// Abort aborts or leaves the sinks that this worker has begun or joined, unless they have
// committed. A second call does nothing.
func (w *Worker) Abort() error { return w.sinks.abort() }

// Fail ends the run with err, a failure of its network. If the run has not begun, it ends as soon
// as it begins. A network that fails on its own calls Fail, from any goroutine.
func (w *Worker) Fail(err error) {
	if err == nil {
		err = errors.New("the network failed without saying why")
	}
	w.run.fail(err)
}

// Close closes the network and removes everything that the worker holds, in memory or on disk.
// Sinks that were neither committed nor aborted are aborted. Files that cannot be removed are
// logged.
func (w *Worker) Close() {
	log := w.run.env.Logger
	if err := w.run.teardown(); err != nil {
		log.Warn("the exchanges of the run did not end cleanly", "error", err)
	}
	if err := w.sinks.abort(); err != nil {
		log.Warn("output is left over", "error", err)
	}
	if err := w.sinks.settle(); err != nil {
		log.Warn("the receipt of an output is left over", "error", err)
	}
	if s := w.run.scratch; s != nil {
		w.run.scratch = nil
		if err := s.remove(); err != nil {
			log.Warn("temporary files are left over", "directory", s.dir, "error", err)
		}
	}
}
