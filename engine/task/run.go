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

// Run runs a plan in this process. When it returns, all its goroutines have ended, and its
// exchanges and temporary files are removed, whether the run succeeded or not. The exception is
// an *AbandonedError, which names functions that are still running. g is the graph from which
// the plan was compiled, or nil.
//
// The error is one of the following: a mistake in the bindings, after which nothing was started;
// a *TaskError; the failure of a sink, which is a *CommitError if the sink failed to commit; an
// *AbandonedError; the cause of the end of ctx. After an error all sinks are aborted, and no
// output is visible except the outputs of Sinks that are not JointSinks and had committed before
// another sink failed.
//
// Run uses one Worker that has the whole plan.
func Run(ctx context.Context, p *plan.Plan, g *plan.Graph, bind Bindings, env Env) (*Report, error) {
	began := time.Now()
	w, err := NewWorker(p, g, bind, env, Whole(p))
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
		// The memory and files of exchanges are released before sinks assemble their output. The
		// run fails if a file cannot be removed.
		err = w.run.teardown()
	}
	if err != nil {
		return nil, joinError(err, w.Abort())
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

// joinError joins more, a later error, to err. It returns err unchanged if more is nil.
func joinError(err, more error) error {
	if more == nil {
		return err
	}
	return errors.Join(err, more)
}

// run is the state of a worker that runs the subtasks of its part of a plan.
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

	budget          *Budget   // of the run
	slots           []*Budget // the share of budget of each subtask index in subtaskRange
	exchangeBudgets []*Budget // the part of each slot's budget that exchanges may hold
	transit         transit
	spilled         atomic.Int64

	context context.Context // of the subtasks; set under mu
	cancel  context.CancelCauseFunc

	// subtasks and bodies are in vertex order; the subtasks of a queue belong to its first
	// vertex. The subtasks of later gangs are appended, under mu.
	subtasks   []*subtask
	bodies     []func() error
	gangs      []*gang // the first gang of each queue
	running    sync.WaitGroup
	abortStops []func() // stop functions of abortOn; under mu
	inboxes    []*inbox
	receivers  receiving
	sides      []*sideInput
	sideMemory sideMemory // memory of the side inputs
	progress   []vertexProgress
	started    bool          // subtasks have run
	continued  *continuation // what the run leaves out; nil if it leaves out nothing
	passed     []string      // queues that are left out and whose reports this process has kept
	handovers  []*handover   // rows that this process sends to others

	tearDownOnce sync.Once
	tearDown     error

	mu       sync.Mutex
	failures failures
	broken   *networkError // the network failed on its own
}

// vertexProgress counts rows and shards over the subtasks of a vertex.
type vertexProgress struct {
	rows   atomic.Int64
	shards atomic.Int32
}

// record records the failure of a subtask. The first failure ends the run. Later failures are
// kept unless they are consequences of the first.
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

// follows reports whether err is a consequence of the end of the run or of its network, and not
// its cause. mu is held.
func (r *run) follows(err error) bool {
	return followsCancel(err, context.Cause(r.context)) || FollowsPeer(err) ||
		errors.Is(err, transport.ErrClosed) || r.broken != nil && errors.Is(err, r.broken.err)
}

// fail ends the run because its network has failed.
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

// begin makes the context of the subtasks. If the run has failed already, as receiving rows may
// fail before begin, the context ends at once.
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
	if r.continued == nil { // the run makes all rows
		r.env.Retained.releaseRows(func(string, int) bool { return false })
	}
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
		r.abortStops = append(r.abortStops, g.abortOn(r.context))
	}
	defer r.endWatches()
	r.resendSides()
	r.sendMoved()
	if r.part.gives() {
		r.awaitTaken()
	}
	for i, t := range slices.Clone(r.subtasks) { // later gangs may be appended meanwhile
		r.running.Go(func() { t.main(r.bodies[i]) })
	}
	if abandoned := r.wait(); len(abandoned) > 0 {
		r.env.Retained.abandon()
		return &AbandonedError{Functions: abandoned, After: r.env.AbandonAfter, Err: r.outcome(ctx)}
	}
	failed := r.outcome(ctx)
	if failed != nil && r.env.Retained != nil {
		r.env.Retained.harvest(r)
	}
	if err := r.closeSessions(); err != nil && failed == nil {
		return err
	}
	return failed
}

// makeBudgets splits the memory over the slots of this process.
func (r *run) makeBudgets() {
	if r.budget = r.env.Budget; r.budget == nil {
		r.budget = NewBudget("the run", r.env.MemoryBudget, nil)
	}
	slots := float64(r.part.Slots[len(r.part.Slots)-1].Hi)
	r.budget.share = float64(r.subtaskRange.Len()) / slots
	r.sideMemory.budget = r.budget
	for i := r.subtaskRange.Lo; i < r.subtaskRange.Hi; i++ {
		slot := NewBudget(fmt.Sprintf("slot %d", i), r.env.MemoryBudget/int64(r.subtaskRange.Len()), r.budget)
		slot.share = 1 / slots
		r.slots = append(r.slots, slot)
		r.exchangeBudgets = append(r.exchangeBudgets, NewBudget(fmt.Sprintf("the exchanges of slot %d", i), slot.Limit()/2, slot))
	}
	r.transit = newTransit(r.plan, 0, r.env.MemoryBudget, r.subtaskRange.Len(), len(r.part.Slots), r.env.Credits)
}

// wait waits for all subtasks. Once the run has ended it waits at most AbandonAfter, and
// returns descriptions of the subtasks that are still running.
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
	for _, t := range r.allSubtasks() {
		if !t.finished.Load() {
			abandoned = append(abandoned, t.place())
		}
	}
	return abandoned
}

// allSubtasks returns the subtasks that exist so far.
func (r *run) allSubtasks() []*subtask {
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
	// The cause may be the failure of another run, if that ended ctx. Its type alone therefore
	// does not show that it is a failure of this run.
	if ended, ok := cause.(*endedBy); ok && slices.Contains(r.failures.errs, ended.failure) {
		return r.failures.choose()
	}
	if broken, ok := cause.(*networkError); ok && broken == r.broken {
		return broken
	}
	return context.Cause(ctx)
}

// teardown closes the network and releases what exchanges hold. Side inputs that an abandoned
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

// abandoned reports whether a subtask is still running. It is called after wait.
func (r *run) abandoned() bool {
	return r.started && slices.ContainsFunc(r.allSubtasks(), func(t *subtask) bool { return !t.finished.Load() })
}

// closeGroups ends the goroutines of the groups of queues. The members have ended and their
// results are final, so an error is only logged. An error is possible because other processes
// may leave a group much later.
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

// closeUnstarted closes the gangs of queues, which will not run.
func (r *run) closeUnstarted() error {
	var errs []error
	for _, g := range r.gangs {
		errs = append(errs, g.closeUnstarted())
	}
	return errors.Join(errs...)
}

// guard calls user code outside of subtasks and waits for it. It turns a panic and the end of
// the goroutine into an error. The code runs on a goroutine of its own: if it ends that
// goroutine, the goroutine of Run must still abort the sinks and remove the files.
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
