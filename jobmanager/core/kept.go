package core

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/superstep-ml/superstep/internal/humanize"
	"github.com/superstep-ml/superstep/internal/wire"
)

// A worker that ends because of other workers keeps its process for the next attempt of the job, with the
// rows of its queues (wire.Kept). It has ended then, and its slots are free for everybody. The next attempt
// is placed so that such processes are used, and own the shards that they have, as far as possible
// (placeSurvivors, arrange). Its deployment takes the process over. Processes that it does not take are told
// to exit, and so are all if the job gets no further attempt.
//
// A task manager ends a process when its slots are needed or nobody has taken it for a while. It lists those that
// it has when it registers and in each heartbeat. So a restarted job manager knows them too. What the core knows
// may be out of date for a moment; the task manager then starts another process. The worker of the next attempt
// reads states in files on the task manager of the one before; a restarted job manager does not know which that is.

// maxAllHeld bounds wire.Ready.Held of all workers of an attempt together, in bytes. Each of them gets that.
// If there is more, they get nothing, and make their rows anew.
const maxAllHeld = 16 << 20

// keptProcess is a process that waits on a task manager for the next attempt of its job.
type keptProcess struct {
	taskManager *taskManager
	ref         wire.WorkerRef // the worker that has kept it
	slots       wire.SlotRange // the slots of the job that the worker had; empty if they are not known
	of          int            // number of all slots that the job had; 0 if it is not known
}

// workerKept processes the end of worker w, which has kept its process.
func (c *Core) workerKept(w *worker) {
	n := w.taskManager
	c.workerGone(w, processEnded, nil, lost)
	n.Kept = append(slices.Clone(n.Kept), w.ref)
	c.foundKept(n, w.ref)
}

// listedKept compares the kept processes that a task manager lists with those that the core knows. Unless the task
// manager registers, it does that only if the list has changed, as it considers all jobs.
func (c *Core) listedKept(n *taskManager, listed []wire.WorkerRef, registers bool) {
	if !registers && slices.Equal(n.Kept, listed) {
		return
	}
	n.Kept = listed
	for _, j := range c.live {
		j.kept = slices.DeleteFunc(j.kept, func(k keptProcess) bool { return k.taskManager == n && !slices.Contains(listed, k.ref) })
	}
	for _, ref := range listed {
		if n.workers[ref] == nil { // otherwise the end of the worker is yet to be reported
			c.foundKept(n, ref)
		}
	}
}

// foundKept decides what becomes of the process that task manager n has kept of worker ref. It waits for the next
// attempt of its job if there may be one. If a worker of the current attempt is there, the deployment takes the
// process over.
func (c *Core) foundKept(n *taskManager, ref wire.WorkerRef) {
	j, k := c.jobs[ref.Job], keptProcess{taskManager: n, ref: ref}
	if j == nil || !j.goesOn() {
		c.exit(k)
		return
	}
	current := ref.Attempt == j.info.Attempt
	all := j.info.Workers
	switch {
	case current && j.moving && j.precopy != nil && j.precopy.asked:
		k.slots, k.of = j.nextSlots(n)
	case current && ref.Worker < len(all):
		k.slots, k.of = all[ref.Worker].Slots, all[len(all)-1].Slots.Hi
	}
	runs := j.info.State == wire.JobDeploying || j.info.State == wire.JobRunning
	switch {
	case j.keeps(n, ref) || j.workerOn(n) != nil:
	case runs && !current:
		c.exit(k)
	default:
		j.kept = append(j.kept, k)
	}
}

// goesOn reports whether the job has an attempt that runs, or may get another one.
func (j *job) goesOn() bool {
	switch j.info.State {
	case wire.JobWaiting, wire.JobDeploying, wire.JobRunning, wire.JobRestarting:
		return true
	case wire.JobFailing:
		return j.deciding
	}
	return false
}

// exit tells a kept process to exit.
func (c *Core) exit(k keptProcess) {
	c.send(k.taskManager, wire.ToTaskManager{Worker: &wire.WorkerCommand{WorkerRef: k.ref, Exit: &wire.Exit{}}})
}

// dismissKept tells the kept processes of a job to exit, except for those on the given task managers.
func (c *Core) dismissKept(j *job, except []*taskManager) {
	j.kept = slices.DeleteFunc(j.kept, func(k keptProcess) bool {
		if slices.Contains(except, k.taskManager) {
			return false
		}
		c.exit(k)
		return true
	})
}

// keeps reports whether the job has a kept process of worker ref on task manager n.
func (j *job) keeps(n *taskManager, ref wire.WorkerRef) bool {
	return slices.ContainsFunc(j.kept, func(k keptProcess) bool { return k.taskManager == n && k.ref == ref })
}

// forgetKept forgets the kept processes of a job on task manager n.
func (j *job) forgetKept(n *taskManager) {
	j.kept = slices.DeleteFunc(j.kept, func(k keptProcess) bool { return k.taskManager == n })
}

