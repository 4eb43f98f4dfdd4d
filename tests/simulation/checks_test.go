package simulation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/engine/origin"
	"github.com/superstep-ml/superstep/engine/workerlife"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/taskmanager/core"
)

// checkSent requires that an attempt is on record before its workers are deployed, and that a job is on
// record as committing before it commits. The job manager tells a worker without slots to exit while its job runs
// when it is on record that the job goes on without it.
func (w *world) checkSent(m *jobManager, c *managerConn, message wire.ToTaskManager) {
	switch d := message.Deploy; {
	case d != nil:
		w.say("deploy %s on %s, slots %v", d.WorkerRef, c.who.Name, d.Slots)
		if on := w.manager.disk.attempts[d.Job]; on != d.Attempt {
			w.violated("worker %s is deployed, and attempt %d is on record", d.WorkerRef, on)
		}
		if k := w.byID[d.Job]; k.sinks.visible != nil && d.Mode == wire.RunMode {
			w.violated("worker %s is deployed, and the outputs of its job are visible", d.WorkerRef)
		}
		w.checkAlone(d)
	case message.Worker != nil && message.Worker.Commit != nil:
		if on := w.manager.disk.states[message.Worker.Job]; on != wire.JobCommitting {
			w.violated("worker %s is told to commit, and its job is %s on record", message.Worker.WorkerRef, on)
		}
	case message.Worker != nil && message.Worker.Exit != nil:
		w.checkGiverExits(message.Worker.WorkerRef)
	}
}

// checkGiverExits requires that it is on record that a job that runs goes on without a worker that is told to exit.
func (w *world) checkGiverExits(ref wire.WorkerRef) {
	info, _ := w.manager.jm.core.Job(ref.Job)
	if ref.Attempt != info.Attempt || info.State != wire.JobRunning {
		return
	}
	on := decoded[record](w.manager.disk.jobs[ref.Job]).Info
	if on.Attempt != ref.Attempt || !on.Workers[ref.Worker].Left {
		w.violated("worker %s is told to exit, and it is not on record that its job goes on without it", ref)
	}
}

// checkAlone requires that no worker of an earlier attempt can disturb one that is deployed: a worker
// that only finishes a commit, or one whose attempt must not overlap with others. A worker that is
// stopped, or whose task manager is stopped, is out of reach of everybody; the locks of the sinks are
// against these. Workers that were never told to prepare or to start write nothing.
func (w *world) checkAlone(d *wire.Deployment) {
	k := w.byID[d.Job]
	if d.Mode == wire.ResolveMode || d.Mode == wire.RunMode && k.overlaps {
		return
	}
	for _, c := range w.workers() {
		o := c.k
		if o.d == nil || o.d.Job != d.Job || o.d.Attempt >= d.Attempt || o.d.Mode == wire.ResolveMode || c.stopped || c.m.stopped {
			continue
		}
		writes := o.state == workerlife.Committing || o.state == workerlife.Sealing
		if d.Mode == wire.RunMode {
			writes = o.state >= workerlife.Preparing && o.state <= workerlife.Committed && !o.gives()
		}
		if writes && !w.has(jobManagerStopped, managerStopped) {
			w.violated("worker %s is deployed, and worker %s of an earlier attempt is %s on %s", d.WorkerRef, o.name(), o.state, c.m.name)
		}
	}
}

// checkNewest requires that the queues of an attempt continue from the newest states of which all pieces
// are left.
func (w *world) checkNewest(k *worker, held [][]byte, from *wire.Origin) {
	there := make(map[copies.State]map[int]bool)
	for i, data := range held {
		h, err := origin.Decode(i, data)
		if err != nil || len(h.Copies) == 0 {
			continue
		}
		states, _ := copies.DecodeHeld(h.Copies)
		for _, s := range states {
			if there[s.State] == nil {
				there[s.State] = make(map[int]bool)
			}
			for _, piece := range s.Pieces {
				there[s.State][piece] = true
			}
		}
	}
	chosen := make(map[string]wire.OriginQueue)
	if from != nil {
		for _, q := range from.Queues {
			chosen[q.Name] = q
		}
	}
	for s, pieces := range there {
		if q := chosen[s.Queue]; len(pieces) == s.Of && (q.Superstep < s.Superstep || s.Ended && !q.Ended) {
			w.violated("worker %s continues queue %s after superstep %d, and all of the state after %d is in memory", k.name(), s.Queue, q.Superstep, s.Superstep)
		}
	}
	for _, q := range chosen {
		complete := false
		for s, pieces := range there {
			complete = complete || s.Queue == q.Name && s.Superstep == q.Superstep && len(pieces) == s.Of
		}
		if q.InMemory && !complete {
			w.violated("worker %s continues queue %s from a state after superstep %d in memory, which is not complete", k.name(), q.Name, q.Superstep)
		}
	}
}

