package core

import (
	"cmp"
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// endOrder says which command to end a worker has got.
type endOrder int

const (
	notOrdered    endOrder = iota
	orderedCancel          // Cancel: the worker must stop its subtasks and end
	orderedKeep            // Cancel with Keep: it must stop its subtasks, and keeps its process for the next attempt
	orderedExit            // Exit: the worker has no more work and must end
	orderedKill            // Kill: the worker's process must be killed
)

// worker is the state of a worker process of a job, from its deployment until the process has
// ended.
type worker struct {
	ref         wire.WorkerRef
	job         *job
	taskManager *taskManager
	slots       int // number of slots of the task manager that the worker holds; 0 for a giver
	mode        wire.WorkerMode
	takes       bool // it is a taker (precopy.go)
	state       WorkerState

	// pending is the command to start the worker, until it is sent. It is not sent before the
	// attempt is on record.
	pending *wire.Deployment
	// awaited says that the worker was deployed by a former job manager, and that its task
	// manager has not registered since.
	awaited bool

	ordered endOrder
	reason  string        // reason in the Cancel that was sent to the worker
	killAt  time.Duration // counted time after which the worker is killed, if it has got a command to end
	heard   bool          // the worker has sent a report since it got the command to start

	beat    uint64        // number of the task manager's last heartbeat that listed the worker
	missing bool          // the last heartbeat did not list the worker
	missed  time.Duration // counted time of the first heartbeat that did not list the worker

	fingerprint string
	held        []byte // what its process has kept of earlier attempts, as it has said in Ready
	toldHeld    bool   // it has said that to this job manager
	progress    *wire.Progress
	opened      bool   // it has read the rows of a queue
	address     string // where a taker can be reached, once it is ready
}

// deploy prepares the command to start the worker of job j with the given number on task manager
// n, where it takes slots at once. release sends the command when the attempt is on record.
func (c *Core) deploy(j *job, n *taskManager, mode wire.WorkerMode, number int, all []wire.SlotRange) *worker {
	slots := all[number].Hi - all[number].Lo
	w := &worker{
		ref:         wire.WorkerRef{Job: j.info.ID, Attempt: j.info.Attempt, Worker: number},
		job:         j,
		taskManager: n,
		slots:       slots,
		mode:        mode,
	}
	n.workers[w.ref] = w
	n.used += slots
	j.processes++
	spec := j.spec
	spec.Parallelism = j.info.Parallelism
	w.pending = &wire.Deployment{
		WorkerRef:   w.ref,
		Mode:        mode,
		Spec:        spec,
		Slots:       all,
		TaskManager: n.Name,
		Listen:      n.Host,
		Advertise:   n.Host,
		Memory:      n.memory(slots),
		Resume:      j.info.Saves,
		Keep:        mode == wire.RunMode && j.restarts.settings.Strategy != wire.RestartNone,
		Silence:     c.config.Detection,
	}
	return w
}

// memory returns the memory of a worker with so many slots.
func (n *taskManager) memory(slots int) int64 {
	return n.Memory / int64(n.Slots) * int64(max(1, slots))
}

// release sends the command to start a worker if the attempt is on record and the task manager
// is connected. If it is not connected, the command is sent when it is back.
func (c *Core) release(w *worker) {
	if w == nil || w.pending == nil || w.job.onRecord != w.ref.Attempt || w.taskManager.conn == 0 {
		return
	}
	c.send(w.taskManager, wire.ToTaskManager{Deploy: w.pending})
	w.pending = nil
	w.job.forgetKept(w.taskManager) // the worker takes the process over
}

// command sends a worker a command.
func (c *Core) command(w *worker, cmd wire.WorkerCommand) {
	cmd.WorkerRef = w.ref
	c.send(w.taskManager, wire.ToTaskManager{Worker: &cmd})
}

// repeatCommands sends again those commands to worker w that may have been lost with a broken
// connection. Workers ignore repeated commands.
func (c *Core) repeatCommands(w *worker) {
	j := w.job
	switch {
	case w.ordered == orderedKill:
		c.command(w, wire.WorkerCommand{Kill: &wire.Kill{}})
	case w.ordered == orderedExit:
		c.command(w, wire.WorkerCommand{Exit: &wire.Exit{}})
	case w.ordered == orderedCancel, w.ordered == orderedKeep:
		c.command(w, wire.WorkerCommand{Cancel: &wire.Cancel{Reason: w.reason, Keep: w.ordered == orderedKeep}})
	case w.state == WorkerReady && j.preparing && w.ref.Worker == 0:
		c.command(w, wire.WorkerCommand{Prepare: &wire.Prepare{Held: j.held()}})
	case w.state == WorkerRunning && !w.heard && !j.awaitsHeld:
		c.command(w, wire.WorkerCommand{Start: j.start()})
		c.repeatSaves(w)
	case w.state == WorkerRunning:
		c.repeatSaves(w)
	case (w.state == WorkerFinished || w.mode == wire.CommitMode && w.state == WorkerReady) && j.committing && w.ref.Worker == 0:
		c.command(w, wire.WorkerCommand{Commit: &wire.Commit{Outcomes: j.outcomes}})
	}
}

// reported processes a task manager's report of a worker. If an unknown worker runs, it is
// killed, because its job or attempt has ended.
func (c *Core) reported(e Reported) {
	n := c.hear(e.Conn)
	if n == nil {
		return
	}
	w := n.workers[e.WorkerRef]
	if w == nil {
		if e.Ended == nil || e.Ended.Kept {
			c.kill(n, e.WorkerRef)
		}
		return
	}
	w.heard = w.heard || w.state == WorkerRunning
	switch {
	case e.Progress != nil:
		c.progressed(w, e.Progress)
	case e.Checkpointed != nil:
		c.checkpointed(w, e.Checkpointed)
	case e.Ended != nil && e.Ended.Kept:
		c.workerKept(w)
	case e.Ended != nil:
		how := lost
		if e.Ended.Crashed {
			how = crashed
		}
		c.workerGone(w, processEnded, e.Ended.Failure, how)
	case e.Failed != nil:
		if c.applyReport(w, saidFailed) {
			c.workerFailed(w, e.Failed, notEnded)
		}
	case e.Ready != nil:
		if w.job.awaitsHeld {
			c.heldAgain(w, e.Ready.Held)
		}
		if c.applyReport(w, saidReady) {
			c.ready(w, e.Ready)
		}
	case e.Resolved != nil:
		if c.applyReport(w, saidResolved) {
			c.resolved(w, e.Resolved.Graph)
		}
	case e.Prepared != nil:
		if c.applyReport(w, saidPrepared) && w.job.info.State == wire.JobDeploying {
			w.job.info.Origin = e.Prepared.Origin
			c.startReady(w.job)
		}
	case e.Saved != nil:
		c.saved(w, e.Saved)
	case e.Finished != nil:
		if c.applyReport(w, saidFinished) {
			c.finished(w, e.Finished.Outcome)
		}
	case e.Committed != nil:
		if c.applyReport(w, saidCommitted) {
			c.committed(w.job)
		}
	}
}

// applyReport moves a worker to the state that follows its state on report e. It returns
// whether the report was new; a repeated report is not new. A report that is not allowed in the
// worker's state fails the worker.
func (c *Core) applyReport(w *worker, e workerEvent) bool {
	next, ok := workerTable.next(w.state, e)
	if ok && w.expects(e) {
		w.state = next
		return true
	}
	switch {
	case e.repeats(w.state):
	case w.job.adopted && w.state < WorkerRunning:
		// The former job manager had started the workers, but its record does not say so.
		c.workerFailed(w, lostFailure("the job manager restarted while it started the workers"), lost)
	default:
		c.workerFailed(w, &wire.Failure{
			Kind:     wire.ClusterFailure,
			Message:  fmt.Sprintf("the worker reported %q out of turn, while it was %s", e, w.state),
			ExitCode: -1,
		}, notEnded)
	}
	return false
}

// expects reports whether a worker may report e in its mode and after the commands that it has
// got.
func (w *worker) expects(e workerEvent) bool {
	switch e {
	case saidResolved:
		return w.mode == wire.ResolveMode
	case saidReady:
		return w.mode != wire.ResolveMode
	case saidPrepared:
		return w.ref.Worker == 0 && (w.job.preparing || w.job.adopted)
	case saidCommitted:
		return w.ref.Worker == 0 && w.job.committing
	}
	return true
}

// stop sends a worker the command how, by which it must end, and sets the time after which the
// worker is killed. It sends nothing to a worker that has failed, because such a worker ends by
// itself, or to a worker that has already got a command to end.
func (c *Core) stop(w *worker, how endOrder, reason string) {
	if w == nil || w.state.Gone() || w.ordered != notOrdered {
		return
	}
	w.ordered, w.reason, w.killAt = how, reason, c.clock.Counted()+c.config.KillAfter
	if w.pending != nil {
		c.workerGone(w, processEnded, nil, lost) // its task manager does not know it
		return
	}
	if w.state != WorkerFailed {
		c.repeatCommands(w)
	}
}

// killLate sends the command to kill a worker that has not ended in time, and repeats the
// command until the worker ends.
func (c *Core) killLate(w *worker) {
	if w == nil || w.state.Gone() || w.ordered == notOrdered || c.clock.Counted() < w.killAt {
		return
	}
	w.ordered, w.killAt = orderedKill, c.clock.Counted()+c.config.KillAfter
	c.repeatCommands(w)
}

// workerGone removes a worker that has ended or was lost from its task manager. f says why the
// worker ended; it is nil if the worker ended on command.
func (c *Core) workerGone(w *worker, e workerEvent, f *wire.Failure, how ending) {
	before := w.state
	next, ok := workerTable.next(before, e)
	if !ok {
		return
	}
	w.state = next
	if how == lost && w.taskManager.departure != nil {
		how = announced
	}
	if w.died(before, f, how) {
		c.avoid.died(death{at: c.clock.Counted(), job: w.ref.Job, taskManager: w.taskManager.ID})
	}
	delete(w.taskManager.workers, w.ref)
	w.taskManager.used -= w.slots
	w.job.processes--
	c.rethink = true
	if e == managerLost && w.pending == nil {
		c.fence(w)
	}
	w.pending = nil
	if w.awaited {
		w.awaited = false
		w.job.awaited--
	}
	left := w.gives() && before == WorkerFinished && w.ref.Attempt == w.job.info.Attempt && w.job.haveBegun()
	if left && c.giverLeft(w) {
		c.record(w.job, false)
	}
	if w.takes {
		c.precopyDue(w.job)
	} else if left || w.ordered != notOrdered || before == WorkerResolved || before == WorkerFailed && e == processEnded {
		// The worker had got a command to end or had reported that it would end. The way in
		// which its process ended may explain the cause of the job's failure.
		w.job.learn(w, f)
	} else {
		c.workerDied(w, e, cmp.Or(f, lostFailure(fmt.Sprintf("the worker ended too early, while it was %s", before))), how)
	}
	c.settle(w.job)
}

// workerDied decides how a job continues after one of its workers ended or was lost
// unexpectedly.
func (c *Core) workerDied(w *worker, e workerEvent, f *wire.Failure, how ending) {
	if w.commits() && (f.Kind == wire.LostFailure || f.Kind == wire.UnheardFailure) {
		c.orphaned(w, e, f)
		return
	}
	if f.Kind == wire.MisuseFailure || f.Kind == wire.ClusterFailure {
		how = notEnded // the executable or the cluster does not work, and another attempt would fail too
	}
	c.workerFailed(w, f, how)
}

// lostFailure returns a failure of kind LostFailure with the given message.
func lostFailure(message string) *wire.Failure {
	return &wire.Failure{Kind: wire.LostFailure, Message: message, ExitCode: -1}
}
