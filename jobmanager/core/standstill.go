package core

import (
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// standstill describes the last period in which this process did not run. The core's clock does
// not count that period as silence of task managers. But the period has consequences that
// appear only afterwards: connections broke, and task managers reconnect with pauses between
// their attempts; task managers whose lease lapsed have killed their workers. So all waits
// begin again after a standstill, and failures that result from it name the standstill as their
// cause.
type standstill struct {
	gap time.Duration // length of the period; 0 if there was none
	end time.Duration // counted time when the period ended
}

// before reports whether there was a standstill and it ended at most the duration within before
// the counted time at.
func (s standstill) before(at, within time.Duration) bool {
	return s.gap > 0 && at-s.end <= within
}

// checkStandstill checks, before an event is processed, whether this process did not run until
// now. If so, it restarts the waits. It restarts the wait for a message from a task manager
// only once until a message from that task manager arrives. So even a job manager with many
// standstills detects lost task managers.
func (c *Core) checkStandstill() {
	gap := c.clock.Gap(c.now, c.config.Detection/2)
	if gap == 0 {
		return
	}
	c.still = standstill{gap: gap, end: c.clock.Counted()}
	for _, n := range c.order {
		if !n.waitRestarted {
			n.waitRestarted, n.heard = true, c.clock.Counted()
		}
		for _, w := range n.workers {
			w.missed = c.clock.Counted()
		}
	}
	for _, j := range c.live {
		if j.deciding {
			j.decideBy = c.causeDue(j)
		}
	}
}

// explainUnheard returns the failure of a worker. f is the report of the worker's task manager
// that it killed the worker because the lease lapsed. Either this process did not run, and then
// the failure blames the job manager, or the job manager and the task manager could not reach
// each other.
func (c *Core) explainUnheard(f *wire.Failure) *wire.Failure {
	told := *f
	told.Kind = wire.LostFailure
	if s := c.still; s.gap >= c.config.Lease/2 && s.before(c.clock.Counted(), c.config.Lease) {
		told = wire.Failure{
			Kind: wire.ClusterFailure, Worker: -1, ExitCode: -1,
			Message: fmt.Sprintf("the job manager did not run for %.1fs, as if it were stopped or its machine had no time for it, and task managers end their workers after %s without a message of it (--lease)",
				s.gap.Seconds(), c.config.Lease),
		}
	}
	return &told
}
