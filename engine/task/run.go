package task

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/shared"
)

// Run runs a plan in this process and returns when everything has ended: every
// goroutine, exchange and temporary file is gone then, whether it succeeded or
// not, but for what an *AbandonedError names. g is the graph the plan was compiled
// from, or nil.
//
// The result is an error of the bindings (nothing was started), a *TaskError,
// the failure of a sink (a *CommitError, where that was to commit), an *AbandonedError, or the cause of the end of ctx.
// With an error, every sink is aborted and nothing is visible but what those that are no
// JointSink have committed before one of them failed.
//
// It is the whole life of the one Worker of a plan that runs in one part.
func Run(ctx context.Context, p *plan.Plan, g *plan.Graph, bind Bindings, env Env) (*Report, error) {
	began := time.Now()
	w, err := NewWorker(p, g, bind, env, whole(p))
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err := w.Prepare(); err != nil {
		return nil, err
	}
	o, err := w.runSubtasks(ctx)
	if err == nil {
		// What exchanges hold is given up before sinks put their output together, and a
		// file of theirs that cannot be removed fails the run.
		err = w.run.teardown()
	}
	if err != nil {
		return nil, also(err, w.Abort())
	}
	if err := w.commit([]*outcome{o}, false); err != nil {
		return nil, err
	}
	report, err := merge(p, []*outcome{o})
	if err != nil {
		return nil, err
	}
	report.Elapsed = time.Since(began)
	return report, nil
}

// also adds what went wrong afterwards to an error, which stays as it is where
// nothing did.
func also(err, more error) error {
	if more == nil {
		return err
	}
	return errors.Join(err, more)
}

// run is what a worker runs: the subtasks of its part of a plan.
type run struct {
	plan    *plan.Plan
	bind    *Bindings
	env     Env
	part    Part
	mine    shared.Range // the subtask indices that run here
	hosts   []int        // the worker of each subtask index
	scratch *scratch
	network transport.Network
	began   time.Time

	budget  *Budget   // of the run
	slots   []*Budget // its parts, of the indices in mine
	runs    []*Budget // the part of each slot that exchanges may hold
	transit transit
	spilled atomic.Int64

	context context.Context // of the subtasks; set under mu
	cancel  context.CancelCauseFunc

	// In vertex order; those of queues stand at their first vertex. Behind them all are those
	// of gangs that took others' place, added under mu.
	subtasks []*subtask
	bodies   []func() error
	gangs    []*gang // the first one of each queue
	running  sync.WaitGroup
	watched  []func() // ends what waits for the end of the run to abort groups; under mu
	inboxes  []*inbox
	ends     receiving
	sides    []*sideInput
	beside   sideMemory // what they hold
	progress []vertexProgress
	started  bool // there are subtasks that ran

	tearing  sync.Once
	tearDown error

	mu       sync.Mutex
	failures failures
	broken   *networkError // the network failed on its own
}

// vertexProgress counts over the subtasks of a vertex.
type vertexProgress struct {
	rows   atomic.Int64
	shards atomic.Int32
}

// record takes the failure of a subtask. The first one ends the run; of the
// others those are kept that are not its consequences.
func (r *run) record(te *TaskError) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.context != nil && r.context.Err() != nil && r.follows(te.Err) {
		return
	}
	r.failures.errs = append(r.failures.errs, te)
	if r.cancel != nil {
		r.cancel(&endedBy{te})
	}
}

// follows tells errors that are due to the end of the run, by itself or by its network,
// from those that may have caused it; mu is held.
func (r *run) follows(err error) bool {
	return followsCancel(err, context.Cause(r.context)) || FollowsPeer(err) ||
		errors.Is(err, transport.ErrClosed) || r.broken != nil && errors.Is(err, r.broken.err)
}

// fail ends the run because the network cannot go on.
func (r *run) fail(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.broken != nil {
		return
	}
	r.broken = &networkError{err}
	if r.cancel != nil {
		r.cancel(r.broken)
	}
}

// begin makes the context of the subtasks. What has failed before, while rows came in
// already, ends it at once.
func (r *run) begin(ctx context.Context) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.context, r.cancel = context.WithCancelCause(ctx)
	switch {
	case len(r.failures.errs) > 0:
		r.cancel(&endedBy{r.failures.errs[0]})
	case r.broken != nil:
		r.cancel(r.broken)
	}
}

