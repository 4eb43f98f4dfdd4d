package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// A task manager that is to stop announces it first. From then on it gets no new workers, as if it
// were cordoned. But this is not on record, and holds only for this process of the task manager. The
// jobs there leave as for a drain (move.go), and the task manager sends Leave when its last worker
// has ended. If its time is over before that, it kills its workers. Their loss is announced then, as
// is any loss of workers of this task manager.
//
// An announced loss does not count for the restart strategy of a job, and the job begins again without
// a delay. So that this cannot go on for ever, more than maxLeaves announced losses of a job within
// leavesWindow count as other losses do.

const (
	maxLeaves    = 20
	leavesWindow = time.Hour
	// A job that could not be saved leaves a tenth of the time before the task manager kills its
	// workers, but at most leaveMargin before. So its workers can end on command.
	leaveMargin = 3 * time.Second
	// maxWithin bounds the time that an announcement gives.
	maxWithin = 10_000 * time.Hour
)

// LeaveAnnounced says that a task manager has announced that it leaves.
type LeaveAnnounced struct {
	Conn int
	wire.Leaving
}

func (LeaveAnnounced) event() {}

// departure is the announcement of a task manager that it leaves.
type departure struct {
	reason string
	since  time.Time
	by     time.Duration // counted time at which jobs leave in any case
}

// leaveAnnounced processes an announcement.
func (c *Core) leaveAnnounced(e LeaveAnnounced) {
	if n := c.hear(e.Conn); n != nil {
		c.announce(n, e.Leaving)
	}
}

// announce records that task manager n leaves, and makes the jobs there leave it. Announcements are
// repeated when a task manager registers again. They do not extend the time.
func (c *Core) announce(n *taskManager, l wire.Leaving) {
	within := min(max(0, l.Within), maxWithin)
	by := max(1, c.clock.Counted()+within-min(within/10, leaveMargin))
	if n.departure == nil {
		n.departure = &departure{reason: shorten(l.Reason, maxText), since: c.wall(), by: by}
	}
	d := n.departure
	d.by, c.rethink = min(d.by, by), true
	for _, j := range slices.Clone(c.live) {
		c.endTakersOn(j, n.is)
		switch {
		case j.resolvesOn(n):
			c.resolveElsewhere(j)
		case j.runsOn(n.is):
			c.askToLeave(j, fmt.Sprintf("task manager %s leaves (%s)", n.Name, d.reason), d.by)
		}
	}
}

// is reports whether n and o are the same process of a task manager.
func (n *taskManager) is(o *taskManager) bool { return n == o }

// LeavingOn returns the jobs on the task manager of a connection that leave when it announces that
// it leaves, and those that stay for the time being, as nothing would be left of their state.
func (c *Core) LeavingOn(conn int) (leave, stay []wire.JobID) {
	if n := c.conns[conn]; n != nil {
		return c.leaving(n.is)
	}
	return nil, nil
}

// resolvesOn reports whether a worker on task manager n resolves the job's graph.
func (j *job) resolvesOn(n *taskManager) bool {
	return j.info.State == wire.JobResolving && !j.queued && !j.compiling && j.resolver.taskManager == n
}

// resolveElsewhere kills the worker that resolves a job's graph, and makes another one begin anew.
// Such a worker writes nothing, so nobody waits for its end.
func (c *Core) resolveElsewhere(j *job) {
	w := j.resolver
	j.resolver, j.queued, j.since, j.info.Detail = nil, true, c.clock.Counted(), ""
	c.stop(w, orderedKill, "")
}

// keptFree returns the cordon that users see of task manager n: the cordon of its name or, if it
// leaves, one that says so. It is nil if there is none.
func (c *Core) keptFree(n *taskManager) *wire.Cordon {
	if cordon := c.Cordon(n.Name); cordon != nil || n.departure == nil || n.state.Gone() {
		return cordon
	}
	return &wire.Cordon{Reason: fmt.Sprintf("it leaves (%s)", n.departure.reason), Since: n.departure.since}
}

// leaves records an announced loss at the counted time now. It returns false if there were too many
// within the last leavesWindow, so that the loss counts as any other.
func (r *restarts) leaves(now time.Duration) bool {
	r.left = slices.DeleteFunc(r.left, func(at time.Duration) bool { return now-at >= leavesWindow })
	if len(r.left) >= maxLeaves {
		return false
	}
	r.left = append(r.left, now)
	return true
}
