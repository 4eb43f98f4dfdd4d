//go:build linux && !race

package kills

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/testsize"
)

// zombie is a part of an attempt that the job manager counts as lost, and that goes on later.
type zombie struct {
	kind        kind
	parallelism int
	saves       bool   // the job has checkpoints
	wakes       strike // when it goes on
	attempt     int    // the attempt in which that is
}

func (z zombie) String() string {
	return fmt.Sprintf("%s, parallelism %d, checkpoints %v, wakes in attempt %d %s", z.kind, z.parallelism, z.saves, z.attempt, z.wakes.moment)
}

// zombies returns all zombies or, without the tag soak, two of them.
func zombies() (all []zombie) {
	for _, k := range []kind{stopMachine, stopNode, muteNode} {
		for _, parallelism := range []int{1, 2} {
			for _, saves := range []bool{false, true} {
				for _, wakes := range []strike{{moment: deploying}, {moment: iterating, step: 5}, {moment: committing}, {moment: finished}} {
					all = append(all, zombie{k, parallelism, saves, wakes, 2})
				}
			}
		}
	}
	return testsize.Of([]zombie{all[0], all[len(all)-2]}, all)
}

// TestZombies stops the machine of worker 0, or only its task manager, or makes it unreachable,
// until the next attempt, which runs elsewhere, deploys, iterates, commits or has finished. What
// wakes up then must change nothing, and must end. It wakes up after two further attempts at the
// latest.
func TestZombies(t *testing.T) {
	t.Parallel()
	for _, z := range zombies() {
		t.Run(z.String(), func(t *testing.T) {
			t.Parallel()
			z.run(t)
		})
	}
}

func (z zombie) run(t *testing.T) {
	s := steady
	s.taskManagers = 3
	c := startCluster(t, s)
	args := c.restarting(z.parallelism)
	if !z.saves {
		args = args[:4]
	}
	r := c.begin(paused(testsize.Of(300, 700)), args...)
	r.comesTo(strike{moment: iterating, step: 20})
	n := c.named(r.observer.job().Workers[0].TaskManager)
	for i := range c.nodes {
		if c.nodes[i] == n {
			c.story.tell("%s of %s", z.kind, n.name)
			heal := c.inject(fault{kind: z.kind, node: i})
			require.Eventually(t, func() bool {
				now := r.observer.job()
				return now.ended() || now.Attempt >= z.attempt && r.reached(z.wakes, &now, 0) || now.Attempt >= z.attempt+2
			}, waitLimit, time.Millisecond, "attempt %d must come to %q: %+v", z.attempt, z.wakes.moment, r.observer.job())
			c.story.tell("it wakes up")
			heal()
		}
	}
	r.struckLate = true
	r.succeeds()
	require.Contains(t, r.observer.job().Lost[0].Cause, n.name)
}
