package membership

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/superstep-ml/superstep/internal/peerlink"
)

// newPort returns a port that is closed when the test ends.
func newPort(t *testing.T, change func(c *peerlink.Config)) *peerlink.Port {
	t.Helper()
	var cfg peerlink.Config
	if change != nil {
		change(&cfg)
	}
	p, err := peerlink.Listen(cfg)
	require.NoError(t, err)
	return p
}

// joinAt calls Join with a new port, which it closes if Join fails.
func joinAt(t *testing.T, ctx context.Context, cfg Config, change func(c *peerlink.Config)) (*Membership, error) {
	t.Helper()
	cfg.Port = newPort(t, change)
	m, err := Join(ctx, cfg)
	if err != nil {
		require.NoError(t, cfg.Port.Close())
	}
	return m, err
}

// end closes a membership and its port.
func end(m *Membership) {
	m.Close()
	m.cfg.Port.Close()
}

// joinAll starts a group of n processes, each with one rank, over real sockets.
func joinAll(t *testing.T, n int, change func(c *Config)) []*Membership {
	t.Helper()
	return joinAllAt(t, n, nil, change)
}

// joinAllAt does the same as joinAll, but calls the function ports to change the configuration
// of each process's port.
func joinAllAt(t *testing.T, n int, ports func(process int, c *peerlink.Config), change func(c *Config)) []*Membership {
	t.Helper()
	store := FileStore(t.TempDir())
	group := make([]*Membership, n)
	errs := make([]error, n)
	var run sync.WaitGroup
	for p := range n {
		run.Go(func() {
			cfg := Config{
				Process: p, Processes: n, Ranks: []int{p}, Size: n, Store: store,
				Group: t.Name(), Attempt: 1, DataAddress: fmt.Sprintf("127.0.0.1:%d", 1000+p),
			}
			if change != nil {
				change(&cfg)
			}
			group[p], errs[p] = joinAt(t, t.Context(), cfg, func(c *peerlink.Config) {
				if ports != nil {
					ports(p, c)
				}
			})
		})
	}
	run.Wait()
	require.NoError(t, errors.Join(errs...))
	return group
}

// closeAll closes the memberships and their ports concurrently, as separate processes would.
func closeAll(group []*Membership) {
	var run sync.WaitGroup
	for _, m := range group {
		run.Go(func() { end(m) })
	}
	run.Wait()
}

// descriptors returns the number of open files of this process.
func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

func TestTableIsTheSameEverywhere(t *testing.T) {
	defer goleak.VerifyNone(t)
	group := joinAll(t, 4, nil)
	defer closeAll(group)
	for _, m := range group {
		table := m.Table()
		require.Len(t, table, 4)
		for p, peer := range table {
			require.Equal(t, Peer{Ranks: []int{p}, Address: fmt.Sprintf("127.0.0.1:%d", 1000+p)}, peer)
			require.Equal(t, p, m.HostOf(p))
		}
		require.Equal(t, -1, m.HostOf(4))
		require.Equal(t, -1, m.HostOf(-1))
		require.NoError(t, m.Err())
	}
}

func TestFirstFailureReachesAll(t *testing.T) {
	defer goleak.VerifyNone(t)
	for reporter := range 3 {
		group := joinAll(t, 3, nil)
		first := errors.New("the disk is full")
		require.Same(t, first, group[reporter].Fail(first), "Fail must return the reporter's own error, not a copy")
		for p, m := range group {
			<-m.Failed()
			require.EqualError(t, m.Err(), first.Error())
			require.EqualError(t, m.Fail(fmt.Errorf("process %d fails because of it", p)), first.Error())
		}
		closeAll(group)
	}
}

func TestAllLeaveTogether(t *testing.T) {
	defer goleak.VerifyNone(t)
	before := descriptors(t)
	group := joinAll(t, 3, nil)
	var run sync.WaitGroup
	for _, m := range group {
		run.Go(func() {
			require.NoError(t, m.Leave(t.Context()))
			end(m)
		})
	}
	run.Wait()
	for _, m := range group {
		require.NoError(t, m.Err())
	}
	require.Equal(t, before, descriptors(t))
}

func TestCloseWithoutLeaveIsADeath(t *testing.T) {
	defer goleak.VerifyNone(t)
	for dead := range 3 {
		group := joinAll(t, 3, nil)
		group[dead].Close()
		for p, m := range group {
			if p == dead {
				continue
			}
			<-m.Failed()
			var peer *PeerError
			require.ErrorAs(t, m.Err(), &peer)
			require.Equal(t, dead, peer.Rank)
			require.Equal(t, fmt.Sprintf("127.0.0.1:%d", 1000+dead), peer.Address)
			require.Equal(t, "closed its connection", peer.Reason)
		}
		closeAll(group)
	}
}

func TestJoinSaysWhoIsMissing(t *testing.T) {
	defer goleak.VerifyNone(t)
	store := FileStore(t.TempDir())
	var run sync.WaitGroup
	for p := range 2 {
		run.Go(func() {
			_, err := joinAt(t, t.Context(), Config{
				Process: p, Processes: 4, Ranks: []int{p}, Size: 4, Store: store, JoinTimeout: 300 * time.Millisecond,
			}, nil)
			require.ErrorIs(t, err, ErrTimeout)
			require.ErrorContains(t, err, "waiting for processes 2 and 3 of 4: have they started?")
		})
	}
	run.Wait()
	_, err := joinAt(t, t.Context(), Config{
		Process: 1, Processes: 2, Ranks: []int{1}, Size: 2, Coordinator: "127.0.0.1:1", JoinTimeout: 100 * time.Millisecond,
	}, nil)
	require.ErrorIs(t, err, ErrTimeout)
	require.ErrorContains(t, err, "has process 0 started?")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = joinAt(t, ctx, Config{Process: 0, Processes: 2, Ranks: []int{0}, Size: 2, Store: store}, nil)
	require.ErrorIs(t, err, context.Canceled)
}
