package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestLineIfTheClockIsSetBack requires that jobs of one priority are in the order in which they came,
// and that a higher priority comes first, if the clock of the machine is set back by an hour between them.
func TestLineIfTheClockIsSetBack(t *testing.T) {
	c := New(Config{})
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	submit := func(id wire.JobID, priority int, at time.Time) {
		spec := wire.JobSpec{Name: "job", Parallelism: 1, Shards: 1, Priority: priority}
		c.Step(0, Submitted{ID: id, Spec: spec, Slots: 1, At: at})
	}
	submit("a", 0, at)
	submit("b", 1, at.Add(time.Second))
	submit("c", 0, at.Add(-time.Hour))
	submit("d", 2, at.Add(-time.Hour))
	order := func() (ids []wire.JobID) {
		for _, j := range c.line() {
			ids = append(ids, j.info.ID)
		}
		return ids
	}
	require.Equal(t, []wire.JobID{"d", "b", "a", "c"}, order())
	submit("e", 2, at.Add(-time.Hour+time.Second))
	require.Equal(t, []wire.JobID{"d", "e", "b", "a", "c"}, order())
}

// TestLineIsFair requires that exactly the jobs of a higher priority that are submitted within the time
// that this is worth come before a job, for all pairs of priorities.
func TestLineIsFair(t *testing.T) {
	const ageing = time.Minute
	for early := wire.MinPriority; early <= wire.MaxPriority; early++ {
		for late := wire.MinPriority; late <= wire.MaxPriority; late++ {
			for _, after := range []time.Duration{0, time.Second, ageing - 1, ageing, 3*ageing + 1, 10*ageing - 1, 10 * ageing} {
				c := New(Config{Ageing: ageing})
				at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
				for i, priority := range []int{early, late} {
					spec := wire.JobSpec{Name: "job", Parallelism: 1, Shards: 1, Priority: priority}
					c.Step(0, Submitted{ID: wire.JobID(rune('a' + i)), Spec: spec, Slots: 1, At: at.Add(time.Duration(i) * after)})
				}
				first := c.line()[0].info.ID
				passes := late > early && after < time.Duration(late-early)*ageing
				require.Equal(t, map[bool]wire.JobID{false: "a", true: "b"}[passes], first, "priority %d, and %s later %d", early, after, late)
			}
		}
	}
}
