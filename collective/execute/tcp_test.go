package execute

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"github.com/superstep-ml/superstep/collective/algorithm"
	"github.com/superstep-ml/superstep/collective/program"
	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/internal/transport/membership"
	"github.com/superstep-ml/superstep/internal/transport/mesh"
)

// assembly is a membership of members in one process: each member waits until all have joined,
// and all members get the first failure.
type assembly struct {
	mu    sync.Mutex
	peers []membership.Peer
	left  int
	full  chan struct{}

	cause  error
	failed chan struct{}
}

func (a *assembly) join(process int) mesh.JoinFunc {
	return func(_ context.Context, address string, _ func() []membership.State) (mesh.Group, []membership.Peer, error) {
		a.mu.Lock()
		a.peers[process] = membership.Peer{Ranks: []int{process}, Address: address}
		if a.left--; a.left == 0 {
			close(a.full)
		}
		a.mu.Unlock()
		<-a.full
		return a, a.peers, nil
	}
}

func (a *assembly) Fail(err error) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.cause == nil {
		a.cause = err
		close(a.failed)
	}
	return a.cause
}

func (a *assembly) Failed() <-chan struct{} { return a.failed }

func (a *assembly) Err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.cause
}

// overTCP returns nodes for p ranks that are connected over TCP. Each rank has its own mesh.
func overTCP(t testing.TB, p int) []mesh.Node {
	a := &assembly{peers: make([]membership.Peer, p), left: p, full: make(chan struct{}), failed: make(chan struct{})}
	meshes, nodes := make([]*mesh.TCP, p), make([]mesh.Node, p)
	for _, err := range everyone(p, func(r int) (err error) {
		port, err := peerlink.Listen(peerlink.Config{})
		if err != nil {
			return err
		}
		t.Cleanup(func() { _ = port.Close() })
		meshes[r], err = mesh.JoinTCP(t.Context(), mesh.TCPConfig{Size: p, Ranks: []int{r}, Group: "test", Port: port, Join: a.join(r)})
		return err
	}) {
		require.NoError(t, err)
	}
	for r, m := range meshes {
		nodes[r] = m.Node(r)
		t.Cleanup(func() { _ = m.Close() })
	}
	return nodes
}

func TestAllAlgorithmsOverTCP(t *testing.T) {
	ps := []int{2, 3}
	if testsize.Soak {
		ps = []int{2, 3, 4, 5, 6, 7, 8, 9}
	}
	for c := range program.NumCollectives {
		for _, a := range algorithm.For(c) {
			for _, p := range ps {
				t.Run(fmt.Sprintf("%s/%s/%d", c, a.Name, p), func(t *testing.T) { testAlgorithm(t, a, p, overTCP) })
			}
		}
	}
}
