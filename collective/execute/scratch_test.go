//go:build linux && !race

package execute

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/program"
)

// TestLargeScratchIsNotTheHeaps requires that scratch memory for the contributions of other
// ranks is not allocated on the heap. It runs operations that need different amounts of scratch
// memory.
func TestLargeScratchIsNotTheHeaps(t *testing.T) {
	const p, largest = 3, 1 << 19
	progs := progsOf(t, program.AllReduce, "allgather-reduce", p)
	m := newTeam(t, inMemory(t, p), progs, Options{})
	defer m.close()
	var before, after runtime.MemStats
	for seq, n := range []int{1000, largest / 4, largest, 1000, largest} {
		ops := make([]*Operation, p)
		for r := range ops {
			ops[r] = sumOf(progs[r], uint64(seq+1), what, n)
		}
		runtime.ReadMemStats(&before)
		errs := everyone(p, func(r int) error {
			_, err := m.runners[r].Run(ops[r])
			return err
		})
		runtime.ReadMemStats(&after)
		require.Equal(t, make([]error, p), errs)
		require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(1<<20), "%d elements", n)
	}
	for _, r := range m.runners {
		require.GreaterOrEqual(t, r.arena.Len(), (p-1)*largest)
	}
}