// execute builds and runs the subtasks.
func (r *run) execute(ctx context.Context) error {
	r.began = time.Now()
	r.begin(ctx)
	defer r.cancel(nil)
	defer r.closeGroups()
	if err := r.build(); err != nil {
		err = errors.Join(err, r.closeUnstarted())
		if failed := r.outcome(ctx); failed != nil {
			return failed // it ended while the groups of queues came together
		}
		return err
	}
	r.started = true
	for _, g := range r.gangs {
		r.watched = append(r.watched, g.abortOn(r.context))
	}
	defer r.endWatches()
	for i, t := range slices.Clone(r.subtasks) { // others may join them already
		r.running.Go(func() { t.main(r.bodies[i]) })
	}
	if abandoned := r.wait(); len(abandoned) > 0 {
		return &AbandonedError{Functions: abandoned, After: r.env.AbandonAfter, Err: r.outcome(ctx)}
	}
	if err := r.closeSessions(); err != nil && r.outcome(ctx) == nil {
		return err
	}
	return r.outcome(ctx)
}

// makeBudgets splits the memory over the slots that are here.
func (r *run) makeBudgets() {
	r.budget = NewBudget("the run", r.env.MemoryBudget, nil)
	slots := float64(r.part.Slots[len(r.part.Slots)-1].Hi)
	r.budget.share = float64(r.mine.Len()) / slots
	r.beside.budget = r.budget
	for i := r.mine.Lo; i < r.mine.Hi; i++ {
		slot := NewBudget(fmt.Sprintf("slot %d", i), r.env.MemoryBudget/int64(r.mine.Len()), r.budget)
		slot.share = 1 / slots
		r.slots = append(r.slots, slot)
		r.runs = append(r.runs, NewBudget(fmt.Sprintf("the exchanges of slot %d", i), slot.Limit()/2, slot))
	}
	r.transit = newTransit(r.plan, r.env.MemoryBudget, r.mine.Len(), len(r.part.Slots), r.env.Credits)
}

// wait waits for all subtasks. Once the run has ended around them it waits only
// so long, and returns where those are that go on.
func (r *run) wait() (abandoned []string) {
	done := make(chan struct{})
	go func() {
		r.running.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-r.context.Done():
	}
	timer := time.NewTimer(r.env.AbandonAfter)
	defer timer.Stop()
	select {
	case <-done:
		return nil
	case <-timer.C:
	}
	for _, t := range r.all() {
		if !t.finished.Load() {
			abandoned = append(abandoned, t.place())
		}
	}
	return abandoned
}

// all returns the subtasks so far.
func (r *run) all() []*subtask {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.subtasks)
}

// outcome is why the run ended before its end, or nil.
func (r *run) outcome(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	cause := context.Cause(r.context)
	if cause == nil {
		return nil
	}
	// The cause may be the failure of another run, so its type says nothing.
	if ended, ok := cause.(*endedBy); ok && slices.Contains(r.failures.errs, ended.failure) {
		return r.failures.choose()
	}
	if broken, ok := cause.(*networkError); ok && broken == r.broken {
		return broken
	}
	return context.Cause(ctx)
}

// teardown ends the network and gives up what exchanges hold. What an abandoned
// function may be reading, the side inputs, is left to the garbage collector then.
// Again it does nothing.
func (r *run) teardown() error {
	r.tearing.Do(func() {
		errs := []error{r.network.Close()}
		for _, in := range r.inboxes {
			errs = append(errs, in.close())
		}
		if !r.abandoned() {
			for _, s := range r.sides {
				s.drop()
			}
		}
		r.tearDown = errors.Join(errs...)
	})
	return r.tearDown
}

// abandoned says that a function goes on after the run.
func (r *run) abandoned() bool {
	return r.started && slices.ContainsFunc(r.all(), func(t *subtask) bool { return !t.finished.Load() })
}

// closeGroups ends what the groups of queues run in the background. That of the
// members has ended, and their results stand, so that what goes wrong is worth a
// message and no more: the other processes may take their time to leave.
func (r *run) closeGroups() {
	if r.abandoned() {
		return // their members still use them; the process is about to end
	}
	var closing sync.WaitGroup
	for _, g := range r.gangs {
		if g.group == nil {
			continue
		}
		closing.Go(func() {
			if err := g.group.Close(); err != nil && r.context.Err() == nil {
				r.env.Logger.Debug("the processes of a queue did not part at once", "queue", g.queue.Name, "error", err)
			}
		})
	}
	closing.Wait()
}

// closeUnstarted gives up what was built of queues that will not run.
func (r *run) closeUnstarted() error {
	var errs []error
	for _, g := range r.gangs {
		errs = append(errs, g.closeUnstarted())
	}
	return errors.Join(errs...)
}

// guard calls user code outside of subtasks and waits for it. A panic is an error,
// and so is the end of its goroutine: it has one of its own, as that of Run must
// go on to abort the sinks and remove the files.
func guard(f func() error) error {
	err := error(errGoexit)
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if v := recover(); v != nil {
				err = recovered(v)
			}
		}()
		err = f()
	}()
	<-done
	return err
}
