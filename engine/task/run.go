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
	"github.com/superstep-ml/superstep/shared/sharding"
)

// Run runs a plan in this process and returns when everything has ended. Every goroutine,
// exchange and temporary file is gone then, whether the run succeeded or not, except for what
// an *AbandonedError names. g is the graph that the plan was compiled from, or nil.
//
// The error is one of the bindings (nothing was started), a *TaskError, the failure of a sink
// (a *CommitError if it failed to commit), an *AbandonedError, or the cause of the end of ctx.
// With an error, every sink is aborted. Nothing is visible except the output of Sinks that are
// no JointSink and had committed before one of them failed.
//
// It runs one Worker that has the whole plan.
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
		// What exchanges hold is released before sinks assemble their output. A file that
		// cannot be removed fails the run.
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

// also joins a later error to err. It returns err unchanged if there is none.
func also(err, more error) error {
	if more == nil {
		return err
	}
	return errors.Join(err, more)
}

// run is what a worker runs: the subtasks of its part of a plan.
type run struct {
	plan         *plan.Plan
	bind         *Bindings
	env          Env
	part         Part
	subtaskRange sharding.Range // the subtask indices that run here
	hosts        []int          // the worker of each subtask index
	scratch      *scratch
	network      transport.Network
	began        time.Time

	budget  *Budget   // of the run
	slots   []*Budget // its shares, for the indices in subtaskRange
	runs    []*Budget // the share of each slot that exchanges may hold
	transit transit
	spilled atomic.Int64

	context context.Context // of the subtasks; set under mu
	cancel  context.CancelCauseFunc

	// In vertex order. Subtasks of queues are at their first vertex. Those of later gangs are
	// appended, under mu.
	subtasks   []*subtask
	bodies     []func() error
	gangs      []*gang // the first gang of each queue
	running    sync.WaitGroup
	watched    []func() // end the goroutines that abort groups at the run's end; under mu
	inboxes    []*inbox
	ends       receiving
	sides      []*sideInput
	sideMemory sideMemory // memory of the side inputs
	progress   []vertexProgress
	started    bool // subtasks have run

	tearDownOnce sync.Once
	tearDown     error

	mu       sync.Mutex
	failures failures
	broken   *networkError // the network failed on its own
}

// vertexProgress counts over the subtasks of a vertex.
type vertexProgress struct {
	rows   atomic.Int64
	shards atomic.Int32
}

// record takes the failure of a subtask. The first failure ends the run. Others are kept unless
// they are consequences of the first.
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

// follows reports whether an error is a consequence of the end of the run or of its network;
// other errors may have caused it. mu is held.
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

// begin makes the context of the subtasks. An earlier failure, while rows came in already, ends
// it at once.
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
			return failed // the run ended while the groups of queues connected
		}
		return err
	}
	r.started = true
	for _, g := range r.gangs {
		r.watched = append(r.watched, g.abortOn(r.context))
	}
	defer r.endWatches()
	for i, t := range slices.Clone(r.subtasks) { // later gangs may be appended meanwhile
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

// makeBudgets splits the memory over the slots of this process.
func (r *run) makeBudgets() {
	r.budget = NewBudget("the run", r.env.MemoryBudget, nil)
	slots := float64(r.part.Slots[len(r.part.Slots)-1].Hi)
	r.budget.share = float64(r.subtaskRange.Len()) / slots
	r.sideMemory.budget = r.budget
	for i := r.subtaskRange.Lo; i < r.subtaskRange.Hi; i++ {
		slot := NewBudget(fmt.Sprintf("slot %d", i), r.env.MemoryBudget/int64(r.subtaskRange.Len()), r.budget)
		slot.share = 1 / slots
		r.slots = append(r.slots, slot)
		r.runs = append(r.runs, NewBudget(fmt.Sprintf("the exchanges of slot %d", i), slot.Limit()/2, slot))
	}
	r.transit = newTransit(r.plan, r.env.MemoryBudget, r.subtaskRange.Len(), len(r.part.Slots), r.env.Credits)
}

// wait waits for all subtasks. Once the run has ended it waits at most AbandonAfter, and
// returns the places of the subtasks that are still running.
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

// outcome returns why the run ended early, or nil.
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

// teardown ends the network and releases what exchanges hold. Side inputs that an abandoned
// function may be reading are left to the garbage collector. A second call does nothing.
func (r *run) teardown() error {
	r.tearDownOnce.Do(func() {
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

// abandoned reports whether a function goes on after the run.
func (r *run) abandoned() bool {
	return r.started && slices.ContainsFunc(r.all(), func(t *subtask) bool { return !t.finished.Load() })
}

// closeGroups ends the goroutines of the groups of queues. The members have ended and their
// results are final, so an error is only logged: the other processes may take their time to
// leave.
func (r *run) closeGroups() {
	if r.abandoned() {
		return // members still use them; the process is about to end
	}
	var closing sync.WaitGroup
	for _, g := range r.gangs {
		if g.group == nil {
			continue
		}
		closing.Go(func() {
			if err := g.group.Close(); err != nil && r.context.Err() == nil {
				r.env.Logger.Debug("the processes of a queue did not all leave at once", "queue", g.queue.Name, "error", err)
			}
		})
	}
	closing.Wait()
}

// closeUnstarted closes the parts of queues that will not run.
func (r *run) closeUnstarted() error {
	var errs []error
	for _, g := range r.gangs {
		errs = append(errs, g.closeUnstarted())
	}
	return errors.Join(errs...)
}

// guard calls user code outside of subtasks and waits for it. It turns a panic and the end of
// the goroutine into an error. The code has a goroutine of its own, as that of Run must go on
// to abort the sinks and remove the files.
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
