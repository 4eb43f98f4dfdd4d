package collective

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/internal/overdue"
	"github.com/superstep-ml/superstep/internal/transport/membership"
	"github.com/superstep-ml/superstep/shared"
)

// tcpGroups returns the TCPGroups of a group of several hosts, all within this process. Each
// host has its own connections, as if it were a process.
func tcpGroups(t *testing.T, size int, hosts [][]int, change ...func(*TCPConfig)) []*TCPGroup {
	t.Helper()
	if hosts == nil {
		hosts = make([][]int, size)
		for r := range hosts {
			hosts[r] = []int{r}
		}
	}
	store := membership.FileStore(t.TempDir())
	groups := make([]*TCPGroup, len(hosts))
	errs := make(chan error, len(hosts))
	for h := range hosts {
		go func() {
			cfg := TCPConfig{Store: store, Size: size, Hosts: hosts, Group: t.Name()}
			for _, f := range change {
				f(&cfg)
			}
			var err error
			groups[h], err = NewTCPGroup(context.Background(), hosts[h][0], cfg)
			errs <- err
		}()
	}
	for range hosts {
		require.NoError(t, <-errs)
	}
	return groups
}

// closeAll closes the groups concurrently, as separate processes would.
func closeAll(t *testing.T, groups []*TCPGroup) {
	t.Helper()
	defer overdue.Watch("all processes of a group to close it")()
	errs := make(chan error, len(groups))
	for _, g := range groups {
		go func() { errs <- g.Close() }()
	}
	for range groups {
		require.NoError(t, <-errs)
	}
}

// endsOf returns a function that returns the Comm of a rank from the groups.
func endsOf(groups []*TCPGroup) ends {
	return func(rank int) *Comm {
		for _, g := range groups {
			if g.local.indexOf(rank) >= 0 {
				return g.Rank(rank)
			}
		}
		panic(fmt.Sprint("no rank ", rank))
	}
}

// placements are ways to distribute 4 or 5 ranks over processes.
var placements = map[string][][]int{
	"one each":   {{0}, {1}, {2}, {3}},
	"two by two": {{0, 1}, {2, 3}},
	"mixed":      {{0, 3}, {1}, {2, 4}},
	"all in one": {{0, 1, 2}},
}

func sizeOf(hosts [][]int) int {
	n := 0
	for _, h := range hosts {
		n += len(h)
	}
	return n
}

// TestPrimitivesOverTCP requires that every primitive among several processes gives the results
// that primitiveCases defines.
func TestPrimitivesOverTCP(t *testing.T) {
	for name, hosts := range placements {
		t.Run(name, func(t *testing.T) {
			p := sizeOf(hosts)
			groups := tcpGroups(t, p, hosts)
			of := endsOf(groups)
			for _, n := range []int{0, 3, 2000} {
				for _, root := range []int{0, p - 1} {
					for _, x := range primitiveCases(p, root, n, n == 3) {
						testPrimitive(t, fmt.Sprintf("%s n=%d root=%d", x.name, n, root), p, of, &x)
					}
				}
			}
			closeAll(t, groups)
		})
	}
}

// TestTheScalarOperationsOverTCP requires that barriers and broadcasts of single values, which
// the superstep loop uses, work among processes.
func TestTheScalarOperationsOverTCP(t *testing.T) {
	for name, hosts := range placements {
		t.Run(name, func(t *testing.T) {
			p := sizeOf(hosts)
			groups := tcpGroups(t, p, hosts)
			of := endsOf(groups)
			errs := make(chan error, p)
			for r := range p {
				go func() {
					c := of(r)
					errs <- func() error {
						for k := range 50 {
							if err := c.Barrier(context.Background()); err != nil {
								return err
							}
							v, err := c.BroadcastInt64(t.Context(), k%p, int64(100*r+k))
							if err != nil || v != int64(100*(k%p)+k) {
								return fmt.Errorf("%d: %d %w", k, v, err)
							}
							if b, err := c.BroadcastBool(t.Context(), k%p, k%3 == 0 && r == k%p); err != nil || b != (k%3 == 0) {
								return fmt.Errorf("%d: %t %w", k, b, err)
							}
						}
						return nil
					}()
				}()
			}
			for range p {
				require.NoError(t, <-errs)
			}
			closeAll(t, groups)
		})
	}
}

