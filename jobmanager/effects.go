package jobmanager

import (
	"cmp"
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// perform performs the effects of the core in order. It does not wait: it puts messages into
// the queues of connections, and changes of the history into the recorder's queue. The caller
// holds mu.
func (m *Manager) perform(effects []core.Effect) {
	for _, effect := range effects {
		switch e := effect.(type) {
		case core.Send:
			m.send(e)
		case core.Disconnect:
			if c := m.conns[e.Conn]; c != nil {
				c.finish()
			}
		case core.Persist:
			if e.Job.State.Ended() {
				m.finish(e.Job)
			} else {
				m.persist(e)
			}
		case core.Changed:
			m.changed(&e.Job)
		case core.Progressed:
			if j := m.jobs[e.ID]; j != nil {
				j.dirty = true
			}
		case core.Compile:
			m.tasks.Go(func() { m.compileResolved(e) })
		case core.SaveAnswered:
			m.answerSave(e)
		case core.Forget:
			m.forget(e.ID)
		}
	}
}

// send puts a message into the queue of its connection. If the message is a deployment, send
// adds the credentials of the attempt.
func (m *Manager) send(e core.Send) {
	c := m.conns[e.Conn]
	if c == nil {
		return
	}
	out := outgoing{message: e.Message}
	if w := e.Message.Worker; w != nil && w.Commit != nil && !m.fits(w) {
		return
	}
	if w := e.Message.Worker; w != nil && (w.Exit != nil || w.Kill != nil) {
		if j := m.jobs[w.Job]; j != nil && j.final != nil {
			if w.Exit != nil {
				m.exitLater(c, j, out)
				return
			}
			if j.final.State == wire.JobFinished && j.final.Attempt == w.Attempt && !closed(j.kept) {
				return // the worker is not late: exitLater has not sent its Exit command yet
			}
		}
	}
	if d := e.Message.Deploy; d != nil {
		j := m.jobs[d.Job]
		if j == nil {
			return
		}
		if j.credits == nil || j.credits.number != d.Attempt {
			credits, err := newAttempt(d.Attempt, m.tls)
			if err != nil {
				m.log.Error("an attempt has no credentials", "job", d.Job, "attempt", d.Attempt, "error", err)
				c.drop("could not be given credentials: " + err.Error())
				return
			}
			j.credits = credits
		}
		out.credits = j.credits
	}
	c.push(out)
}

// exitLater sends a worker the command to exit once the end of its job is on disk. Until then
// the worker keeps the receipts of the commit, which another worker would need to finish the
// commit. The caller holds mu.
func (m *Manager) exitLater(c *conn, j *job, out outgoing) {
	m.tasks.Go(func() {
		select {
		case <-j.kept:
			c.push(out)
		case <-m.ctx.Done():
		}
	})
}

// closed reports whether a channel is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// maxOutcomes bounds the total size in bytes of the outcomes of a job's workers, so that they
// fit into one message.
const maxOutcomes = wire.MaxFrame - 1<<20

// fits reports whether the outcomes of a job's workers fit into the message to the worker that
// commits. If they do not fit, it fails the job.
func (m *Manager) fits(w *wire.WorkerCommand) bool {
	size := 0
	for _, outcome := range w.Commit.Outcomes {
		size += len(outcome)
	}
	if size <= m.outcomes {
		return true
	}
	m.tasks.Go(func() {
		m.failWorker(w.WorkerRef, &wire.Failure{Kind: wire.UserFailure, ExitCode: -1, Message: fmt.Sprintf(
			"what the workers report at their end, accumulators above all, takes %d bytes; the limit is %d", size, m.outcomes)})
	})
	return false
}

// persist records a job that has not ended.
func (m *Manager) persist(e core.Persist) {
	if e.Job.State == wire.JobCommitting {
		m.persistCommit(e)
		return
	}
	j := m.jobs[e.Job.ID]
	r := record{Info: e.Job, Continuation: e.Continuation}
	if j != nil {
		r.Doubt, r.Events = j.doubt, j.confirmed
		j.last = &r
	}
	c, err := newChange(r)
	if err == nil && e.Spec != nil {
		c.spec, err = wire.Marshal(e.Spec)
	}
	if j != nil {
		if e.Graph != nil {
			m.planAnew(j, &e)
		}
		c.plan, j.plan = j.plan, nil
		c.graph, j.graph = j.graph, nil
	}
	next := m.entryOf(e, &c, err)
	if j != nil && !j.saving {
		j.saving = true
		next.then = func(failed error) {
			j.unsaved = cmp.Or(err, failed)
			close(j.recorded)
		}
	}
	m.recorder.put(next)
}

// entryOf returns the entry that writes change c for effect e, and then answers with Persisted if
// e has a barrier. err is the error of making the change; if it is not nil, nothing is written.
func (m *Manager) entryOf(e core.Persist, c *change, err error) entry {
	next := entry{change: c}
	answer := func(failed error) {
		m.step(core.Persisted{ID: e.Job.ID, Attempt: e.Job.Attempt, State: e.Job.State, Err: cmp.Or(err, failed)})
	}
	if err != nil {
		m.log.Error("a job cannot be put on record", "job", e.Job.ID, "error", err)
		next.change = nil
	}
	switch {
	case e.Barrier && e.Retry && err == nil:
		next.kept = func() { answer(nil) }
	case e.Barrier:
		next.then = answer
	}
	return next
}

// changed sends the new state of a job that has not ended to its followers, once all earlier
// changes of the history are on disk. finish sends the final state.
func (m *Manager) changed(info *wire.JobInfo) {
	j := m.jobs[info.ID]
	if j == nil || info.State.Ended() {
		return
	}
	now := shown{info.State, info.Detail, info.Attempt}
	if j.shown == now {
		return
	}
	if j.shown.state != now.state || now.state == wire.JobCommitting {
		m.log.Info("job "+now.state.String(), "job", info.ID, "detail", info.Detail)
	}
	j.shown = now
	event := &wire.Event{Time: m.config.Now(), State: withoutPlan(*info)}
	m.recorder.put(entry{then: func(error) {
		if err := j.spool.append(event); err != nil {
			m.log.Error("followers do not receive a job's state", "job", j.id, "error", err)
		}
	}})
}

// withoutPlan returns a copy of info without the plan and the outcomes, which are stored
// separately, and without progress and checkpoints.
func withoutPlan(info wire.JobInfo) *wire.JobInfo {
	info.Plan, info.Outcomes, info.Progress, info.Checkpoints = nil, nil, nil, nil
	return &info
}

// tellProgress sends the progress of each job with new progress to the job's followers. The
// caller holds mu.
func (m *Manager) tellProgress() {
	now := m.config.Now()
	for _, j := range m.jobs {
		if j.dirty && now.Sub(j.progressSent) >= progressEvery {
			j.dirty, j.progressSent = false, now
			if p := m.core.Progress(j.id); p != nil {
				j.spool.advance(p)
			}
		}
	}
}

// progressEvery is the minimum time between two progress events for followers.
const progressEvery = 200 * time.Millisecond

// logsTimeout bounds the wait for the last log lines of workers after their job has ended.
const logsTimeout = 5 * time.Second

// finish waits until everything that an ended job sent to its client is on disk, and then
// records the job and the number of its events. After that it sends the final state to the
// followers.
func (m *Manager) finish(info wire.JobInfo) {
	m.log.Info("job "+info.State.String(), "job", info.ID, "detail", info.Detail)
	j := m.jobs[info.ID]
	if j == nil { // the job had not ended when a former job manager stopped
		past := record{Doubt: m.past[info.ID].Doubt}
		m.past[info.ID] = past
		past.Info = info
		if c, err := newChange(past); err == nil {
			m.recorder.put(entry{change: &c})
		} else {
			m.log.Error("a job cannot be put on record", "job", info.ID, "error", err)
		}
		return
	}
	if j.final != nil {
		return
	}
	j.final, j.last = &info, nil
	m.totals.add(j, &info)
	plan := j.plan
	// Earlier states were sent to followers through the recorder's queue. So the final state is
	// sent through this queue too, so that it comes after them.
	m.recorder.put(entry{then: func(error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if !m.closed {
			m.tasks.Go(func() { m.finishUnlocked(j, info, plan) })
		}
	}})
}

// finishUnlocked does those parts of finish that wait for the disk. The caller does not hold
// mu.
func (m *Manager) finishUnlocked(j *job, info wire.JobInfo, plan []byte) {
	m.unpin(&j.spec)
	events, err := j.spool.seal()
	if err != nil {
		m.log.Error("not all that a job sent to its client is kept", "job", j.id, "error", err)
	}
	events += j.missing
	r := record{Info: info, Whole: err == nil, Events: events, Doubt: j.doubt}
	c, err := newChange(r)
	c.plan = plan
	if err != nil {
		m.log.Error("a job cannot be put on record", "job", j.id, "error", err)
		close(j.kept) // the record can never be written, so no goroutine must wait for it
	} else {
		m.recorder.put(entry{change: &c, kept: func() { close(j.kept) }})
	}
	m.recorder.put(entry{then: func(error) {
		m.mu.Lock()
		j.past = record{Whole: r.Whole, Events: events, Doubt: r.Doubt}
		m.past[j.id] = j.past
		m.mu.Unlock()
		close(j.finalWriteDone)
	}})
	select {
	case <-j.finalWriteDone:
	case <-m.ctx.Done():
		return
	}
	if info.State == wire.JobFinished {
		m.settled(j.id)
	}
	close(j.done)
	m.lastLines(j)
}

// settleTimeout bounds the wait for workers that have got the command to exit.
const settleTimeout = 2 * time.Second

// settled waits at most settleTimeout until the workers of a finished job have ended. So their
// temporary files beside the outputs are removed, and their slots are free, before the client
// is notified that the job has finished.
func (m *Manager) settled(id wire.JobID) {
	timeout := time.NewTimer(settleTimeout)
	defer timeout.Stop()
	for pause := 4 * time.Millisecond; m.processes(id) > 0; pause = min(2*pause, core.TickEvery) {
		select {
		case <-time.After(pause):
		case <-timeout.C:
			return
		case <-m.ctx.Done():
			return
		}
	}
}

// lastLines waits for the last log lines of a job that has ended, and then removes the job from
// m.jobs.
func (m *Manager) lastLines(j *job) {
	timeout := time.NewTimer(logsTimeout)
	defer timeout.Stop()
	for m.processes(j.id) > 0 {
		select {
		case <-time.After(core.TickEvery):
			continue
		case <-timeout.C:
		case <-m.ctx.Done():
		}
		break
	}
	j.logs.close()
	size := m.sizeOf(j.id)
	m.mu.Lock()
	delete(m.jobs, j.id)
	if j.final.State != wire.JobFinished {
		size -= j.spool.sent() // the rows and text will be freed soon
	}
	m.retain(j.id, size)
	if j.forgotten {
		m.forget(j.id)
	}
	unread := j.readers == 0
	m.mu.Unlock()
	close(j.over)
	if unread {
		m.freeRows(j.id)
	}
}

// processes returns the number of workers of a job that have not ended.
func (m *Manager) processes(id wire.JobID) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, node := range m.core.TaskManagers(m.clock()) {
		for _, ref := range node.Workers {
			if ref.Job == id {
				n++
			}
		}
	}
	return n
}
