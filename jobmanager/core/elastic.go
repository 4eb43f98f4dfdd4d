package core

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/wire"
)

// An elastic job may run with any number of subtasks of a range. It starts as soon as its minimum has
// slots, and then gets the free slots up to its maximum, unless another job waits for them. After the
// loss of an attempt it goes on with the slots that are left; if these are fewer than its minimum, it
// waits for slots as any job does.
//
// While it runs, the number of its slots changes only if its queues' states are saved: the core asks
// worker 0 for a checkpoint, or for states in memory if there are none, and then restarts the job, without a
// superstep that is done again. Balance
// decides when that is worth it. The core calls it when the slots and the waiting jobs have not changed
// for the time Config.Settle, so that several task managers that join one after the other cause one
// change and not several. If they change all the time, it waits for a few times as long. A job does
// not grow twice within Config.ScaleInterval.
//
// A client can change the range of any job (Scaled). A job whose number is outside the new range
// changes as soon as it can have the slots, without a wait.

// Scaled says that a client has set with how many subtasks a job may run, which CanScale has allowed.
type Scaled struct {
	ID      wire.JobID
	Allowed wire.Parallelism
}

func (Scaled) event() {}

// CanScale returns why a job cannot be given another parallelism now, or nil.
func (c *Core) CanScale(id wire.JobID, to wire.Parallelism) error {
	j := c.jobs[id]
	switch {
	case j == nil:
		return fmt.Errorf("there is no such job")
	case to.Min < 1 || to.Max < to.Min:
		return fmt.Errorf("parallelism %s: want a number from 1, or a range such as 2:8", to)
	case to.Max > j.info.Shards:
		return fmt.Errorf("parallelism %s is above the number of shards, %d, so that some subtasks would own none", to, j.info.Shards)
	}
	switch j.info.State {
	case wire.JobWaiting, wire.JobDeploying, wire.JobRunning, wire.JobRestarting:
	default:
		return fmt.Errorf("the job is %s: its parallelism can be changed while it waits, is deployed, runs or is restarted", j.info.State)
	}
	switch {
	case j.slotsFixed():
		return fmt.Errorf("the job's plan needs %s at any parallelism", humanize.Count(j.info.Slots, "slot"))
	case j.info.State == wire.JobRunning && !to.Has(j.info.Parallelism) && !j.saves() && !j.remembers():
		return fmt.Errorf("nothing of the job's state is kept (it has --copies 0 or --restart none, and no --checkpoint-dir), so with another parallelism it would begin again at superstep 1: cancel it and submit it anew")
	}
	return nil
}

// Graph returns the graph of a job that has not ended, in JSON; nil if it is not known.
func (c *Core) Graph(id wire.JobID) []byte {
	if j := c.jobs[id]; j != nil {
		return j.spec.Graph
	}
	return nil
}

// scaled sets with how many subtasks a job may run.
func (c *Core) scaled(e Scaled) {
	if c.CanScale(e.ID, e.Allowed) != nil {
		return
	}
	j := c.jobs[e.ID]
	j.info.Allowed, j.target, c.rethink, j.saveFailed = e.Allowed, 0, true, false
	if m := j.move; m != nil && m.to > 0 {
		c.endPrecopy(j)
		j.move = nil // it was about to change to a number that the client may not want any more
	}
	c.record(j, false)
	if j.info.State != wire.JobDeploying || e.Allowed.Has(j.info.Parallelism) {
		return
	}
	to := e.Allowed.Max
	if j.saves() || j.remembers() { // if there are too few slots, it changes while it runs
		to = c.within(j, to)
	}
	if to != j.info.Parallelism { // nothing is lost
		j.move = j.scaleTo(to)
		c.moveAway(j)
	}
}

// slotsFixed reports whether the job needs the same number of slots at any parallelism.
func (j *job) slotsFixed() bool { return j.info.Slots != j.info.Parallelism }

// adjustable reports whether the number of the job's slots can be changed now.
func (j *job) adjustable() bool {
	return j.info.State == wire.JobRunning && (j.saves() || j.remembers()) && !j.slotsFixed() && j.move == nil &&
		(j.info.Allowed.Elastic() || j.outOfRange())
}

// outOfRange reports whether the job runs with a number of subtasks that is not allowed any more.
func (j *job) outOfRange() bool {
	return j.info.Allowed.Max > 0 && !j.info.Allowed.Has(j.info.Parallelism)
}

// balancing says when rebalance is to be called.
type balancing struct {
	first   time.Duration // counted time at which slots, waiting jobs or running jobs changed first; 0 if they have not
	changed time.Duration // counted time at which they last changed
	now     bool          // jobs whose number of subtasks is not allowed any more need not wait
	due     time.Duration // counted time at which the other jobs may change; 0 if nothing is due
}

// unsettle is called when slots, waiting jobs or running jobs have changed.
func (c *Core) unsettle() {
	now := c.clock.Counted()
	first := cmp.Or(c.balancing.first, now, 1)
	c.balancing = balancing{first: first, changed: now, now: true, due: min(now, first+maxSettle*c.config.Settle) + c.config.Settle}
}

