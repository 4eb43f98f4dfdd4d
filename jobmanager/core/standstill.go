package core

import (
	"fmt"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// standstill is the last period in which this process did not run. The core's clock does not
// count it as silence of others. But its consequences are still to come: connections broke and
// are made anew with pauses between the attempts, and task managers whose lease lapsed have
// ended their workers. So after a standstill all waits begin anew, and failures that follow
// from it name it as their cause.
type standstill struct {
	gap time.Duration // 0: there was none
	end time.Duration // counted time when it ended
}

// before reports whether counted time at is at most within after a standstill.
func (s standstill) before(at, within time.Duration) bool {
	return s.gap > 0 && at-s.end <= within
}

// checkStandstill checks, before an event is processed, whether this process stood still until now. Each
// task manager's wait begins anew only once until it is heard, so that a job manager that
// stands still again and again still finds task managers that are gone.
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
			j.decideBy = c.clock.Counted() + c.config.Detection + c.config.Slack
		}
	}
}

// explainUnheard explains why a task manager that did not hear the job manager ended a worker. Either
// this process stood still, which is no fault of the task manager, or the two could not reach
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
