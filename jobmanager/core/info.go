package core

import (
	"cmp"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// progressed stores the progress that worker w reports.
func (c *Core) progressed(w *worker, p *wire.Progress) {
	if w.state == WorkerRunning && w.job.info.State == wire.JobRunning {
		w.progress = p
		c.recovering(w, p)
		c.leaveGivers(w.job)
		c.emit(Progressed{ID: w.ref.Job})
	}
}

// progress returns the progress of the job. The counts of a vertex are the sums over all
// workers. The progress of queues is taken from worker 0, where subtask 0 runs. The result is
// nil if no worker has reported progress.
func (j *job) progress() *wire.Progress {
	var sum *wire.Progress
	for w := range j.all() {
		if w.progress == nil {
			continue
		}
		if sum == nil {
			sum = &wire.Progress{}
		}
		for i, v := range w.progress.Vertices {
			if i == len(sum.Vertices) {
				sum.Vertices = append(sum.Vertices, wire.VertexProgress{})
			}
			sum.Vertices[i].Rows += v.Rows
			sum.Vertices[i].ShardsDone += v.ShardsDone
		}
		for i, e := range w.progress.Edges {
			if i == len(sum.Edges) {
				sum.Edges = append(sum.Edges, wire.EdgeProgress{})
			}
			sum.Edges[i].Rows += e.Rows
			sum.Edges[i].Bytes += e.Bytes
		}
		for _, u := range w.progress.Uncopied {
			if !slices.ContainsFunc(sum.Uncopied, func(o wire.Uncopied) bool { return o.Queue == u.Queue }) {
				sum.Uncopied = append(sum.Uncopied, u)
			}
		}
		if w.ref.Worker == 0 {
			sum.Queues = slices.Clone(w.progress.Queues)
		}
	}
	if sum == nil {
		return j.info.Progress
	}
	return sum
}

// Progress returns the progress of a job, or nil if no progress is known. It takes time
// proportional to the numbers of workers and vertices of the job, so do not call it for each
// Progressed.
func (c *Core) Progress(id wire.JobID) *wire.Progress {
	if j := c.jobs[id]; j != nil {
		return j.progress()
	}
	return nil
}

// Job returns the current state of a job, with its progress, or false if the job is unknown.
func (c *Core) Job(id wire.JobID) (wire.JobInfo, bool) {
	j := c.jobs[id]
	if j == nil {
		return wire.JobInfo{}, false
	}
	info := j.snapshot()
	info.Progress = j.progress()
	return info, true
}

// Submission returns the job that was submitted with the given key, or false if there is none.
func (c *Core) Submission(key string) (wire.JobID, bool) {
	for id, j := range c.jobs {
		if key != "" && j.info.Key == key {
			return id, true
		}
	}
	return "", false
}

// Jobs returns all jobs without their progress and checkpoints, newest first.
func (c *Core) Jobs() []wire.JobInfo {
	all := make([]wire.JobInfo, 0, len(c.jobs))
	for _, j := range c.jobs {
		info := j.snapshot()
		info.Progress, info.Checkpoints = nil, nil
		all = append(all, info)
	}
	slices.SortFunc(all, func(a, b wire.JobInfo) int {
		return cmp.Or(b.Submitted.Compare(a.Submitted), cmp.Compare(b.ID, a.ID))
	})
	return all
}

// TaskManagers returns the task managers sorted by name, followed by the last few task managers
// that were lost or have left. After these come the other names that are cordoned.
func (c *Core) TaskManagers(now time.Duration) []wire.TaskManagerInfo {
	all := make([]wire.TaskManagerInfo, 0, len(c.order)+len(c.gone))
	for _, n := range c.order {
		all = append(all, c.info(n, now))
	}
	gone := slices.Clone(c.gone)
	slices.SortStableFunc(gone, compareTaskManagers)
	for _, n := range gone {
		all = append(all, c.info(n, now))
	}
	return append(all, c.absent(all)...)
}

func (c *Core) info(n *taskManager, now time.Duration) wire.TaskManagerInfo {
	info := wire.TaskManagerInfo{
		ID: n.ID, Name: n.Name, Host: n.Host, PID: n.PID,
		State:      n.state.String(),
		Slots:      n.Slots,
		Free:       c.offer(n).Free,
		Memory:     n.Memory,
		Platform:   n.Platform,
		Build:      n.Build,
		Executable: n.Executable,
		Ailing:     n.Ailing,
		Cordon:     c.keptFree(n),
		Avoided:    c.avoidedInfo(n),
		HeardAgo:   max(0, now-n.heardAt),
		Since:      n.since,
	}
	for _, w := range n.workersInOrder() {
		info.Workers = append(info.Workers, w.ref)
	}
	return info
}

// Overview returns a summary of the cluster. The shell adds the fields about uploads. It counts
// task managers that are alive, silent or away. It counts a slot as free only if the slot can
// be used now.
func (c *Core) Overview() wire.Overview {
	o := wire.Overview{
		Version:      wire.Version,
		Build:        c.config.Build,
		Cluster:      c.config.Cluster,
		Started:      c.config.Started,
		TaskManagers: len(c.order),
		Jobs:         make(map[string]int),
	}
	for _, n := range c.order {
		offer := c.offer(n)
		o.Slots += offer.Slots
		o.Free += offer.Free
		if offer.Cordoned {
			o.Cordoned += offer.Slots
		}
		if !slices.Contains(o.Platforms, n.Platform) {
			o.Platforms = append(o.Platforms, n.Platform)
		}
	}
	slices.SortFunc(o.Platforms, comparePlatforms)
	for _, j := range c.jobs {
		o.Jobs[j.info.State.String()]++
	}
	return o
}
