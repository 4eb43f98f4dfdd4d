package core

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// These constants bound what is kept of the checkpoints of a job. What a worker reports comes from
// a process that runs user code, so nothing in it is believed.
const (
	maxQueues  = 32  // number of queues of a checkpoint
	maxName    = 200 // bytes of the name of such a queue
	maxSeconds = 1e9 // longest time of a write
)

// Counters count what has happened to all jobs since the core began.
type Counters struct {
	Checkpoints, FailedCheckpoints uint64 // checkpoints that were written, and writes that failed
	CheckpointBytes                uint64
	CheckpointSeconds              float64
	Restarts                       uint64                      // attempts that followed a lost one whose loss was not announced
	Moves                          uint64                      // attempts that followed one that ended on purpose, or whose loss was announced
	Lost                           map[wire.FailureKind]uint64 // lost attempts, by the kind of the cause
	// Recovery has, for each phase of recoveries, the times from the detection of the loss to the end
	// of the phase.
	Recovery [wire.RecoveryPhases]Durations
}

// countLost counts a lost attempt. Kinds that do not exist count as failures of the cluster.
func (c *Counters) countLost(kind wire.FailureKind) {
	if kind < wire.UserFailure || kind > wire.ClusterFailure {
		kind = wire.ClusterFailure
	}
	c.Lost[kind]++
}

// Counters returns the current counts. The caller owns the map.
func (c *Core) Counters() Counters {
	counters := c.counters
	counters.Lost = maps.Clone(counters.Lost)
	return counters
}

// CheckpointAges returns, for each job that runs and has checkpoints, the time since the core
// learned of the newest one. As long as there is none, it is the time since the job began to run.
func (c *Core) CheckpointAges(now time.Duration) map[wire.JobID]time.Duration {
	ages := make(map[wire.JobID]time.Duration)
	for _, j := range c.live {
		if j.info.State == wire.JobRunning && j.info.Checkpoints != nil {
			ages[j.info.ID] = max(0, now-j.newest)
		}
	}
	return ages
}

// checkpointed adds what worker 0 reports to the checkpoints of its job. What other workers report is
// passed on to it. Reports of former attempts, whose workers are unknown, are ignored. While an attempt
// is being stopped, its reports count: the next attempt may continue from there.
func (c *Core) checkpointed(w *worker, report *wire.Checkpointed) {
	j := w.job
	before := j.info.Checkpoints
	if before == nil || w.mode != wire.RunMode || w.ref.Attempt != j.info.Attempt || j.info.State.Ended() {
		return
	}
	if w.ref.Worker != 0 {
		c.unwritten(w, report)
		return
	}
	after := &wire.JobCheckpoints{Dir: before.Dir, Checkpointed: following(j.earlier, boundedCheckpoints(report))}
	if after.Written < before.Written || after.Failed < before.Failed {
		return // an older report
	}
	if after.Written > before.Written {
		j.newest = c.now
	}
	c.counters.Checkpoints += uint64(after.Written - before.Written)
	c.counters.FailedCheckpoints += uint64(after.Failed - before.Failed)
	c.counters.CheckpointBytes += uint64(max(0, after.Bytes-before.Bytes))
	c.counters.CheckpointSeconds += max(0, after.Seconds-before.Seconds)
	j.info.Checkpoints = after
}

// unwritten tells worker 0 that worker w could not write its part of a checkpoint, for which worker 0
// waits. Worker 0 then reports that the checkpoint has failed, and answers those who wait for it.
func (c *Core) unwritten(w *worker, report *wire.Checkpointed) {
	j := w.job
	first := j.workers[0]
	if report.Failing == nil || j.info.State != wire.JobRunning || first.state != WorkerRunning {
		return
	}
	queues, _ := boundedQueues(report.Unwritten, 0)
	why := boundedCheckpoints(report).Failing.Error
	c.command(first, wire.WorkerCommand{Unwritten: &wire.Unwritten{Worker: w.ref.Worker, Queues: queues, Error: why}})
}

// following returns the checkpoints of several attempts: those of the attempts before the last
// one, and those of the last one.
func following(before, last wire.Checkpointed) wire.Checkpointed {
	all := last
	all.Written += before.Written
	all.Failed += before.Failed
	all.Bytes += before.Bytes
	all.Seconds += before.Seconds
	newest := slices.Concat(before.Newest, last.Newest)
	all.Newest = newest[max(0, len(newest)-wire.MaxCheckpointsTold):]
	switch {
	case before.Failing == nil || last.Written > 0:
	case last.Failing == nil:
		all.Failing = before.Failing
	default:
		all.Failing = &wire.FailedCheckpoints{Since: before.Failing.Since, Count: before.Failing.Count + last.Failing.Count, Error: last.Failing.Error}
	}
	return all
}

// boundedCheckpoints returns a copy of a report without numbers that cannot be, and without texts
// and lists that are too long.
func boundedCheckpoints(r *wire.Checkpointed) wire.Checkpointed {
	b := wire.Checkpointed{Written: bounded32(r.Written), Failed: bounded32(r.Failed), Bytes: boundedBytes(r.Bytes), Seconds: boundedSeconds(r.Seconds)}
	for _, w := range r.Newest[max(0, len(r.Newest)-wire.MaxCheckpointsTold):] {
		w.Bytes, w.Seconds, w.More = boundedBytes(w.Bytes), boundedSeconds(w.Seconds), bounded32(w.More)
		w.Queues, w.More = boundedQueues(w.Queues, w.More)
		b.Newest = append(b.Newest, w)
	}
	if f := r.Failing; f != nil {
		b.Failing = &wire.FailedCheckpoints{Since: f.Since, Count: bounded32(f.Count), Error: shorten(strings.ToValidUTF8(f.Error, "�"), maxCause)}
	}
	return b
}

// boundedQueues returns at most maxQueues queues, and the number of the others. Queues that have
// ended are left out first.
func boundedQueues(queues []wire.OriginQueue, more int) ([]wire.OriginQueue, int) {
	kept := make([]wire.OriginQueue, 0, min(len(queues), maxQueues))
	room := maxQueues
	for _, q := range queues {
		if !q.Ended {
			room--
		}
	}
	goingOn := maxQueues
	for _, q := range queues {
		if q.Ended && room > 0 {
			room--
		} else if !q.Ended && goingOn > 0 {
			goingOn--
		} else {
			more++
			continue
		}
		q.Name = shorten(q.Name, maxName)
		kept = append(kept, q)
	}
	return kept, more
}

// bounded32, boundedBytes and boundedSeconds replace numbers that cannot be.
func bounded32(n int) int { return min(max(n, 0), 1<<31-1) }

func boundedBytes(n int64) int64 { return min(max(n, 0), 1<<50) }

func boundedSeconds(s float64) float64 {
	if s >= 0 && s <= maxSeconds { // not NaN
		return s
	}
	return 0
}
