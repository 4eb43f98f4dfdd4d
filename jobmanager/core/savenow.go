package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// A client may ask for a checkpoint of a running job at once, and for a copy of it, a savepoint. The
// core passes the request on to worker 0 and the answer back. It answers itself if the job does not
// run, if it has no checkpoints, or if its attempt ends before the worker has answered.
//
// The core asks for checkpoints itself if a job has to leave a task manager (move.go).

// SaveAsked says that a client asks for a checkpoint of a job. Request is a number of the shell, which
// is not 0, for SaveAnswered.
type SaveAsked struct {
	ID      wire.JobID
	Request int
	Place   string // place of the savepoint; "" if there is none
}

func (SaveAsked) event() {}

// SaveAnswered is the answer to SaveAsked.
type SaveAnswered struct {
	Request int
	Saved   wire.Saved
}

func (SaveAnswered) effect() {}

// save is a request for a checkpoint to which worker 0 has not answered.
type save struct {
	wire.Save
	client int // number of the request of the shell; 0 if it is one of the core
}

// firstSave returns a number below those of all requests of a core that began at the given time.
// Workers, and the task managers that repeat what they have reported, still know the requests of former
// cores, so that no two cores may use the same numbers.
func firstSave(started time.Time) int { return int(started.UnixMicro()) }

// saveAsked processes a client's request for a checkpoint.
func (c *Core) saveAsked(e SaveAsked) {
	j, why := c.jobs[e.ID], ""
	switch {
	case j == nil:
		why = "there is no such job"
	case j.info.State != wire.JobRunning:
		why = fmt.Sprintf("the job is %s: only a running job has a state", j.info.State)
	case !j.saves():
		why = "the job has no checkpoints: submit it with --checkpoint-dir"
	}
	if why != "" {
		c.emit(SaveAnswered{Request: e.Request, Saved: wire.Saved{Failure: why}})
		return
	}
	c.askSave(j, wire.Save{Place: e.Place}, e.Request)
}

// saves reports whether the states of the job's queues are saved in checkpoints.
func (j *job) saves() bool {
	return j.spec.Run.Checkpoints != nil && j.spec.Run.Checkpoints.Dir != ""
}

// remembers reports whether the states of the job's queues are kept in the memory of its workers.
func (j *job) remembers() bool {
	return j.spec.Run.NumberOfCopies() > 0 && j.restarts.settings.Strategy != wire.RestartNone
}

// goesOnWithout reports whether the job can continue after its current superstep if its attempt ends on
// purpose and the task managers that meet a condition get no workers of the next one. Without checkpoints,
// the next attempt must find its slots at once and one of the current workers must be in it, as that one has
// all states: a kept process ends when others need its slots, and waits only for a while.
func (c *Core) goesOnWithout(j *job, condition func(*taskManager) bool) bool {
	if j.saves() || !j.remembers() {
		return j.saves()
	}
	offers, r := c.offers(), c.request(j)
	for i, n := range c.order {
		if condition(n) {
			offers[i].Cordoned, offers[i].Free = true, 0
		}
	}
	first := slices.DeleteFunc(slices.Clone(c.live), func(o *job) bool { return o == j || !o.moving })
	for _, o := range first {
		c.reclaim(offers, o)
	}
	fits := func(o *job) bool {
		shares, short := Place(offers, c.request(o))
		reserve(offers, shares, 1)
		return short == nil
	}
	first = slices.DeleteFunc(first, fits) // as schedule does, slots of other processes are used last
	c.reclaim(offers, j)
	for _, o := range first {
		fits(o)
	}
	r.Kept = nil // not where an earlier attempt has left files
	r.setKept(j.survivors())
	shares, short := Place(offers, r)
	return short == nil && slices.ContainsFunc(shares, func(s Share) bool { return r.survives(&offers[s.Offer]) && !offers[s.Offer].Avoided })
}

// survivors returns the processes that would be kept if the attempt of a job ended now.
func (j *job) survivors() (all []keptProcess) {
	for _, w := range j.workers {
		if !w.state.Gone() && !w.gives() {
			all = append(all, keptProcess{taskManager: w.taskManager, ref: w.ref, slots: j.info.Workers[w.ref.Worker].Slots, of: j.info.Slots})
		}
	}
	return all
}

// canGoOn reports whether the job can continue after its current superstep if its attempt ends on purpose.
func (c *Core) canGoOn(j *job) bool {
	return c.goesOnWithout(j, func(*taskManager) bool { return false })
}

// askSave asks worker 0 of a running job for a checkpoint, or to have all workers hold the states if the
// job has none. client is the number of the client's request, 0 if the core asks.
func (c *Core) askSave(j *job, what wire.Save, client int) {
	c.saveNumber++
	what.Request = c.saveNumber
	s := save{Save: what, client: client}
	j.saving = append(j.saving, s)
	c.command(j.workers[0], wire.WorkerCommand{Save: &s.Save})
}

// repeatSaves asks worker w again for the checkpoints that it has not answered for, as a request or
// an answer may be lost. Workers make no second checkpoint for a request.
func (c *Core) repeatSaves(w *worker) {
	if w.ref.Worker != 0 {
		return
	}
	for _, s := range w.job.saving {
		c.command(w, wire.WorkerCommand{Save: &s.Save})
	}
}

// saved processes the answer of a worker to a request for a checkpoint. The end of an attempt whose job gets
// another number of slots can wait for the answer to a client, which may take as long as the copy of a
// savepoint, and after which the job is asked for its state again.
func (c *Core) saved(w *worker, a *wire.Saved) {
	j := w.job
	i := slices.IndexFunc(j.saving, func(s save) bool { return s.Request == a.Request })
	if i < 0 {
		return // a repeated answer
	}
	s := j.saving[i]
	j.saving = slices.Delete(j.saving, i, i+1)
	clientWaits := slices.ContainsFunc(j.saving, func(o save) bool { return o.client > 0 })
	switch m := j.move; {
	case s.client > 0:
		c.emit(SaveAnswered{Request: s.client, Saved: *a})
		if m != nil && m.waits && !clientWaits {
			m.waits = false
			c.askSave(j, wire.Save{}, 0)
		}
	case m != nil && m.to > 0 && clientWaits:
		m.waits = true
	default:
		c.movable(j, a.Failure != "", a.Checkpoint.Beyond(j.info.Origin))
	}
}

// dropSaves answers the requests for checkpoints of an attempt that has ended.
func (c *Core) dropSaves(j *job) {
	why := "the workers of the job have ended before its state was saved"
	if j.info.State == wire.JobRestarting {
		why = fmt.Sprintf("attempt %d of the job has ended before its state was saved, and the job restarts: ask again when it runs", j.info.Attempt)
	}
	for _, s := range j.saving {
		if s.client > 0 {
			c.emit(SaveAnswered{Request: s.client, Saved: wire.Saved{Failure: why}})
		}
	}
	j.saving = nil
}
