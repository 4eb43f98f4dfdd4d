//go:build linux && !race

package kills

import (
	"fmt"
	"sync"
	"testing"

	"github.com/superstep-ml/superstep/internal/testsize"
)

// TestKills runs jobs on clusters that suffer faults, which are drawn from a seed. Each job must
// finish with the output of an undisturbed run, byte for byte, which becomes visible once. Only
// where the faults leave it no way to finish, it must fail with an error that names them. No
// process and no file may be left behind.
func TestKills(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var sum result
	refused := map[string]int{}
	t.Run("runs", func(t *testing.T) {
		for _, seed := range seeds() {
			t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
				t.Parallel()
				got := runPlan(t, drawPlan(uint64(seed)))
				mu.Lock()
				defer mu.Unlock()
				sum.struck, sum.missed, sum.lost, sum.receipts = sum.struck+got.struck, sum.missed+got.missed, sum.lost+got.lost, sum.receipts+got.receipts
				if got.refused != "" {
					refused[got.refused]++
				}
			})
		}
	})
	t.Logf("%d strikes, %d more whose moment did not come, %d lost attempts, %d receipts left, jobs that failed as they must: %v",
		sum.struck, sum.missed, sum.lost, sum.receipts, refused)
}

// seeds returns the seeds of the runs. Without the tag soak these are a few in which each job and
// most kinds of processes are hit, and which do not take long.
func seeds() (all []int) {
	if !testsize.Soak {
		return []int{28, 77, 150}
	}
	for seed := range 200 {
		all = append(all, seed)
	}
	return all
}