// TestReductionsOverTCPGiveTheBitsOfSharedMemory requires that AllReduces over TCP give the
// same bits as AllReduces in shared memory, for every placement of ranks, for whole buffers and
// for forests. The data is hostile.
func TestReductionsOverTCPGiveTheBitsOfSharedMemory(t *testing.T) {
	for name, hosts := range placements {
		t.Run(name, func(t *testing.T) {
			p := sizeOf(hosts)
			groups := tcpGroups(t, p, hosts)
			of := endsOf(groups)
			local := NewLocalGroup(p)
			for _, n := range []int{0, 1, 5, 1000, 40000} {
				for _, forest := range []bool{false, true} {
					want := reduceEverywhere(t, p, local.Rank, n, forest)
					got := reduceEverywhere(t, p, of, n, forest)
					require.Equal(t, want, got, "n=%d forest=%t", n, forest)
				}
			}
			closeAll(t, groups)
		})
	}
}

// reduceEverywhere runs an AllReduce on all ranks, requires that all ranks get the same result,
// and returns the bits of the result.
func reduceEverywhere(t *testing.T, p int, of ends, n int, forest bool) []byte {
	t.Helper()
	const shards = 16
	outs := make([][]float64, p)
	errs := make(chan error, p)
	for r := range p {
		go func() {
			outs[r] = make([]float64, n)
			req := &Reduction[float64]{Name: "x", Op: Sum[float64](), Out: outs[r]}
			if forest {
				req.Shards = shards
				req.Forest = rankForest(p, r, shards, n)
			} else {
				copy(outs[r], hostile(uint64(r), n))
				req.Whole = outs[r]
			}
			errs <- AllReduce(of(r), req)
		}()
	}
	for range p {
		require.NoError(t, <-errs)
	}
	for _, out := range outs {
		require.Equal(t, bitsOf(outs[0]), bitsOf(out))
	}
	return bitsOf(outs[0])
}

func TestAGroupThatNobodyJoins(t *testing.T) {
	_, err := NewTCPGroup(t.Context(), 0, TCPConfig{Store: membership.FileStore(t.TempDir()), Size: 2, JoinTimeout: 100 * time.Millisecond})
	require.ErrorContains(t, err, "rank 0 cannot join the group")
	for want, cfg := range map[string]TCPConfig{
		"needs the addresses of its ranks": {},
		"hosts rank 1 of 2":                {Store: membership.FileStore(t.TempDir()), Size: 2, Hosts: [][]int{{0, 1}, {1}}},
		"no process hosts rank 1":          {Store: membership.FileStore(t.TempDir()), Size: 2, Hosts: [][]int{{0}}},
		"process 1 hosts no rank":          {Store: membership.FileStore(t.TempDir()), Size: 1, Hosts: [][]int{{0}, {}}},
		"either addresses, or a store":     {Store: membership.FileStore(t.TempDir()), Addresses: []string{"a:1"}},
	} {
		_, err := NewTCPGroup(t.Context(), 0, cfg)
		require.ErrorContains(t, err, want)
	}
}

// TestBytesOfProcessesCountOnce reduces a buffer between two processes of two ranks each. It
// requires that each process sends the buffer once, not once for each rank, and that small
// objects are sent in the heads of packets.
func TestBytesOfProcessesCountOnce(t *testing.T) {
	hosts := [][]int{{0, 1}, {2, 3}}
	groups := tcpGroups(t, 4, hosts)
	sent := make(chan Stats, 4)
	for _, err := range outcomesOf(groups, 4, func(c *Comm) error {
		x := make([]float64, 10)
		if err := AllReduce(c, &Reduction[float64]{Name: "x", Op: Sum[float64](), Whole: x, Out: x}); err != nil {
			return err
		}
		reduced := c.Stats()
		mine := c.Rank()
		_, _, err := AllReduceObject(c, &ObjectReduction[int]{
			Name: "o", Codec: shared.Msgpack[int](), Merge: func(a, b int) int { return a + b }, Value: &mine,
		})
		sent <- Stats{Bytes: reduced.Bytes, Results: c.Stats().Bytes - reduced.Bytes}
		return err
	}) {
		require.NoError(t, err)
	}
	var sum Stats
	for range 4 {
		sum.Add(<-sent)
	}
	require.Equal(t, int64(2*10*8), sum.Bytes)
	require.Equal(t, int64(2*headBytes), sum.Results)
	closeAll(t, groups)
}
