package collective_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// TestNobodyLeavesABarrierBeforeTheLastHasCome requires that no rank leaves a barrier before
// all ranks have entered it. Each rank is delayed in turn: it waits until all other ranks are
// about to enter the barrier, sets a flag, and then enters. Every rank must see the flag after
// it has left the barrier.
func TestNobodyLeavesABarrierBeforeTheLastHasCome(t *testing.T) {
	t.Parallel()
	rounds := 3
	if testsize.Soak {
		rounds = 100
	}
	worlds := []*testGroup{overTCP(t, 2, nil), overTCP(t, 4, nil), overTCP(t, 5, cyclicLayout(5, 2)), overTCP(t, 7, nil)}
	for p := 1; p <= 15; p++ {
		worlds = append(worlds, inMemory(p))
	}
	for _, w := range worlds {
		for _, name := range named(program.Barrier, algorithm.Params{P: w.p}) {
			delayInTurn(t, w, name, rounds)
		}
		w.close(t)
	}
}

// delayInTurn executes the test for the algorithm with the given name.
func delayInTurn(t *testing.T, w *testGroup, name string, rounds int) {
	t.Helper()
	var entering, said atomic.Int64
	w.run(t, func(c *collective.Comm) error {
		for k := range rounds * w.p {
			late := k % w.p
			if c.Rank() == late {
				for entering.Load() < int64((k+1)*(w.p-1)) {
					runtime.Gosched()
				}
				said.Store(int64(k + 1))
			} else {
				entering.Add(1)
			}
			if err := collective.Barrier(c, asked(name)...); err != nil {
				return err
			}
			if got := said.Load(); got < int64(k+1) {
				return fmt.Errorf("barrier %d by %q: rank %d left before rank %d had entered", k, name, c.Rank(), late)
			}
		}
		return nil
	})
}

// TestBarriersOrderWhatIsWritten requires that a rank can read, after a barrier, a value that
// another rank wrote before the barrier, without further synchronisation.
func TestBarriersOrderWhatIsWritten(t *testing.T) {
	t.Parallel()
	for _, p := range []int{2, 3, 8, 15} {
		w := inMemory(p)
		for _, name := range named(program.Barrier, algorithm.Params{P: p}) {
			written := make([]int, p)
			w.run(t, func(c *collective.Comm) error {
				r := c.Rank()
				for k := range 50 {
					written[r] = k
					if err := collective.Barrier(c, asked(name)...); err != nil {
						return err
					}
					if got := written[(r+1)%p]; got != k {
						return fmt.Errorf("round %d: the value of rank %d was read as %d", k, (r+1)%p, got)
					}
					if err := collective.Barrier(c, asked(name)...); err != nil {
						return err
					}
				}
				return nil
			})
		}
		w.close(t)
	}
}