// checkSlots requires that the workers of a task manager that are not about to end fit into its slots.
func (w *world) checkSlots(m *taskManager) {
	used := 0
	for _, t := range m.workers {
		switch t.state {
		case core.Cancelling, core.Failed, core.Leaving, core.Killed, core.FinishingCommit:
		default:
			used += t.slots()
		}
	}
	if used > m.host.slots {
		var refs []string
		for _, t := range m.inOrder() {
			refs = append(refs, fmt.Sprintf("%s (%s, %d slots)", t.ref, t.state, t.slots()))
		}
		w.violated("%s has %d slots, and workers for %d: %s", m.name, m.host.slots, used, strings.Join(refs, ", "))
	}
}

// checkRestart requires that a job manager that starts knows every job that was accepted.
func (w *world) checkRestart(m *jobManager) {
	for _, c := range w.clients {
		if c.job.id == "" {
			continue
		}
		info, known := m.core.Job(c.job.id)
		switch {
		case !known:
			w.violated("job %s was accepted, and is lost", c.job)
		case c.job.final != nil && info.State != c.job.final.State:
			w.violated("job %s had ended as %s, and is %s", c.job, c.job.final.State, info.State)
		}
	}
}

// checkChanged is called when a job has changed.
func (w *world) checkChanged(info wire.JobInfo) {
	k := w.byID[info.ID]
	if info.State == wire.JobRestarting && len(info.Lost) > 0 {
		cause := info.Lost[len(info.Lost)-1].Cause
		k.moved = k.moved || slices.ContainsFunc(moves, func(text string) bool { return strings.Contains(cause, text) })
		w.checkCause(k, info.ID, info.Lost[len(info.Lost)-1].Number, info.Lost[len(info.Lost)-1].Cause)
	}
}

// ended is called when the end of a job is on disk.
func (w *world) ended(info wire.JobInfo) {
	k := w.byID[info.ID]
	if k == nil {
		return
	}
	if k.id != info.ID { // its client does not know it yet, or has given it up
		k.ends[info.ID] = info
		return
	}
	if k.final != nil && k.final.State != info.State {
		w.violated("job %s ended as %s, and then as %s", k, k.final.State, info.State)
	}
	w.say("the end of job %s is on record: %s, %v", info.ID, info.State, info.Failure)
	k.final = &info
	w.checkEnd(k, info)
}

// recent is how long a fault may have effects on causes after its end.
const recent = 12 * time.Second

// moves are parts of the causes of attempts that were ended so that the job goes on with other slots.
var moves = []string{"it is scaled from", " is drained", " leaves ("}

// checkCause requires that the cause of the loss of an attempt is what happened first, and not an echo of
// it. It judges only where that is known: the only fault of late is the end of a process.
func (w *world) checkCause(k *work, id jobID, attempt int, cause string) {
	var late []incident
	for _, i := range w.incidents {
		if i.until+recent >= w.now && (i.job == nil || i.job == k) {
			late = append(late, i)
		}
	}
	if len(late) != 1 || slices.ContainsFunc(moves, func(text string) bool { return strings.Contains(cause, text) }) {
		return
	}
	i := late[0]
	at := slices.IndexFunc(i.refs, func(r wire.WorkerRef) bool { return r.Job == id && r.Attempt == attempt })
	if at < 0 {
		return
	}
	where := fmt.Sprintf("(worker %d on task manager %s)", i.refs[at].Worker, i.host)
	want := []string{where}
	switch i.kind {
	case workerKilled:
		want = append(want, "killed by signal")
	case managerKilled, machineOff:
		want = []string{"task manager " + i.host}
	default:
		return
	}
	for _, text := range want {
		if !strings.Contains(cause, text) {
			w.violated("attempt %d of job %s was lost by %q, and the only fault was %s: want %q", attempt, k, cause, i, text)
		}
	}
}

// has reports whether there was an incident of one of the kinds.
func (w *world) has(kinds ...faultKind) bool {
	return slices.ContainsFunc(w.incidents, func(i incident) bool { return slices.Contains(kinds, i.kind) })
}

