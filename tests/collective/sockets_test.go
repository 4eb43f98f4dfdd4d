package collective_test

import (
	"fmt"
	"testing"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// TestSmallSocketBuffersDoNotDeadlock is XGBoost's test for deadlocks. Socket buffers have 4
// KiB, much less than the 64 KiB or 1 MiB that each rank sends. Ranks that send all their data
// before they receive would wait for ever. The test requires that every collective and
// algorithm ends.
func TestSmallSocketBuffersDoNotDeadlock(t *testing.T) {
	t.Parallel()
	const kib = 1 << 10 / 8 // number of float64 elements
	small := func(cfg *collective.TCPConfig) { cfg.SocketBuffer = 4096 }
	for _, p := range []int{2, 3, 4} {
		for _, size := range []int{64 * kib, 1024 * kib} {
			w := overTCP(t, p, nil, small)
			w.run(t, func(c *collective.Comm) error {
				k := 0
				for coll := range program.NumCollectives {
					for _, name := range named(coll, algorithm.Params{P: c.Size(), Root: 0}) {
						k++
						if (size > 64*kib || p == 3 || testsize.Few) && !sample(k+p, testsize.Raced(5, 10)) {
							continue
						}
						if err := sendMuch(c, coll, name, size); err != nil {
							return fmt.Errorf("%v by %q of %d elements: %w", coll, name, size, err)
						}
					}
				}
				return nil
			})
			w.close(t)
		}
	}
}

// sendMuch calls a collective with the named algorithm and n elements from every rank, and
// checks the result.
func sendMuch(c *collective.Comm, coll program.Collective, name string, n int) error {
	switch coll {
	case program.AllReduce:
		return allReduceOf[float64](c, &allReduceCase{algorithm: name, n: n})
	case program.Scatter, program.AllToAll, program.ReduceScatter:
		n /= c.Size()
	}
	return do[float64](c, &call{coll: coll, n: n, by: name})
}
