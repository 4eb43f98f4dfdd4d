package collective_test

import (
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/testsize"
)

// TestAStoppedProcessIsLeftBehind stops (SIGSTOP) a process for longer than the timeout. The
// operations of the other processes must fail. These processes must then be able to continue in
// the next attempt with the same store, without the stopped process. When the stopped process
// continues, its error must say that it is excluded. It must not be able to join again, and
// must not disturb the other processes.
func TestAStoppedProcessIsLeftBehind(t *testing.T) {
	t.Parallel()
	type testCase struct {
		p, victim int
		operation string
		n         int
		detection time.Duration // 0 means the default
	}
	const short = 2000 * time.Millisecond
	cases := []testCase{{3, 2, "AllReduce", 1000, short}, {2, 0, "Barrier", 0, short}}
	if testsize.Soak {
		cases = nil
		for p := 2; p <= 4; p++ {
			for victim := range p {
				cases = append(cases, testCase{p, victim, "AllReduce", 1000, short}, testCase{p, victim, "AllGather", 1_000_000, 0},
					testCase{p, victim, "Barrier", 0, 0})
			}
		}
	}
	for _, x := range cases {
		t.Run(fmt.Sprintf("%d of %d in %s of %d, detection %v", x.victim, x.p, x.operation, x.n, x.detection), func(t *testing.T) {
			t.Parallel()
			all := part{Hosts: blockLayout(x.p, x.p), Store: t.TempDir(), Group: "stop", Attempt: 1, Detection: x.detection,
				Operation: x.operation, N: x.n, Rejoin: true}
			children := spawn(t, all)
			after(20 * time.Millisecond)
			zombie := children[x.victim]
			start := time.Now()
			zombie.signal(t, syscall.SIGSTOP)
			text := requireSurvivors(t, children, all.Hosts, x.victim)
			known := time.Since(start)
			require.Less(t, known, killLimit, text)
			requireGone(t, children, x.victim)
			t.Logf("noticed after %v: %s", known, text)

			// The next attempt runs while the stopped process continues.
			next := all
			next.Attempt, next.Rounds, next.Detection = 2, 300, 0
			next.Operation, next.N = "AllReduce", 100
			successors := spawn(t, next)
			zombie.signal(t, syscall.SIGCONT)
			for _, c := range successors {
				for _, e := range c.next(t).Ends {
					require.Equal(t, rankEnd{Peer: -1, Rounds: next.Rounds}, e)
				}
			}
			for _, e := range zombie.next(t).Ends {
				require.NotEmpty(t, e.Text)
				require.False(t, e.WasWrong)
			}
			last := zombie.next(t)
			require.True(t, last.Closed)
			require.Empty(t, last.Leaked)
			require.Zero(t, last.Fds)
			require.NotEqual(t, "welcome", last.Rejoin)
			t.Logf("error of the stopped process: %s", last.Rejoin)
		})
	}
}
