package simulation

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/taskmanager/core"
)

func compareRefs(a, b wire.WorkerRef) int {
	return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Worker, b.Worker))
}

// tmWorker is a worker as its task manager sees it.
type tmWorker struct {
	m       *taskManager
	ref     wire.WorkerRef
	d       *wire.Deployment
	state   core.State
	since   int // number of the state, which changes with it
	child   *workerProcess
	mayStay bool
	failure *wire.Failure
	crashed bool
	exit    *exit
}

// exit says how a process has ended.
type exit struct {
	code   int
	signal string
}

func newTMWorker(m *taskManager, d *wire.Deployment) *tmWorker {
	return &tmWorker{m: m, ref: d.WorkerRef, d: d, mayStay: d.Keep}
}

func (t *tmWorker) slots() int { return t.d.Taken() }

// begin begins with the executable, or with a process that was kept.
func (t *tmWorker) begin(c *workerProcess) {
	if c != nil {
		t.child = c
		t.attach()
		t.step(core.Handed, nil)
		return
	}
	t.m.after(t.m.w.between(time.Millisecond, 30*time.Millisecond), func() { t.step(core.Fetched, nil) })
}

// attach makes the worker hear its process.
func (t *tmWorker) attach() {
	c := t.child
	c.hear = func(f *wire.FromWorker) { t.hear(f) }
	c.exited = func(e exit) {
		t.exit = &e
		t.step(core.Exited, t.causeOfExit())
	}
	c.silent = func() {
		t.step(core.SilentTooLong, nil)
	}
}

// step looks up a trigger in the transition table of the task manager, and carries out the action.
func (t *tmWorker) step(h core.Trigger, f *wire.Failure) { t.stepWith(h, f, nil, nil) }

func (t *tmWorker) stepWith(h core.Trigger, f *wire.Failure, command *wire.ToWorker, event *wire.WorkerEvent) {
	from, move := t.state, lifeTable[t.state][h]
	if move.To != from {
		t.state = move.To
		t.since++
		t.limit()
	}
	switch move.Do {
	case core.Launch:
		t.child = t.m.launch()
		t.attach()
		t.child.tell(&wire.ToWorker{Deployment: t.d})
	case core.Redeploy:
		t.child.tell(&wire.ToWorker{Deployment: t.d})
	case core.Relay, core.Ask:
		t.child.tell(command)
	case core.Drop:
		t.mayStay = command.Cancel.Keep
		t.child.tell(command)
	case core.Report:
		if event.Failed != nil {
			event.Failed = t.signed(event.Failed)
		}
		t.m.tell(*event)
	case core.GiveUp:
		t.failure = f
		t.m.after(0, func() { t.step(core.Unstarted, nil) })
	case core.Kill:
		t.failure = t.reason(h, from, f)
		t.m.w.say("%s kills worker %s: %s", t.m.name, t.ref, h)
		c := t.child
		t.m.w.after(0, func() { c.killed("killed") })
	case core.Keep:
		t.keep()
	case core.End:
		if from != core.Killed {
			t.failure, t.crashed = f, f != nil && t.exit != nil
		}
		t.end()
	}
}

// limit enforces the time limit of the states in which a worker is about to end.
func (t *tmWorker) limit() {
	switch t.state {
	case core.Cancelling, core.FinishingCommit, core.Failed, core.Leaving:
		since := t.since
		t.m.after(grace, func() {
			if t.since == since {
				t.step(core.RanOut, nil)
			}
		})
	}
}

