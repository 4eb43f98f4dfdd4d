package core

import (
	"fmt"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// A job leaves a task manager that is drained, or that has announced that it leaves (leave.go): it is
// saved, and then restarted on other task managers. This loss of its attempt is announced, so it does
// not count for the restart strategy. A job without checkpoints has its states saved in the memory of its
// workers. If none of these would be left, or if there are too few slots for the next attempt, it stays until
// the time limit.

// Drained says that the jobs on the task managers of a name must leave them. That is on disk, as part of the cordon
// of the name.
type Drained struct {
	TaskManager string
}

func (Drained) event() {}

// move is what is left to do until an attempt ends so that the job goes on with other slots.
type move struct {
	cause string
	by    time.Duration // counted time at which the job leaves in any case; 0 if there is none
	to    int           // number of subtasks that the next attempt is to have; 0 if the job only leaves
	again time.Duration // counted time at which the job is asked once more for its state; 0 if it is not
	waits bool          // the job is asked once more when no client waits for a savepoint
}

// drained makes the jobs on the task managers of a name leave them.
func (c *Core) drained(e Drained) {
	for _, j := range slices.Clone(c.live) {
		c.leaveDrained(j, e.TaskManager)
	}
}

// leaveDrained makes a job leave the task managers of a name if it runs there and they are drained.
func (c *Core) leaveDrained(j *job, name string) {
	cordon := c.cordons[name]
	if cordon.Drained {
		c.endTakersOn(j, ofName(name))
	}
	if !cordon.Drained || !j.runsOn(ofName(name)) {
		return
	}
	by := time.Duration(0)
	if !cordon.By.IsZero() {
		by = max(1, c.clock.Counted()+cordon.By.Sub(c.wall()))
	}
	c.askToLeave(j, fmt.Sprintf("task manager %s is drained", name), by)
}

// askToLeave makes a job that deploys or runs leave one of its task managers, for the reason cause.
// by is the counted time at which it leaves in any case, or 0 if there is none. An earlier time limit
// stays.
func (c *Core) askToLeave(j *job, cause string, by time.Duration) {
	m := &move{cause: cause, by: by}
	if before := j.move; before != nil && before.by > 0 && (m.by == 0 || before.by < m.by) {
		m.by = before.by
	}
	if j.move != nil {
		m.again = j.move.again
	}
	asked, waits := j.move != nil, j.move != nil && j.move.waits
	j.move = m
	switch {
	case j.info.State == wire.JobDeploying: // nothing is lost
		c.moveAway(j)
	case waits: // which a job that leaves does not
		c.askSave(j, wire.Save{}, 0)
	case asked:
		c.hurry(j)
	case c.canGoOn(j):
		c.askToMove(j)
	case j.remembers():
		m.again = c.clock.Counted() + c.config.ScaleInterval
	}
}

// ofName returns a condition that task managers with the given name meet.
func ofName(name string) func(*taskManager) bool {
	return func(n *taskManager) bool { return n.Name == name }
}

// runsOn reports whether a job that can leave has a worker on a task manager that meets a condition.
func (j *job) runsOn(condition func(*taskManager) bool) bool {
	return (j.info.State == wire.JobDeploying || j.info.State == wire.JobRunning) &&
		slices.ContainsFunc(j.workers, func(w *worker) bool { return condition(w.taskManager) && !w.gives() })
}

// Leaving returns the jobs on the task managers of a name that leave when these are drained, and
// those that stay for the time being, as nothing would be left of their state.
func (c *Core) Leaving(name string) (leave, stay []wire.JobID) { return c.leaving(ofName(name)) }

func (c *Core) leaving(condition func(*taskManager) bool) (leave, stay []wire.JobID) {
	for _, j := range c.live {
		switch {
		case !j.runsOn(condition):
		case j.info.State == wire.JobDeploying || c.goesOnWithout(j, condition):
			leave = append(leave, j.info.ID)
		default:
			stay = append(stay, j.info.ID)
		}
	}
	return leave, stay
}

// movable makes a job leave that is saved, or could not be saved because its store fails. In that
// case its last checkpoint is as good as a later attempt to write another one. A job without
// checkpoints is asked again later. A job that would only get another number of slots goes on as it is if
// it failed to be saved. So does such a job whose attempt has gained nothing yet, or whose queues have
// ended, as it would have to repeat what it does now.
func (c *Core) movable(j *job, failed, gained bool) {
	before := j.fruitless
	j.fruitless = failed || j.move != nil && j.move.to > 0 && !gained
	switch m := j.move; {
	case m == nil || j.info.State != wire.JobRunning:
	case m.to > 0 && (failed || !gained || !c.canGoOn(j)):
		c.notScaled(j, true)
	case before && !j.fruitless && c.canGoOn(j) && c.choosePrecopy(j) != nil:
		c.askToMove(j) // rows were not copied, as it was not known that the job would move
	case m.to > 0:
		to := c.within(j, m.to) // others may have taken slots since
		if to == j.info.Parallelism {
			c.notScaled(j, false)
			return
		}
		j.move = j.scaleTo(to)
		c.moveAway(j)
	case !j.saves() && (failed || !c.canGoOn(j)):
		c.endPrecopy(j)
		m.again = c.clock.Counted() + c.config.ScaleInterval
	default:
		c.moveAway(j)
	}
}

// moveAway ends the current attempt of a job that has to leave a task manager.
func (c *Core) moveAway(j *job) {
	m, f := j.move, &wire.Failure{Kind: wire.ClusterFailure, Message: j.move.cause, Worker: -1, ExitCode: -1}
	j.target, j.moving, j.move = m.to, true, nil
	switch {
	case m.to > 0:
		c.counters.Moves++
		c.restart(j, f, 0)
	case !c.attemptLost(j, f, announced):
		c.fail(j, f)
	}
}

// leaveOverdue makes a job leave when the time for that is over, and asks a job that could not be saved for
// its state again.
func (c *Core) leaveOverdue(j *job) {
	switch m, now := j.move, c.clock.Counted(); {
	case m == nil:
	case m.by > 0 && now >= m.by:
		c.moveAway(j)
	case m.again > 0 && now >= m.again && j.info.State == wire.JobRunning:
		c.askAgain(j)
	}
}

// askAgain asks a job once more for its state. It need not leave any more if all of its task managers take
// new workers again.
func (c *Core) askAgain(j *job) {
	j.move.again = c.clock.Counted() + c.config.ScaleInterval
	switch {
	case !j.runsOn(func(n *taskManager) bool { return c.offer(n).Cordoned }):
		j.move = nil
	case c.canGoOn(j):
		j.move.again = 0
		c.askToMove(j)
	}
}
