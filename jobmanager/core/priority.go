package core

import (
	"cmp"
	"slices"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Jobs wait for slots in a line. A job of a higher priority comes first, and among jobs of one priority
// the job that was submitted first. No job starves, as waiting counts too: a level of priority is worth
// as much as Config.Ageing of waiting. So a job comes before a later job of a priority that is higher
// by n if it was submitted more than n times Config.Ageing earlier. This is the same as an order by the
// time of submission, less priority times Config.Ageing. That order does not change while jobs wait, and
// only jobs that are submitted within (wire.MaxPriority - wire.MinPriority) times Config.Ageing after a
// job can ever pass it.
//
// Jobs that go on where they have stopped come first, whatever their priority: those that only change
// the number of their slots, and those whose commit another worker finishes. So a job of a high priority
// stops no other. It gets slots that are free, and those that elastic jobs have above their least. A job
// that has lost an attempt has the place of its submission.

// defaultAgeing is the default of Config.Ageing.
const defaultAgeing = 10 * time.Minute

// enter gives a job its place in the line. Jobs must enter in the order of their submission. If the
// clock of the machine was set back, a job counts as submitted with the job before it.
func (c *Core) enter(j *job) {
	if j.info.Submitted.After(c.entered) {
		c.entered = j.info.Submitted
	}
	j.turn = c.entered.Add(-time.Duration(j.info.Priority) * c.config.Ageing)
}

// line returns the jobs that have not ended, in the order in which they get the least that they need.
func (c *Core) line() []*job {
	line := slices.Clone(c.live)
	slices.SortStableFunc(line, func(a, b *job) int {
		switch first, other := a.goesFirst(), b.goesFirst(); {
		case first && !other:
			return -1
		case other && !first:
			return 1
		}
		return a.turn.Compare(b.turn)
	})
	return line
}

// goesFirst reports whether the job goes on where it has stopped.
func (j *job) goesFirst() bool {
	return j.moving || j.resume.due || j.info.State == wire.JobRunning && j.move != nil && j.move.to > 0
}

// byPriority returns grants sorted by the priority of their jobs. Grants of one priority are in the order
// in which their jobs were submitted.
func (c *Core) byPriority(grants []*grant) []*grant {
	return slices.SortedStableFunc(slices.Values(grants), func(a, b *grant) int {
		return cmp.Or(cmp.Compare(b.job.info.Priority, a.job.info.Priority), cmp.Compare(slices.Index(c.live, a.job), slices.Index(c.live, b.job)))
	})
}
