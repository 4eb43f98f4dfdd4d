package collective_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/collective"
)

// TestBytesThatCollectivesMove requires that Stats counts the expected bytes on each of 4 ranks
// in collectives with blocks of 5 int64. The collectives run in shared memory and, if an
// algorithm sends the same numbers of bytes, also by that algorithm.
func TestBytesThatCollectivesMove(t *testing.T) {
	const p, block = 4, 5
	const size, all = 8 * block, 8 * block * p
	same := func(n int64) [p]int64 { return [p]int64{n, n, n, n} }
	for name, c := range map[string]struct {
		run  func(c *collective.Comm, own, whole, out []int64, opts ...collective.Option) error
		want [p]int64
		by   string
	}{
		"broadcast": {func(c *collective.Comm, _, whole, _ []int64, opts ...collective.Option) error {
			return collective.Broadcast(c, 2, whole, opts...)
		}, [p]int64{0, 0, (p - 1) * all, 0}, ""},
		"gather": {func(c *collective.Comm, own, _, out []int64, opts ...collective.Option) error {
			return collective.Gather(c, 1, own, out, opts...)
		}, [p]int64{size, 0, size, size}, "linear"},
		"allgather": {func(c *collective.Comm, own, _, out []int64, opts ...collective.Option) error {
			return collective.AllGather(c, own, out, opts...)
		}, same((p - 1) * size), "direct"},
		"scatter": {func(c *collective.Comm, own, whole, _ []int64, opts ...collective.Option) error {
			return collective.Scatter(c, 3, whole, own, opts...)
		}, [p]int64{0, 0, 0, all - size}, "linear"},
		"alltoall": {func(c *collective.Comm, _, whole, out []int64, opts ...collective.Option) error {
			return collective.AllToAll(c, whole, out, opts...)
		}, same(all - size), "direct"},
		"reducescatter": {func(c *collective.Comm, own, whole, _ []int64, opts ...collective.Option) error {
			return collective.ReduceScatter(c, collective.Sum[int64](), whole, own, opts...)
		}, same(all - size), "direct"},
		"reduce": {func(c *collective.Comm, _, whole, out []int64, opts ...collective.Option) error {
			return collective.Reduce(c, 0, collective.Sum[int64](), whole, out, opts...)
		}, [p]int64{all - size, all, all, all}, ""},
		"scan": {func(c *collective.Comm, _, whole, out []int64, opts ...collective.Option) error {
			return collective.Scan(c, collective.Sum[int64](), whole, out, opts...)
		}, same(all - size + (p-1)*size), ""},
	} {
		for _, by := range []string{"", c.by} {
			var opts []collective.Option
			if by != "" {
				opts = append(opts, collective.WithAlgorithm(by))
			}
			g := collective.NewLocalGroup(p)
			var moved [p]int64
			var errs [p]error
			var wg sync.WaitGroup
			for r := range p {
				wg.Go(func() {
					comm := g.Rank(r)
					errs[r] = c.run(comm, make([]int64, block), make([]int64, p*block), make([]int64, p*block), opts...)
					moved[r] = comm.Stats().Bytes
					if by != "" && comm.Describe().Algorithm != by {
						t.Errorf("Describe must name the algorithm of %s by %s, but returns %v", name, by, comm.Describe())
					}
					comm.Close(nil)
				})
			}
			wg.Wait()
			require.Equal(t, [p]error{}, errs, "%s by %q", name, by)
			require.Equal(t, c.want, moved, "%s by %q", name, by)
		}
	}
}