// settled reports whether nothing has changed for a while, or something changes again and again, so
// that waiting jobs would starve.
func (c *Core) settled() bool {
	now, b := c.clock.Counted(), &c.balancing
	return b.due > 0 && now >= b.due && (now-b.changed >= c.config.Settle || b.first > 0 && now-b.first >= maxSettle*c.config.Settle)
}

// balanceBy makes rebalance due at the given counted time, or earlier.
func (c *Core) balanceBy(at time.Duration) {
	if b := &c.balancing; b.due == 0 || at < b.due {
		b.due = at
	}
}

// rebalance changes the number of slots of running jobs if others wait for them, if slots are free, or
// if their number is not allowed any more.
func (c *Core) rebalance() {
	now, b := c.clock.Counted(), &c.balancing
	settled := c.settled()
	if !settled && !b.now {
		return
	}
	if b.now = false; settled {
		b.due, b.first = 0, 0
	}
	if !slices.ContainsFunc(c.live, (*job).adjustable) {
		return
	}
	offers := c.offers()
	var jobs []*job
	var claims []Claim
	line := c.line()
	for _, j := range c.live {
		if j.changes() {
			c.reclaim(offers, j)
		}
		if claim, ok := c.claim(j); ok {
			claim.Priority, claim.Line = j.info.Priority, slices.Index(line, j)
			jobs, claims = append(jobs, j), append(claims, claim)
		}
	}
	slots := Balance(offers, claims)
	for i, j := range jobs {
		if !j.adjustable() {
			continue
		}
		switch to := c.within(j, slots[i]); {
		case to == j.info.Parallelism:
		case now < j.scaleFrom && (j.saveFailed || to > j.info.Parallelism && !j.outOfRange()):
			c.balanceBy(j.scaleFrom)
		case settled || j.outOfRange():
			j.move = j.scaleTo(to)
			c.askToMove(j)
		}
	}
}

// scaleTo returns the move that gives a job another number of subtasks.
func (j *job) scaleTo(n int) *move {
	return &move{to: n, cause: fmt.Sprintf("it is scaled from %d to %s", j.info.Parallelism, humanize.Count(n, "subtask"))}
}

// claim returns what a job has of the slots and may have, or false if it gets no slots any more and
// has none that others could get.
func (c *Core) claim(j *job) (Claim, bool) {
	r := c.request(j)
	switch {
	case j.queued || j.info.State == wire.JobRestarting:
		return Claim{Request: r}, true
	case j.changes():
		r.Slots, r.Most = min(j.move.to, c.capacity(j)), 0
		return Claim{Request: r}, r.Slots > 0
	case !j.adjustable():
		return Claim{}, false
	}
	on := make([]int, len(c.order))
	for _, w := range j.workers {
		if i := slices.Index(c.order, w.taskManager); i >= 0 {
			on[i] += w.slots
		}
	}
	return Claim{Request: r, On: on, Adjustable: true}, true
}

// changes reports whether the job's attempt ends, or is about to, so that the job goes on with other
// slots. It does not need its current slots in addition to those.
func (j *job) changes() bool {
	return j.info.State == wire.JobRestarting || j.info.State == wire.JobRunning && j.move != nil && j.move.to > 0
}

// reclaim adds the slots of a job's attempt to the free slots of offers, which are those of c.order,
// as if the attempt had ended. Slots of task managers that take no new workers are not added; one that
// is silent or away takes some again when the attempt has ended.
func (c *Core) reclaim(offers []Offer, j *job) {
	for w := range j.all() {
		n := w.taskManager
		if i := slices.Index(c.order, n); i >= 0 && !w.state.Gone() && n.Ailing == "" && !offers[i].Cordoned {
			offers[i].Free += w.slots
		}
	}
}

// capacity returns how many slots a running job would find if its attempt ended now.
func (c *Core) capacity(j *job) int {
	offers := c.offers()
	c.reclaim(offers, j)
	return room(offers, c.request(j))
}

// within returns with how many subtasks a running job can go on if it is to have n: as many as there
// are slots for, or those that it has if the change would not serve its purpose. Slots that the job
// has may be lost by a change, as those of a cordoned task manager.
func (c *Core) within(j *job, n int) int {
	had, can := j.info.Parallelism, min(n, c.capacity(j))
	if can < max(1, j.info.Allowed.Min) || n > had && can <= had {
		return had
	}
	return can
}

// notScaled ends an attempt to change the number of a job's subtasks, as its state could not be saved,
// as nothing would be gained, or as the slots are taken. The core tries again after a while.
func (c *Core) notScaled(j *job, failed bool) {
	c.endPrecopy(j)
	j.move, j.saveFailed = nil, failed
	j.scaleFrom = c.clock.Counted() + c.config.ScaleInterval
	c.balanceBy(j.scaleFrom)
}

// defaults of Config for elastic jobs.
const (
	defaultSettle        = 5 * time.Second
	defaultScaleInterval = 30 * time.Second
	// maxSettle is the number of times Config.Settle after which Balance decides although slots or
	// waiting jobs change all the time.
	maxSettle = 5
)
