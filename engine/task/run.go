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
)

// Run runs a plan in this process and returns when everything has ended: every
// goroutine, exchange and temporary file is gone then, whether it succeeded or
// not, but for what an *AbandonedError names. g is the graph the plan was compiled
// from, or nil.
//
// The result is an error of the bindings (nothing was started), a *TaskError,
// the failure of a sink, an *AbandonedError, or the cause of the end of ctx.
// With an error, every sink is aborted and nothing was committed but by sinks
// before one whose Commit failed.
func Run(ctx context.Context, p *plan.Plan, g *plan.Graph, bind Bindings, env Env) (*Report, error) {
	if env.Network != nil {
		defer env.Network.Close() // also where nothing is started; closing again does nothing
	}
	if p == nil {
		return nil, errors.New("there is no plan to run")
	}
	if g != nil && g.Fingerprint() != p.Fingerprint {
		return nil, fmt.Errorf("the plan of job %q was compiled from another graph: its fingerprint is %s, the graph's %s", p.Job, p.Fingerprint, g.Fingerprint())
	}
	if err := checkBindings(p, &bind); err != nil {
		return nil, err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	r := &run{plan: p, bind: &bind, env: env.withDefaults(), progress: make([]vertexProgress, len(p.Vertices))}
	began := time.Now()
	scratch, err := newScratch(env.SpillDir)
	if err != nil {
		return nil, err
	}
	r.scratch = scratch
	defer func() {
		if err := scratch.remove(); err != nil {
			r.env.Logger.Warn("temporary files are left over", "directory", scratch.dir, "error", err)
		}
	}()
	if err := r.withSinks(func() error { return r.execute(ctx) }); err != nil {
		return nil, err
	}
	report := r.report()
	report.Elapsed = time.Since(began)
	return report, nil
}

// run is the state of one Run.
type run struct {
	plan    *plan.Plan
	bind    *Bindings
	env     Env
	scratch *scratch

	context context.Context // of the subtasks
	cancel  context.CancelCauseFunc
	network transport.Network

	budget  *Budget   // of the run
	slots   []*Budget // its parts
	runs    []*Budget // the part of each slot that exchanges may hold
	spilled atomic.Int64

	subtasks []*subtask // in vertex order; those of queues stand at their first vertex
	bodies   []func() error
	gangs    []*gang
	inboxes  []*inbox
	sides    []*sideInput
	progress []vertexProgress

	mu       sync.Mutex
	failures failures
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
	if r.context.Err() != nil && followsCancel(te.Err, context.Cause(r.context)) {
		return
	}
	r.failures.errs = append(r.failures.errs, te)
	r.cancel(te)
}

// execute builds and runs the subtasks.
func (r *run) execute(ctx context.Context) error {
	r.context, r.cancel = context.WithCancelCause(ctx)
	defer r.cancel(nil)
	r.makeBudgets()
	r.network = r.env.Network
	if r.network == nil {
		r.network = transport.NewMem(r.env.Credits)
	}
	if err := r.build(); err != nil {
		return errors.Join(err, r.teardown(true))
	}
	for _, g := range r.gangs {
		stop := g.abortOn(r.context)
		defer stop()
	}
	var running sync.WaitGroup
	for i, t := range r.subtasks {
		running.Go(func() { t.main(r.bodies[i]) })
	}
	abandoned := r.wait(&running)
	if len(abandoned) > 0 {
		_ = r.teardown(false)
		return &AbandonedError{Functions: abandoned, After: r.env.AbandonAfter, Err: r.outcome(ctx)}
	}
	err := r.teardown(false)
	if failed := r.outcome(ctx); failed != nil {
		return failed
	}
	return err
}

// makeBudgets splits the memory over the slots.
func (r *run) makeBudgets() {
	r.budget = NewBudget("the run", r.env.MemoryBudget, nil)
	slots := max(r.plan.Slots, 1)
	for i := range slots {
		slot := NewBudget(fmt.Sprintf("slot %d", i), r.env.MemoryBudget/int64(slots), r.budget)
		r.slots = append(r.slots, slot)
		r.runs = append(r.runs, NewBudget(fmt.Sprintf("the exchanges of slot %d", i), slot.Limit()/2, slot))
	}
}

// wait waits for all subtasks. Once the run has ended around them it waits only
// so long, and returns where those are that go on.
func (r *run) wait(running *sync.WaitGroup) (abandoned []string) {
	done := make(chan struct{})
	go func() {
		running.Wait()
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
	for _, t := range r.subtasks {
		if !t.finished.Load() {
			abandoned = append(abandoned, t.place())
		}
	}
	return abandoned
}

// outcome is why the run ended before its end, or nil.
func (r *run) outcome(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	cause := context.Cause(r.context)
	if cause == nil {
		return nil
	}
	// The cause may be a *TaskError of another run, so its type says nothing.
	if te, ok := cause.(*TaskError); ok && slices.Contains(r.failures.errs, te) {
		return r.failures.choose()
	}
	return context.Cause(ctx)
}

// teardown ends the network and gives up what exchanges hold. What an abandoned
// function may be reading, the side inputs, is left to the garbage collector
// then. unstarted says that no subtask was started.
func (r *run) teardown(unstarted bool) error {
	errs := []error{r.network.Close()}
	for _, in := range r.inboxes {
		errs = append(errs, in.close())
	}
	if slices.ContainsFunc(r.subtasks, func(t *subtask) bool { return !unstarted && !t.finished.Load() }) {
		return errors.Join(errs...)
	}
	for _, s := range r.sides {
		s.drop()
	}
	if unstarted {
		for _, g := range r.gangs {
			errs = append(errs, g.closeUnstarted())
		}
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

// withSinks begins the sinks, runs f, and commits them, each step in the order
// of nodes; where anything fails, those not committed are aborted.
func (r *run) withSinks(f func() error) error {
	var nodes []*plan.Node
	for i := range r.plan.Nodes {
		if r.bind.Sinks[r.plan.Nodes[i].ID] != nil {
			nodes = append(nodes, &r.plan.Nodes[i])
		}
	}
	begun := 0
	abort := func(err error, from int) error {
		for _, n := range nodes[from:begun] {
			if failed := guard(r.bind.Sinks[n.ID].Abort); failed != nil {
				err = errors.Join(err, r.sinkError(n, "remove what was written", failed))
			}
		}
		return err
	}
	for _, n := range nodes {
		if err := guard(r.bind.Sinks[n.ID].Begin); err != nil {
			return abort(r.sinkError(n, "begin", err), 0)
		}
		begun++
	}
	if err := f(); err != nil {
		return abort(err, 0)
	}
	for i, n := range nodes {
		if err := guard(r.bind.Sinks[n.ID].Commit); err != nil {
			return abort(r.sinkError(n, "commit", err), i)
		}
	}
	return nil
}

// sinkError says which sink failed at what.
func (r *run) sinkError(n *plan.Node, step string, err error) error {
	site := ""
	if n.Site != "" {
		site = " (" + n.Site + ")"
	}
	return fmt.Errorf("operator %s%s, %s: %w", operatorName(n), site, step, err)
}
