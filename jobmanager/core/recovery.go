package core

import (
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// The record of a lost attempt has the times of the recovery from it: see wire.Recovery. A phase
// that has ended is not ended again, and no phase is recorded of an attempt that did not follow.

// recoverySeconds are the upper bounds of the buckets of Durations, in seconds. A last bucket has no
// bound.
var recoverySeconds = [...]float64{0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300}

// Durations counts durations by buckets. Each is in the first bucket whose bound is not below it.
type Durations struct {
	Count   uint64
	Seconds float64 // sum
	Buckets [len(recoverySeconds) + 1]uint64
}

// add counts a duration.
func (d *Durations) add(t time.Duration) {
	s := t.Seconds()
	i := slices.IndexFunc(recoverySeconds[:], func(bound float64) bool { return s <= bound })
	if i < 0 {
		i = len(recoverySeconds)
	}
	d.Count++
	d.Seconds += s
	d.Buckets[i]++
}

// UpTo returns, for the bound in seconds of each bucket but the last, the number of durations that are
// not above it.
func (d *Durations) UpTo() map[float64]uint64 {
	all, sum := make(map[float64]uint64, len(recoverySeconds)), uint64(0)
	for i, bound := range recoverySeconds {
		sum += d.Buckets[i]
		all[bound] = sum
	}
	return all
}

// phaseEnds records that a phase of the recovery from the job's last lost attempt ends now. after is
// the number of attempts that must have followed. It returns whether the phase had not ended before.
func (c *Core) phaseEnds(j *job, p wire.RecoveryPhase, after int) bool {
	n := len(j.info.Lost)
	if n == 0 || j.info.Attempt != j.info.Lost[n-1].Number+after || !j.info.Lost[n-1].Recovery.End(p).IsZero() {
		return false
	}
	lost := slices.Clone(j.info.Lost)
	r := &lost[n-1].Recovery
	*r.End(p) = c.wall()
	j.info.Lost = lost
	c.counters.Recovery[p].add(max(0, r.End(p).Sub(r.Detected)))
	return true
}

// survivorsStopped records that no worker of the lost attempt runs any more.
func (c *Core) survivorsStopped(j *job) {
	if j.info.State == wire.JobRestarting {
		c.phaseEnds(j, wire.RecoveryAgreed, 0)
	}
}

// recovering records the phases of a recovery that the progress p of worker w shows.
func (c *Core) recovering(w *worker, p *wire.Progress) {
	j := w.job
	w.opened = w.opened || p.Opened
	resumed := w.ref.Worker == 0 && p.Resumed > 0
	if resumed || !slices.ContainsFunc(j.workers, func(w *worker) bool { return !w.opened && !w.gives() }) {
		c.phaseEnds(j, wire.RecoveryMoved, 1)
	}
	if resumed && c.phaseEnds(j, wire.RecoveryResumed, 1) {
		j.info.Lost[len(j.info.Lost)-1].Recovery.Superstep = p.Resumed // phaseEnds has copied the list
		c.record(j, false)
	}
}
