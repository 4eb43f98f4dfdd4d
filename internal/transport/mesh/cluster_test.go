package mesh

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/superstep-ml/superstep/internal/overdue"
	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// assembly replaces a membership in tests, in which all meshes are in one process. Its
// JoinFuncs wait until all meshes have joined, and return the same Group to all meshes.
type assembly struct {
	group *localGroup
	mu    sync.Mutex
	peers []membership.Peer
	left  int
	full  chan struct{}
}

func newAssembly(hosting [][]int) *assembly {
	a := &assembly{group: &localGroup{failed: make(chan struct{})}, left: len(hosting), full: make(chan struct{})}
	for _, ranks := range hosting {
		a.peers = append(a.peers, membership.Peer{Ranks: ranks})
	}
	return a
}

func (a *assembly) join(process int) JoinFunc {
	return func(ctx context.Context, address string, _ func() []membership.State) (Group, []membership.Peer, error) {
		a.mu.Lock()
		a.peers[process].Address = address
		if a.left--; a.left == 0 {
			close(a.full)
		}
		a.mu.Unlock()
		<-a.full
		return a.group, a.peers, nil
	}
}

// oneEach returns the ranks of p processes with one rank each.
func oneEach(p int) [][]int {
	hosting := make([][]int, p)
	for r := range hosting {
		hosting[r] = []int{r}
	}
	return hosting
}

// cluster starts one mesh for each element of hosting, which has the ranks of one process. It
// closes the meshes when the test ends. The returned nodes are in rank order.
func cluster(t testing.TB, hosting [][]int, change func(*TCPConfig)) ([]*TCP, []Node) {
	return clusterAt(t, hosting, nil, change)
}

// newPort returns a port that is closed when the test ends.
func newPort(t testing.TB, change func(*peerlink.Config)) *peerlink.Port {
	t.Helper()
	var cfg peerlink.Config
	if change != nil {
		change(&cfg)
	}
	p, err := peerlink.Listen(cfg)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// smallSockets sets small socket buffers.
func smallSockets(c *peerlink.Config) { c.Net = peerlink.TCP{SocketBuffer: 4096} }

// clusterAt does the same as cluster, but calls the function ports to change the configuration
// of each port.
func clusterAt(t testing.TB, hosting [][]int, ports func(*peerlink.Config), change func(*TCPConfig)) ([]*TCP, []Node) {
	size := 0
	for _, ranks := range hosting {
		size += len(ranks)
	}
	a := newAssembly(hosting)
	meshes, nodes := make([]*TCP, len(hosting)), make([]Node, size)
	var g errgroup.Group
	for i, ranks := range hosting {
		cfg := TCPConfig{Size: size, Ranks: ranks, Group: "test", Attempt: 4, Port: newPort(t, ports), Join: a.join(i)}
		if change != nil {
			change(&cfg)
		}
		g.Go(func() (err error) {
			meshes[i], err = JoinTCP(context.Background(), cfg)
			return err
		})
	}
	require.NoError(t, g.Wait())
	t.Cleanup(func() {
		for _, m := range meshes {
			stop := overdue.Watch("a mesh to close")
			require.NoError(t, m.Close())
			stop()
		}
	})
	for i, ranks := range hosting {
		for _, r := range ranks {
			nodes[r] = meshes[i].Node(r)
		}
	}
	return meshes, nodes
}

// couple opens a channel between the ranks a and b on both ranks, and returns the two ends.
func couple(t testing.TB, a, b Node, channel int) (ca, cb Conn) {
	defer overdue.Watch("two ranks to be connected")()
	var g errgroup.Group
	g.Go(func() error {
		conns, err := b.Open(context.Background(), []Route{{a.Rank(), channel}})
		if err == nil {
			cb = conns[0]
		}
		return err
	})
	conns, err := a.Open(context.Background(), []Route{{b.Rank(), channel}})
	require.NoError(t, err)
	require.NoError(t, g.Wait())
	return conns[0], cb
}
