package core

import (
	"cmp"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Continuation has the parts of the state of a job that has not ended which a restarted job
// manager needs, and which JobInfo does not have.
type Continuation struct {
	// Lease is the lease that the task managers of the job's workers have. It may differ from
	// that of the restarted job manager.
	Lease time.Duration `msgpack:"lease"`
	// Began is the time at which the current attempt was deployed.
	Began time.Time `msgpack:"began"`
	// Hosts has the task managers of the workers of the current attempt, by worker number,
	// without the workers that they listed. It is empty if no worker of it can be left, and for a
	// job that resolves or commits.
	Hosts []wire.Register `msgpack:"hosts,omitempty"`
	// Delay is the part of the delay before the next attempt that is left, for a job that is
	// restarting.
	Delay time.Duration `msgpack:"delay,omitempty"`
	// Deciding says that a job that is failing still waits for the cause, and may be restarted.
	Deciding bool `msgpack:"deciding,omitempty"`
	// Overlaps says that the next attempt may begin while workers of the current one still run.
	Overlaps bool `msgpack:"overlaps,omitempty"`
	// Held says that workers of the current attempt, which runs, have kept something of earlier attempts.
	Held bool `msgpack:"held,omitempty"`
	// Moving says that the last attempt ended so that the job goes on with other slots. Target is the largest number
	// of slots that it gets then; 0 means as many as it may have.
	Moving bool `msgpack:"moving,omitempty"`
	Target int  `msgpack:"target,omitempty"`
	// Earlier has what the attempts before the current one have reported of their checkpoints.
	Earlier wire.Checkpointed `msgpack:"earlier"`
	// Restarts has what the restart strategy knows.
	Restarts RestartHistory `msgpack:"restarts"`
}

// RestartHistory is the state of a restart strategy.
type RestartHistory struct {
	Count   int             `msgpack:"count,omitempty"`   // number of restarts
	Delay   time.Duration   `msgpack:"delay,omitempty"`   // exponential-delay: the last delay
	Ages    []time.Duration `msgpack:"ages,omitempty"`    // failure-rate: how long ago the last restarts were
	Crashes []CrashCount    `msgpack:"crashes,omitempty"` // attempts that ended by crashes
	Left    []time.Duration `msgpack:"left,omitempty"`    // how long ago the last announced losses were
}

// CrashCount is the number of attempts that ended by the same crash.
type CrashCount struct {
	Text     string `msgpack:"text"`
	Outside  bool   `msgpack:"outside,omitempty"` // the crash may have a cause outside the program
	Attempts int    `msgpack:"attempts"`
}

// continuation returns what a restarted job manager needs to take up job j.
func (c *Core) continuation(j *job) *Continuation {
	now := c.clock.Counted()
	k := &Continuation{Lease: c.config.Lease, Began: j.deployed, Deciding: j.deciding, Overlaps: j.overlaps, Held: j.awaitsHeld || j.info.State == wire.JobRunning && j.held() != nil, Moving: j.moving, Target: j.target, Earlier: j.earlier, Restarts: j.restarts.history(now)}
	switch j.info.State {
	case wire.JobRestarting:
		k.Delay = max(0, j.restartAt-now)
	case wire.JobDeploying, wire.JobRunning, wire.JobFailing:
	default:
		return k
	}
	for _, w := range j.workers {
		host := w.taskManager.Register
		host.Ailing, host.Broke, host.Kept, host.Leaving, host.Presence, host.PresenceKey = "", "", nil, nil, "", ""
		k.Hosts = append(k.Hosts, host)
	}
	return k
}

// history returns the state of r at the counted time now.
func (r *restarts) history(now time.Duration) RestartHistory {
	h := RestartHistory{Count: r.count, Delay: r.delay}
	for _, at := range r.recent {
		h.Ages = append(h.Ages, now-at)
	}
	for _, at := range r.left {
		h.Left = append(h.Left, now-at)
	}
	for c, n := range r.crashes {
		h.Crashes = append(h.Crashes, CrashCount{c.text, c.outside, n})
	}
	slices.SortFunc(h.Crashes, func(a, b CrashCount) int {
		return cmp.Or(cmp.Compare(a.Text, b.Text), cmp.Compare(a.Attempts, b.Attempts))
	})
	return h
}

// restore sets the state of r to h. Time in which no job manager ran does not count.
func (r *restarts) restore(h RestartHistory, now time.Duration) {
	r.count, r.delay, r.recent, r.crashes = h.Count, h.Delay, nil, nil
	for _, age := range h.Ages {
		r.recent = append(r.recent, now-age)
	}
	r.left = nil
	for _, age := range h.Left {
		r.left = append(r.left, now-age)
	}
	if len(h.Crashes) > 0 {
		r.crashes = make(map[crash]int)
	}
	for _, c := range h.Crashes {
		r.crashes[crash{c.Text, c.Outside}] = c.Attempts
	}
}
