package collective_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/testsize"
)

// killLimit is the time after which a surviving process that has not noticed the loss of
// another process is considered to hang. On an idle machine all processes notice the loss
// within two seconds; the tests log the time.
const killLimit = 4 * time.Minute

// processKill is one of Gloo's test cases: one process of a group is killed some time after the
// group has begun to repeat one operation in a loop.
type processKill struct {
	hosts     [][]int
	victim    int
	delay     time.Duration
	operation string
	n         int
}

// processKills returns all cases: every combination of number of processes, victim, delay,
// operation and length, and additional cases of processes with several ranks.
func processKills() []processKill {
	var all []processKill
	add := func(hosts [][]int, victim int) {
		for _, delay := range []time.Duration{0, 5 * time.Millisecond, 50 * time.Millisecond} {
			all = append(all, processKill{hosts, victim, delay, "Barrier", 0})
			for _, n := range []int{4, 1000, 1_000_000} {
				all = append(all, processKill{hosts, victim, delay, "AllReduce", n}, processKill{hosts, victim, delay, "AllGather", n})
			}
		}
	}
	for p := 2; p <= 4; p++ {
		for victim := range p {
			add(blockLayout(p, p), victim)
		}
	}
	add(blockLayout(4, 2), 1)
	add(cyclicLayout(5, 3), 0)
	add(cyclicLayout(5, 3), 2)
	return all
}

// TestSurvivorsOfADeadProcessKnowWhoDied kills processes during operations. The errors on all
// surviving ranks must name a rank of the killed process.
func TestSurvivorsOfADeadProcessKnowWhoDied(t *testing.T) {
	t.Parallel()
	for k, d := range processKills() {
		if !sample(k, 11) {
			continue
		}
		t.Run(fmt.Sprintf("%d of %v in %s of %d after %v", d.victim, d.hosts, d.operation, d.n, d.delay), func(t *testing.T) {
			t.Parallel()
			children := spawn(t, part{Hosts: d.hosts, Store: t.TempDir(), Group: "kill", Attempt: 1, Operation: d.operation, N: d.n})
			after(d.delay)
			start := time.Now()
			children[d.victim].signal(t, syscall.SIGKILL)
			text := requireSurvivors(t, children, d.hosts, d.victim)
			known := time.Since(start)
			require.Less(t, known, killLimit, text)
			requireGone(t, children, d.victim)
			t.Logf("noticed after %v, all ended after %v: %s", known, time.Since(start), text)
		})
	}
}

// TestLoopsEndByThemselves requires that the same loops end without an error if no process is
// killed.
func TestLoopsEndByThemselves(t *testing.T) {
	t.Parallel()
	places := [][][]int{blockLayout(3, 3), cyclicLayout(5, 2)}
	if testsize.Soak {
		places = append(places, blockLayout(2, 2), blockLayout(4, 4))
	}
	for k, hosts := range places {
		for i, operation := range []string{"AllReduce", "AllGather", "Barrier"} {
			if !testsize.Soak && (i+k)%2 != 0 {
				continue
			}
			rounds := 20
			if testsize.Soak {
				rounds = 500
			}
			children := spawn(t, part{Hosts: hosts, Store: t.TempDir(), Group: "control", Operation: operation, N: 1000, Rounds: rounds})
			for h, c := range children {
				for _, e := range c.next(t).Ends {
					require.Equal(t, rankEnd{Peer: -1, Rounds: rounds}, e, "process %d of %v must end %s without an error", h, hosts, operation)
				}
			}
			requireGone(t, children, -1)
		}
	}
}
