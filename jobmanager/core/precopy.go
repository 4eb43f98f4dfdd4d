package core

import (
	"math"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Before the attempt of a job ends so that the job goes on with other slots, the core chooses the slots of the
// next attempt. Where the job has no worker yet, it deploys a taker: a worker behind all others, without slots
// in this attempt. When the takers are ready, the core asks worker 0 for the state, and says which processes
// are to have which slots. Worker 0 first has them copy the rows of their shards, while supersteps go on
// (wire.Precopy). When the attempt ends, takers keep their processes as all workers do. The next attempt is then
// placed as if these slots had been those of the last one, so that all rows are where they are needed.
//
// Nothing depends on that: if slots change meanwhile, or a taker is lost, the rows move when the next attempt
// begins. Takers are not on record. A restarted job manager kills them.

const (
	// takersReady is how long the core waits for takers to be ready.
	takersReady = 10 * time.Second
	// precopyLimit is the longest time for which worker 0 has rows copied.
	precopyLimit = time.Minute
)

// precopy is what the core has chosen for the next attempt of a job.
type precopy struct {
	of     int // number of slots of the next attempt
	shares []nextShare
	due    time.Duration // counted time at which worker 0 is asked although takers are not ready
	asked  bool          // worker 0 was asked for the state
	until  time.Duration // counted time until which worker 0 may have rows copied, if it was asked
	late   time.Duration // counted time at which worker 0 is asked to copy no more; 0 if it is not
}

// nextShare is the slots of the next attempt on a task manager.
type nextShare struct {
	taskManager *taskManager
	slots       wire.SlotRange
}

// askToMove asks worker 0 for the state of a job that moves, so that its attempt can end. If rows are to be
// copied before, it waits for takers to be ready.
func (c *Core) askToMove(j *job) {
	c.endPrecopy(j)
	p := c.choosePrecopy(j)
	if p == nil {
		c.askSave(j, wire.Save{}, 0)
		return
	}
	j.precopy = p
	// Answers to requests of a move that was withdrawn must not end the attempt before rows are copied.
	j.saving = slices.DeleteFunc(j.saving, func(s save) bool { return s.client == 0 })
	for _, s := range p.shares {
		if j.workerOn(s.taskManager) == nil && !j.hasTakerOn(s.taskManager) {
			c.deployTaker(j, s)
		}
	}
	p.due = c.clock.Counted() + min(takersReady, c.half(j.move))
	c.precopyDue(j)
}

// half returns half of the time until a job leaves in any case. The rest is left for what comes after.
func (c *Core) half(m *move) time.Duration {
	if m.by == 0 {
		return math.MaxInt64 / 2
	}
	return max(0, m.by-c.clock.Counted()) / 2
}

// hurry makes worker 0 save the state of a job in time. The job has to leave earlier than was known when its
// move began.
func (c *Core) hurry(j *job) {
	p := j.precopy
	if p == nil || j.move.by == 0 {
		return
	}
	switch latest := c.clock.Counted() + c.half(j.move); {
	case !p.asked:
		p.due = min(p.due, latest)
	case latest < p.until:
		p.late, p.until = latest, latest
	}
	c.precopyDue(j)
}

// choosePrecopy chooses the slots of the next attempt of a job that moves. It returns nil if no rows are to be
// copied.
func (c *Core) choosePrecopy(j *job) *precopy {
	if j.restarts.settings.Strategy == wire.RestartNone || j.fruitless { // no process is kept, or perhaps no move follows
		return nil
	}
	offers, r := c.offers(), c.request(j)
	c.reclaim(offers, j)
	r.Kept, r.Was = nil, 0
	r.setKept(j.survivors())
	least, most := j.wants()
	if j.move.to > 0 {
		least, most = j.move.to, j.move.to
	}
	r.Slots, r.Most = max(least, min(most, room(offers, r))), 0
	shares, short := Place(offers, r)
	if short != nil {
		return nil
	}
	p, copies := &precopy{of: r.Slots}, false
	for _, s := range shares {
		next := nextShare{c.order[s.Offer], s.Slots}
		p.shares = append(p.shares, next)
		copies = copies || p.lacks(j, next)
	}
	if !copies {
		return nil
	}
	return p
}

// lacks reports whether the process of a share does not have all rows of its shards.
func (p *precopy) lacks(j *job, s nextShare) bool {
	w := j.workerOn(s.taskManager)
	if w == nil {
		return true
	}
	had, was := j.info.Workers[w.ref.Worker].Slots, j.info.Slots
	return s.slots.Lo*was < had.Lo*p.of || s.slots.Hi*was > had.Hi*p.of
}

// workerOn returns the worker of the current attempt on a task manager, nil if there is none.
func (j *job) workerOn(n *taskManager) *worker {
	i := slices.IndexFunc(j.workers, func(w *worker) bool { return w.taskManager == n && !w.state.Gone() })
	if i < 0 {
		return nil
	}
	return j.workers[i]
}

// deployTaker deploys the taker of a share. It holds the slots of the share, so that nobody else gets them.
func (c *Core) deployTaker(j *job, s nextShare) {
	number, none := len(j.info.Workers)+len(j.takers), wire.SlotRange{Lo: j.info.Slots, Hi: j.info.Slots}
	ranges := slices.Repeat([]wire.SlotRange{none}, number+1)
	for i, w := range j.info.Workers {
		ranges[i] = w.Slots
	}
	w := c.deploy(j, s.taskManager, wire.RunMode, number, ranges)
	w.takes, w.slots = true, s.slots.Hi-s.slots.Lo
	w.taskManager.used += w.slots
	w.pending.Holds, w.pending.Memory = w.slots, s.taskManager.memory(w.slots)
	j.takers = append(j.takers, w)
	c.release(w)
}

// takerReady records that a taker is ready. If its program builds another graph, the next attempt will say so.
func (c *Core) takerReady(w *worker, r *wire.Ready) {
	if r.Fingerprint != w.job.info.Fingerprint {
		c.stop(w, orderedCancel, "the program of the worker builds another graph than those of the others")
	}
	w.address = r.Address
	c.precopyDue(w.job)
}

// precopyDue asks worker 0 of a job that moves for its state if all takers are ready, or have taken too long.
func (c *Core) precopyDue(j *job) {
	p := j.precopy
	switch {
	case p == nil || j.move == nil || j.info.State != wire.JobRunning:
		return
	case p.asked:
		if p.late > 0 && c.clock.Counted() >= p.late {
			p.late = 0
			c.askSave(j, wire.Save{}, 0)
		}
		return
	case c.clock.Counted() < p.due && slices.ContainsFunc(j.takers, (*worker).starts):
		return
	}
	to := p.to(j)
	if len(to) == 0 { // all takers were lost
		c.endPrecopy(j)
		c.askSave(j, wire.Save{}, 0)
		return
	}
	within := min(precopyLimit, c.half(j.move))
	p.asked, p.until = true, c.clock.Counted()+within
	c.askSave(j, wire.Save{Precopy: &wire.Precopy{Of: p.of, Within: within, To: to}}, 0)
}

// to returns the processes that get rows.
func (p *precopy) to(j *job) (to []wire.PrecopyTo) {
	for _, s := range p.shares {
		switch w := j.workerOn(s.taskManager); {
		case !p.lacks(j, s) || w != nil && w.gives(): // a giver leaves soon
		case w != nil:
			to = append(to, wire.PrecopyTo{Worker: w.ref.Worker, Slots: s.slots})
		default:
			for _, w := range j.takers {
				if w.taskManager == s.taskManager && w.state == WorkerReady && w.ordered == notOrdered {
					to = append(to, wire.PrecopyTo{Worker: w.ref.Worker, Address: w.address, Slots: s.slots})
				}
			}
		}
	}
	return to
}

// hasTakerOn reports whether a taker of the job, perhaps of an earlier move, has not ended on a task manager.
func (j *job) hasTakerOn(n *taskManager) bool {
	return slices.ContainsFunc(j.takers, func(w *worker) bool { return w.taskManager == n && !w.state.Gone() })
}

// starts reports whether the worker is a taker that is not ready yet.
func (w *worker) starts() bool {
	return w.takes && w.state == WorkerDeploying && w.ordered == notOrdered
}

// endTakersOn ends the takers of a job on the task managers that meet a condition, as these are to be empty.
func (c *Core) endTakersOn(j *job, condition func(*taskManager) bool) {
	for _, w := range j.takers {
		if condition(w.taskManager) {
			c.stop(w, orderedCancel, "its task manager takes no new workers")
		}
	}
	c.precopyDue(j)
}

// endPrecopy ends the takers of a job that does not move for the time being.
func (c *Core) endPrecopy(j *job) {
	if j.precopy == nil {
		return
	}
	j.precopy = nil
	for _, w := range j.takers {
		c.stop(w, orderedCancel, "the job does not move")
	}
}

// nextSlots returns the slots that the process on a task manager has rows for in the next attempt, of how many.
// of is 0 if no rows were copied for the next attempt.
func (j *job) nextSlots(n *taskManager) (slots wire.SlotRange, of int) {
	p := j.precopy
	if p == nil || !p.asked {
		return slots, 0
	}
	for _, s := range p.shares {
		if s.taskManager == n {
			return s.slots, p.of
		}
	}
	return slots, 0
}