// reason returns the failure of a worker that is killed.
func (t *tmWorker) reason(h core.Trigger, in core.State, given *wire.Failure) *wire.Failure {
	because := func(kind wire.FailureKind, format string, args ...any) *wire.Failure {
		return &wire.Failure{Kind: kind, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case given != nil:
		return given
	case h >= core.SaidBeat && h <= core.SaidGarbage:
		t.m.w.violated("worker %s sent %q while it was %s", t.ref, h, in)
		return because(wire.MisuseFailure, "the worker sent %q while it was %s", h, in)
	case h == core.ToldPrepare || h == core.ToldStart || h == core.ToldCommit:
		return because(wire.ClusterFailure, "the job manager told the worker to %s while it was %s", h, in)
	case h == core.SilentTooLong:
		return because(wire.LostFailure, "the worker was silent, as if it were stopped, and was killed")
	}
	return nil
}

// causeOfExit returns why the process ended without being killed by the task manager, or nil if it
// ended as expected; see taskmanager/ending.go.
func (t *tmWorker) causeOfExit() *wire.Failure {
	e := t.exit
	ending := t.state == core.Failed || t.state == core.Leaving || t.state == core.FinishingCommit || t.state == core.Cancelling
	switch {
	case ending && e.signal == "" && e.code <= 1:
		return nil
	case e.signal != "":
		return &wire.Failure{Kind: wire.LostFailure, Message: "killed by signal: " + e.signal + "; perhaps out of memory"}
	}
	return &wire.Failure{Kind: wire.UserFailure, Message: fmt.Sprintf("user code ended the process (os.Exit) with code %d", e.code)}
}

// signed returns a copy of a failure with its origin.
func (t *tmWorker) signed(f *wire.Failure) *wire.Failure {
	signed := *f
	signed.Worker, signed.TaskManager, signed.ExitCode, signed.Signal = t.ref.Worker, t.m.machine.name, -1, ""
	return &signed
}

// keep ends a worker whose process waits for the next attempt.
func (t *tmWorker) keep() {
	t.m.putKept(t.child, t.ref, t.slots())
	t.child = nil
	delete(t.m.workers, t.ref)
	t.m.tell(wire.WorkerEvent{WorkerRef: t.ref, Ended: &wire.Ended{Kept: true}})
	t.m.mayLeave()
}

// end reports why the worker has ended.
func (t *tmWorker) end() {
	f := t.failure
	if f != nil {
		f = t.signed(f)
		if t.exit != nil {
			f.ExitCode, f.Signal = t.exit.code, t.exit.signal
		}
	}
	delete(t.m.workers, t.ref)
	t.m.w.say("%s: worker %s has ended: %v", t.m.name, t.ref, f)
	if t.crashed {
		t.m.w.byID[t.ref.Job].crashes++
	}
	t.m.tell(wire.WorkerEvent{WorkerRef: t.ref, Ended: &wire.Ended{Failure: f, Crashed: t.crashed}})
	t.m.mayLeave()
}

// execute carries out a command of the job manager.
func (t *tmWorker) execute(c *wire.WorkerCommand) {
	relay := func(h core.Trigger, m *wire.ToWorker) { t.stepWith(h, nil, m, nil) }
	switch {
	case c.Prepare != nil:
		relay(core.ToldPrepare, &wire.ToWorker{Prepare: c.Prepare})
	case c.Start != nil:
		relay(core.ToldStart, &wire.ToWorker{Start: c.Start})
	case c.Commit != nil:
		relay(core.ToldCommit, &wire.ToWorker{Commit: c.Commit})
	case c.Save != nil:
		relay(core.ToldSave, &wire.ToWorker{Save: c.Save})
	case c.Unwritten != nil:
		relay(core.ToldSave, &wire.ToWorker{Unwritten: c.Unwritten})
	case c.Cancel != nil:
		relay(core.ToldCancel, &wire.ToWorker{Cancel: c.Cancel})
	case c.Exit != nil:
		relay(core.ToldExit, &wire.ToWorker{Exit: c.Exit})
	case c.Kill != nil:
		t.step(core.ToldKill, nil)
	}
}

// hear processes a frame of the worker.
func (t *tmWorker) hear(f *wire.FromWorker) {
	e := &wire.WorkerEvent{WorkerRef: t.ref, Ready: f.Ready, Resolved: f.Resolved, Prepared: f.Prepared, Progress: f.Progress, Saved: f.Saved,
		Checkpointed: f.Checkpointed, Finished: f.Finished, Committed: f.Committed, Failed: f.Failed}
	var h core.Trigger
	switch {
	case f.Ready != nil:
		h = core.SaidReady
	case f.Resolved != nil:
		h = core.SaidResolved
	case f.Prepared != nil:
		h = core.SaidPrepared
	case f.Progress != nil:
		h = core.SaidProgress
	case f.Saved != nil:
		h = core.SaidSaved
	case f.Checkpointed != nil:
		h = core.SaidCheckpointed
	case f.Finished != nil:
		h = core.SaidFinished
	case f.Committed != nil:
		h = core.SaidCommitted
	case f.Failed != nil:
		h = core.SaidFailed
	case f.Kept != nil && !t.mayStay:
		h = core.SaidGarbage
	case f.Kept != nil && t.exit != nil:
		h = core.SaidBeat
	case f.Kept != nil:
		h = core.SaidKept
	default:
		h = core.SaidBeat
	}
	t.stepWith(h, nil, nil, e)
}

// keptChild is a process that waits for the next attempt of its job; see taskmanager/kept.go.
type keptChild struct {
	m     *taskManager
	child *workerProcess
	ref   wire.WorkerRef
	slots int
}

// keepFor is how long such a process waits.
const keepFor = time.Minute

// putKept adds a process, and dismisses one that an earlier attempt of the job has left.
func (m *taskManager) putKept(c *workerProcess, ref wire.WorkerRef, slots int) {
	for _, k := range slices.Clone(m.kept) {
		if k.ref.Job == ref.Job {
			k.end(false)
		}
	}
	k := &keptChild{m, c, ref, slots}
	m.kept = append(m.kept, k)
	c.hear = func(f *wire.FromWorker) {
		if f.Beat == nil {
			k.end(true)
		}
	}
	c.exited = func(exit) { k.remove() }
	c.silent = func() { k.end(true) }
	m.after(keepFor, func() {
		if slices.Contains(m.kept, k) {
			k.end(false)
		}
	})
	if m.stopping {
		k.end(true)
	}
}

// remove removes the process from those that wait. The job manager learns of that at once.
func (k *keptChild) remove() {
	m := k.m
	m.kept = slices.DeleteFunc(m.kept, func(o *keptChild) bool { return o == k })
	m.after(0, func() {
		m.outbox.Beat()
		m.flush()
		m.mayLeave()
	})
}

// listsKept returns the workers whose processes wait.
func (m *taskManager) listsKept() (all []wire.WorkerRef) {
	for _, k := range m.kept {
		all = append(all, k.ref)
	}
	return all
}

// end tells the process to exit, or kills it.
func (k *keptChild) end(now bool) {
	k.remove()
	c := k.child
	c.hear, c.exited = func(*wire.FromWorker) {}, func(exit) {}
	c.silent = func() { c.m.w.after(0, func() { c.killed("killed") }) }
	if now {
		k.m.w.after(0, func() { c.killed("killed") })
		return
	}
	c.tell(&wire.ToWorker{Exit: &wire.Exit{}})
	k.m.after(grace, func() { k.m.w.after(0, func() { c.killed("killed") }) })
}

// takeKept returns the process that waits for the next attempt of a job, or nil.
func (m *taskManager) takeKept(job jobID) *workerProcess {
	for _, k := range m.kept {
		if k.ref.Job == job {
			k.remove()
			if k.child.dead {
				return nil
			}
			return k.child
		}
	}
	return nil
}

// commandKept carries out a command for a worker that has kept its process.
func (m *taskManager) commandKept(c *wire.WorkerCommand) bool {
	for _, k := range m.kept {
		if k.ref != c.WorkerRef {
			continue
		}
		switch {
		case c.Kill != nil:
			k.end(true)
		case c.Exit != nil, c.Cancel != nil && !c.Cancel.Keep:
			k.end(false)
		default:
			return c.Cancel != nil
		}
		return true
	}
	return false
}

// makeRoom dismisses processes that had slots until those that are left had at most free slots.
func (m *taskManager) makeRoom(free int) {
	for {
		n := 0
		for _, k := range m.kept {
			n += k.slots
		}
		first := slices.IndexFunc(m.kept, func(k *keptChild) bool { return k.slots > 0 })
		if first < 0 || n <= free {
			return
		}
		m.kept[first].end(false)
	}
}