// checkEnd requires that a job that has ended did so for a reason.
func (w *world) checkEnd(k *work, info wire.JobInfo) {
	message := ""
	if info.Failure != nil {
		message = info.Failure.Error()
	}
	switch {
	case k.sinks.commits > 0 && info.State != wire.JobFinished && !strings.Contains(info.Detail, "may be") && !strings.Contains(info.Detail, "had become visible"):
		w.violated("job %s is %s (%s), and its outputs are visible", k, info.State, info.Detail)
	case info.State == wire.JobFinished && k.sinks.commits != 1:
		w.violated("job %s has finished, and its outputs appeared %d times", k, k.sinks.commits)
	case info.State == wire.JobFinished && k.userError != nil:
		w.violated("job %s has finished, and its code fails", k)
	case info.State == wire.JobFinished:
	case info.State == wire.JobCancelled && (k.cancelled || w.has(diskFull)):
	case info.State == wire.JobCancelled:
		w.violated("job %s was cancelled, and nobody wanted that: %s", k, info.Detail)
	case k.cancelled && info.State == wire.JobFailed: // while the core looked for the cause of a loss
	case k.userError != nil && strings.Contains(message, k.userError.message()):
	case k.userError != nil && !w.excused(k, message):
		w.violated("job %s failed by %q, and its code fails with %q", k, message, k.userError.message())
	case !w.excused(k, message):
		w.violated("job %s failed: %s", k, message)
	}
}

// struck reports whether there was a fault at all that can end an attempt.
func (w *world) struck() bool {
	return slices.ContainsFunc(w.incidents, func(i incident) bool { return i.kind != joined && i.kind != cordoned })
}

// excused reports whether the faults explain why a job has failed.
func (w *world) excused(k *work, message string) bool {
	switch {
	case k.spec.Restart.Strategy == wire.RestartNone:
		return w.struck()
	case strings.Contains(message, "; --restart "):
		return k.spec.Restart.Strategy != wire.RestartExponentialDelay && w.struck()
	case strings.Contains(message, "workers crashed in this way in 3 attempts"):
		return k.crashes >= 3
	case strings.Contains(message, "could not put the job on record"), strings.Contains(message, "could not put the deployment on record"):
		return w.has(diskFull)
	case strings.Contains(message, "the job manager did not run for"):
		return w.has(jobManagerStopped)
	case strings.Contains(message, "another process holds the lock"):
		return k.lockedOut && w.has(workerStopped, managerStopped)
	case strings.Contains(message, "workers that were to finish the commit"):
		return len(w.incidents) >= 3
	case strings.Contains(message, errStoreDown.Error()):
		return w.has(storeDown)
	}
	return false
}

// left says what is left of the jobs, which have all ended; "" if nothing is.
func (w *world) left() string {
	for _, c := range w.workers() {
		return fmt.Sprintf("%s, of worker %s", c.name, c.k.name())
	}
	for _, h := range w.hosts {
		if h.tm != nil && (len(h.tm.workers) > 0 || len(h.tm.kept) > 0) {
			return fmt.Sprintf("%s has %d workers and %d kept processes", h.tm.name, len(h.tm.workers), len(h.tm.kept))
		}
	}
	for _, h := range w.hosts {
		if h.tm != nil && len(h.tm.states) > 0 {
			return fmt.Sprintf("%s has files of the jobs %v", h.tm.name, h.tm.withFiles())
		}
	}
	if o := w.manager.jm.core.Overview(); o.Free != o.Slots {
		return fmt.Sprintf("%d of %d slots are free", o.Free, o.Slots)
	}
	if n := len(w.manager.jm.saving); n > 0 {
		return fmt.Sprintf("%d requests for savepoints without an answer", n)
	}
	for _, c := range w.clients {
		k := c.job
		if k.final.State != wire.JobFinished {
			continue
		}
		if len(k.sinks.staging) > 0 && !w.zombies() {
			return fmt.Sprintf("parts of job %s: %v", k, k.sinks.staging)
		}
		if len(k.store.manifests) > 0 && !w.has(storeDown) { // their removal is tried once
			return fmt.Sprintf("checkpoints of job %s", k)
		}
	}
	return ""
}

// leftKept names a process that waits for an attempt that does not come. The job manager has told those to
// exit that task managers list.
func (w *world) leftKept() string {
	for _, h := range w.hosts {
		if h.tm != nil && len(h.tm.kept) > 0 {
			return fmt.Sprintf("the process of worker %s waits on %s, and its job has ended", h.tm.kept[0].ref, h.tm.name)
		}
	}
	return ""
}

// zombies reports whether faults can have left workers of lost attempts running.
func (w *world) zombies() bool {
	return w.has(workerStopped, managerStopped, partitioned, halfPartitioned, jobManagerKilled, jobManagerStopped, machineOff, slowed, connectionReset)
}
