package core

import (
	"slices"

	"github.com/superstep-ml/superstep/internal/wire"
)

// If a kept process is on a task manager where the next attempt of its job has no slots, it becomes a
// giver: a worker of that attempt, behind all others, that has no slots. It sends the rows of queues and the
// states that it has kept to the workers that need them, and has finished then. So a job that is scaled
// down, or leaves a task manager, makes nothing again that is still there. A giver is deployed, prepared and
// started like all workers. When it has finished and all others have begun to run, and have thus fetched their
// states, the attempt goes on without it (wire.Placed.Left). It gets the command to exit when that is on record,
// as a restarted job manager would miss it otherwise. Its loss before it has finished is the loss of the attempt,
// as a worker that still fetches states would ask it for ever.

// gives reports whether the worker is a giver.
func (w *worker) gives() bool { return w.mode == wire.RunMode && w.slots == 0 }

// givers returns the kept processes of a job that can be givers of an attempt on the given task managers.
func (j *job) givers(on []*taskManager) (all []keptProcess) {
	for _, k := range j.kept {
		n := k.taskManager
		if n.state == TaskManagerAlive && n.conn != 0 && !slices.Contains(on, n) && !slices.ContainsFunc(all, func(o keptProcess) bool { return o.taskManager == n }) {
			all = append(all, k)
		}
	}
	return all
}

// running returns how many workers of the current attempt have slots. They are the first.
func (j *job) running() (n int) {
	for _, p := range j.info.Workers {
		if p.Slots.Hi > p.Slots.Lo {
			n++
		}
	}
	return n
}

// haveBegun reports whether all workers with slots have begun to run, and need no states any more.
func (j *job) haveBegun() bool {
	return !slices.ContainsFunc(j.workers, func(w *worker) bool {
		return !w.gives() && w.progress == nil && w.state == WorkerRunning
	})
}

// leaves reports whether the attempt goes on without the giver, and it is not on record yet.
func (w *worker) leaves() bool {
	return w.gives() && w.state == WorkerFinished && w.ordered == notOrdered && w.job.info.Workers[w.ref.Worker].Left
}

// leaveGivers notes that a job goes on without those givers that are not needed any more. At most one record of
// that is being written, so that it is known which givers it has.
func (c *Core) leaveGivers(j *job) {
	if j.info.State != wire.JobRunning || !j.haveBegun() || slices.ContainsFunc(j.workers, (*worker).leaves) {
		return
	}
	left := false
	for _, w := range j.workers {
		if w.gives() && w.state == WorkerFinished && w.ordered == notOrdered {
			left = c.giverLeft(w) || left
		}
	}
	if left {
		c.persist(j, Persist{Barrier: true, Retry: true})
	}
}

// exitGivers tells the givers of a job to exit of which it is on record that the attempt goes on without them.
func (c *Core) exitGivers(j *job) {
	for _, w := range j.workers {
		if w.leaves() {
			c.stop(w, orderedExit, "")
		}
	}
	c.leaveGivers(j)
}

// giverLeft notes that the attempt goes on without a giver. It returns false if that was noted before.
func (c *Core) giverLeft(w *worker) bool {
	p := &w.job.info.Workers[w.ref.Worker]
	before := p.Left
	p.Left = true
	return !before
}

// hasLeft adds to a job that is taken up a giver that has left.
func (j *job) hasLeft(number int, host wire.Register) {
	j.workers = append(j.workers, &worker{
		ref: wire.WorkerRef{Job: j.info.ID, Attempt: j.info.Attempt, Worker: number}, job: j,
		taskManager: &taskManager{Register: host, state: TaskManagerLeft}, mode: wire.RunMode, state: WorkerEnded, toldHeld: true,
	})
}
