//go:build linux && !race

package kills

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/testsize"
)

// TestElasticUnderFaults runs an elastic job whose range a client changes again and again, while parts
// of the cluster are killed, stopped, cut off, drained and cordoned. The job must finish with the
// outcome of an undisturbed run.
func TestElasticUnderFaults(t *testing.T) {
	t.Parallel()
	for seed := range uint64(testsize.Of(1, 40)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { elasticUnderFaults(t, seed) })
	}
}

func elasticUnderFaults(t *testing.T, seed uint64) {
	draws := rand.New(rand.NewPCG(seed, 39))
	s := steady
	s.taskManagers, s.slots, s.flags = 3, 2, []string{"--settle", "200ms", "--scale-every", "200ms"}
	c := startCluster(t, s)
	args := c.restarting(6)
	args[1] = "1:6"
	r := c.begin(paused(testsize.Of(500, 800)), args...)
	r.struckLate = true // faults may strike at any time
	kills := 0
	for range testsize.Of(3, 12) {
		if !r.goesOn() {
			break
		}
		if draws.IntN(2) == 0 {
			c.scale(r.observer.job().ID, draws)
		}
		if draws.IntN(3) == 0 {
			name, verb := c.nodes[draws.IntN(len(c.nodes))].name, one(draws, "cordon", "drain")
			c.story.tell("%s %s", verb, name)
			c.client(verb, name)
			if draws.IntN(2) == 0 {
				r.goesOn()
			}
			c.client("uncordon", name)
		}
		f := fault{
			kind: one(draws, killWorker, killNode, killMachine, stopNode, stopMachine, stopWorker, cutNode, muteNode, killManager, stopManager),
			node: draws.IntN(len(c.nodes)), hold: time.Duration(draws.IntN(2500)) * time.Millisecond,
		}
		if f.kind == killWorker || f.kind == killMachine {
			if kills++; kills > 2 { // the third crash of the same kind may fail the job
				f.kind = cutNode
			}
		}
		c.strike(strike{faults: []fault{f}})
		c.requireRegistered()
	}
	r.succeeds()
}

// scale gives a job a range that is drawn. This may be refused, as the job may have ended.
func (c *cluster) scale(id string, draws *rand.Rand) {
	least := 1 + draws.IntN(3)
	to := fmt.Sprintf("%d:%d", least, least+draws.IntN(7-least))
	got := c.client("scale", id, to)
	c.story.tell("scale to %s: %s%s", to, got.Stdout, got.Stderr)
}

// goesOn waits until the job has done another superstep, also of another attempt. It returns false if
// the job has ended.
func (r *run) goesOn() bool {
	r.c.t.Helper()
	before := r.observer.job()
	require.Eventually(r.c.t, func() bool {
		now := r.observer.job()
		return now.ended() || now.superstep() > 0 && (now.Attempt > before.Attempt || now.superstep() > before.superstep())
	}, waitLimit, time.Millisecond, "the job must go on: %+v", before)
	now := r.observer.job()
	return !now.ended()
}