// setKept adds the kept processes of a job to the request for its slots. It leaves out those of an attempt
// with another number of slots than that of the last process, and those of which that is not known.
func (r *Request) setKept(all []keptProcess) {
	for _, k := range all {
		r.Was = cmp.Or(k.of, r.Was)
	}
	if r.Was == 0 {
		return
	}
	r.Kept = make(map[string]wire.SlotRange, len(all))
	for _, k := range all {
		if k.of == r.Was {
			r.Kept[k.taskManager.ID] = k.slots
		}
	}
}

// noteFiles notes where an attempt that has ended has left states in files. A worker that has all slots writes
// them on its task manager, as no other worker holds copies.
func (j *job) noteFiles() {
	switch {
	case j.started == 0 || len(j.workers) == 0: // the files of an earlier attempt are still the newest
	case j.running() == 1 && j.spec.Run.NumberOfCopies() > 0:
		j.filesOn = j.workers[0].taskManager.ID
	default:
		j.filesOn = ""
	}
}

// setFiles makes a job without kept processes prefer the task manager that has its states in files, as it
// would that of a process with all slots.
func (r *Request) setFiles(j *job) {
	if len(r.Kept) == 0 && j.filesOn != "" {
		r.Was = max(1, r.Slots, r.Most)
		r.Kept = map[string]wire.SlotRange{j.filesOn: {Lo: 0, Hi: r.Was}}
	}
}

// survives reports whether the job has a kept process on the task manager of an offer.
func (r *Request) survives(o *Offer) bool {
	_, ok := r.Kept[o.ID]
	return ok
}

// placeSurvivors chooses slots as Place does, for a job with kept processes. The task managers of these
// processes come first: each gets as many slots as the process had, or fewer if the job needs fewer or fewer
// are free. The other slots are chosen by the policy. Spread uses task managers without a kept process
// first. Avoided task managers are not preferred.
func placeSurvivors(offers []Offer, fit []int, r Request) []int {
	taken := make([]int, len(offers))
	own := slices.Clone(offers)
	var survivors []int
	for _, i := range fit {
		if o := &own[i]; r.survives(o) && !o.Avoided {
			o.Free = min(o.Free, r.Kept[o.ID].Hi-r.Kept[o.ID].Lo)
			survivors = append(survivors, i)
		}
	}
	slices.SortFunc(survivors, func(a, b int) int { return byRoom(own[a], own[b]) })
	want := choose(own, [][]int{survivors}, r.Policy, r.Slots, taken)

	rest := slices.Clone(offers)
	parts := make([][]int, 3) // offers without a process, those with one, and those that are avoided
	for _, i := range fit {
		o := &rest[i]
		if o.Free -= taken[i]; o.Free == 0 {
			continue
		}
		k := 0
		if o.Avoided {
			k = 2
		} else if r.Policy == Spread && r.survives(o) {
			k = 1
		}
		parts[k] = append(parts[k], i)
	}
	for _, part := range parts {
		slices.SortFunc(part, func(a, b int) int { return byRoom(rest[a], rest[b]) })
	}
	more := make([]int, len(offers))
	choose(rest, parts, r.Policy, want, more)
	for i, n := range more {
		taken[i] += n
	}
	return taken
}

// hold records what a worker says that its process has kept of earlier attempts. It returns false if that
// is too much, so that the worker has failed.
func (c *Core) hold(w *worker, held []byte) bool {
	if len(held) > wire.MaxHeld {
		c.workerFailed(w, &wire.Failure{
			Kind:     wire.ClusterFailure,
			Message:  fmt.Sprintf("the worker says in %s what it has kept of earlier attempts, and may use %s", humanize.Count(len(held), "byte"), humanize.Count(wire.MaxHeld, "byte")),
			ExitCode: -1,
		}, notEnded)
		return false
	}
	w.held = held
	return true
}

// heldAgain records what worker w, which a former job manager has started, has kept. All workers must be
// told the same in Start. So the command, which may have been lost, is sent again when all have said it.
func (c *Core) heldAgain(w *worker, held []byte) {
	j := w.job
	w.toldHeld = true
	if j.info.State != wire.JobRunning || w.ref.Attempt != j.info.Attempt || !c.hold(w, held) {
		return
	}
	if slices.ContainsFunc(j.workers, func(w *worker) bool { return !w.toldHeld }) {
		return
	}
	j.awaitsHeld = false
	start := j.start()
	for _, w := range j.workers {
		if w.ordered == notOrdered && w.state == WorkerRunning {
			c.command(w, wire.WorkerCommand{Start: start})
		}
	}
}

// held returns what each worker has kept of earlier attempts, or nil if none has kept anything, or if it is
// too much for a message.
func (j *job) held() [][]byte {
	all, size := make([][]byte, len(j.workers)), 0
	for i, w := range j.workers {
		all[i] = w.held
		size += len(w.held)
	}
	if size == 0 || size > maxAllHeld {
		return nil
	}
	return all
}
