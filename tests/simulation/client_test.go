package simulation

import (
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// client submits a job, with a key by which the job manager knows a submission that is repeated.
type client struct {
	w    *world
	job  *work
	key  int // number of the key
	call int // number of the last call
}

const patience = 3 * time.Second

// ask calls the job manager. answer is called at most once, in the client.
func (w *world) ask(do func(m *jobManager)) {
	w.after(w.between(100*time.Microsecond, 3*time.Millisecond), func() {
		if m := w.manager.jm; m != nil {
			m.do(func() { do(m) })
		}
	})
}

// submit submits the job until it is accepted.
func (c *client) submit() {
	if c.job.id != "" {
		return
	}
	c.call++
	call := c.call
	c.w.after(patience, func() {
		if c.call == call {
			c.submit()
		}
	})
	c.w.ask(func(m *jobManager) {
		m.submit(c.job, fmt.Sprintf("%s %d", c.job.name, c.key), func(id jobID, err error) {
			c.w.after(c.w.between(100*time.Microsecond, 3*time.Millisecond), func() { c.answered(call, id, err) })
		})
	})
}

// answered handles the answer to a call.
func (c *client) answered(call int, id jobID, err error) {
	switch {
	case c.call != call:
	case err != nil:
		c.key++
		c.w.after(time.Second, c.submit)
	default:
		c.call++
		c.job.id = id
		c.w.say("job %s is accepted as %s", c.job.name, id)
		if info, ended := c.job.ends[id]; ended {
			c.w.ended(info)
		}
	}
}

// submit takes a submission; see jobmanager/submit.go.
func (m *jobManager) submit(job *work, key string, answer func(jobID, error)) {
	id, found := m.core.Submission(key)
	if !found {
		m.w.number++
		id = jobID(fmt.Sprintf("%s-%d", job.name, m.w.number))
		m.jobs[id] = &managedJob{}
		m.w.byID[id] = job
		slots := job.spec.Parallelism
		spec := job.spec
		if job.resolves {
			slots, spec.Graph = 0, nil
		}
		m.step(core.Submitted{ID: id, Spec: spec, Slots: slots, At: time.Unix(1_800_000_000, 0).Add(m.w.now), Key: key})
	}
	j := m.jobs[id]
	if j == nil {
		answer(id, nil)
		return
	}
	tell := func() {
		if j.unsaved != nil {
			m.step(core.CancelAsked{ID: id, Reason: "it could not be put on record"})
		}
		answer(id, j.unsaved)
	}
	if j.recorded {
		tell()
		return
	}
	j.waiting = append(j.waiting, tell)
}

// cancel asks for the cancellation of the job, until the job manager has heard it.
func (c *client) cancel() {
	w := c.w
	if c.job.final != nil {
		return
	}
	c.job.cancelled = true
	heard := false
	if c.job.id != "" {
		w.ask(func(m *jobManager) {
			heard = true
			w.say("job %s is to be cancelled", c.job.id)
			m.step(core.CancelAsked{ID: c.job.id, Reason: "its client asked for that"})
		})
	}
	w.after(time.Second, func() {
		if !heard {
			c.cancel()
		}
	})
}

// savepoint asks for a savepoint. Each request must be answered while the job manager runs.
func (c *client) savepoint() {
	c.w.ask(func(m *jobManager) {
		if c.job.id == "" {
			return
		}
		m.host.requests++
		number := m.host.requests
		place := ""
		if c.w.chance(2) {
			place = fmt.Sprint("savepoint ", number)
		}
		c.w.say("a savepoint of job %s is asked for", c.job.id)
		m.saving[number] = func(s wire.Saved) {
			c.w.say("savepoint %d: %+v", number, s)
			if s.Failure != "" {
				return
			}
			c.w.marks["a savepoint is made"]++
			if place != "" && len(c.job.savepoint(place).manifests) != 1 {
				c.w.violated("%s was reported, and is not there", place)
			}
		}
		m.step(core.SaveAsked{ID: c.job.id, Request: number, Place: place})
	})
}

// scale sets with how many subtasks the job may run.
func (c *client) scale(to wire.Parallelism) {
	c.w.ask(func(m *jobManager) {
		if c.job.id != "" && m.core.CanScale(c.job.id, to) == nil {
			c.w.say("job %s is scaled to %s", c.job.id, to)
			m.step(core.Scaled{ID: c.job.id, Allowed: to})
		}
	})
}

// cordon keeps new workers from a task manager; if drain is set, its jobs leave it.
func (w *world) cordon(h *host, drain bool, within time.Duration) {
	name := h.machine.name
	w.ask(func(m *jobManager) {
		at := time.Unix(1_800_000_000, 0).Add(w.now)
		cordon := m.core.NextCordon(name, "maintenance", at)
		if drain {
			cordon = m.core.NextDrain(name, "maintenance", within, at)
		}
		m.recorder.put(recording{change: &change{taskManager: name, cordon: &cordon}, then: func(err error) {
			if err != nil {
				return
			}
			w.say("%s is cordoned (drained: %v)", name, drain)
			m.step(core.Cordoned{TaskManager: name, Cordon: cordon})
			if drain {
				m.step(core.Drained{TaskManager: name})
			}
		}})
	})
}

// uncordon lets a task manager get new workers again, until the job manager has heard it.
func (w *world) uncordon(h *host) {
	name := h.machine.name
	done := false
	w.ask(func(m *jobManager) {
		m.recorder.put(recording{change: &change{taskManager: name}, then: func(err error) {
			if done = err == nil; done {
				m.step(core.Uncordoned{TaskManager: name})
			}
		}})
	})
	w.after(2*time.Second, func() {
		if !done {
			w.uncordon(h)
		}
	})
}
