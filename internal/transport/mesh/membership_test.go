package mesh

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// joined starts one mesh for each element of hosting, with real memberships.
func joined(t *testing.T, hosting [][]int, size int) ([]*TCP, []*membership.Membership) {
	store := membership.FileStore(t.TempDir())
	meshes, homes := make([]*TCP, len(hosting)), make([]*membership.Membership, len(hosting))
	var g errgroup.Group
	for i, ranks := range hosting {
		port := newPort(t, nil)
		g.Go(func() (err error) {
			meshes[i], err = JoinTCP(context.Background(), TCPConfig{Size: size, Ranks: ranks, Group: t.Name(), Attempt: 1, Port: port,
				Join: func(ctx context.Context, address string, states func() []membership.State) (Group, []membership.Peer, error) {
					m, err := membership.Join(ctx, membership.Config{Process: i, Processes: len(hosting), Ranks: ranks, Size: size,
						Store: store, Port: port, DataAddress: address, Group: t.Name(), Attempt: 1, State: states})
					if err != nil {
						return nil, nil, err
					}
					homes[i] = m
					return m, m.Table(), nil
				}})
			return err
		})
	}
	require.NoError(t, g.Wait())
	t.Cleanup(func() {
		for i := range meshes {
			require.NoError(t, meshes[i].Close())
			homes[i].Close()
		}
	})
	return meshes, homes
}

func TestMembershipTellsEverybody(t *testing.T) {
	meshes, _ := joined(t, [][]int{{0}, {1, 2}, {3}}, 4)
	nodes := []Node{meshes[0].Node(0), meshes[1].Node(1), meshes[1].Node(2), meshes[2].Node(3)}
	traffic(t, nodes, 1, 5, 1<<16, 1)

	results := make(chan error, 3)
	for r, n := range nodes[:3] {
		c := open(t, n, (r+1)%3, 0)
		go func() { results <- c.Next(new(Header)) }()
	}
	cause := nodes[3].Fail(errors.New("rank 3 ran out of memory"))
	require.ErrorContains(t, cause, "rank 3 ran out of memory")
	for range 3 {
		require.EqualError(t, <-results, cause.Error())
	}
}

// TestMembershipLearnsOfLostPeer requires that the group ends in all processes when the
// connections of a process break.
func TestMembershipLearnsOfLostPeer(t *testing.T) {
	meshes, _ := joined(t, oneEach(3), 3)
	nodes := []Node{meshes[0].Node(0), meshes[1].Node(1), meshes[2].Node(2)}
	traffic(t, nodes, 1, 5, 1<<16, 2)
	waiting, bystander := open(t, nodes[0], 2, 0), open(t, nodes[1], 0, 0)
	nodes[0].Begin(7, &Operation{Hash: 1, Text: "AllReduce (8 float64, sum)"})
	results := make(chan error, 2)
	go func() { results <- bystander.Next(new(Header)) }()
	go func() { results <- waiting.Next(new(Header)) }()
	require.NoError(t, meshes[2].Close())
	for range 2 {
		err := <-results
		var lost *membership.PeerError
		require.ErrorAs(t, err, &lost)
		require.Equal(t, 2, lost.Rank)
		require.Equal(t, 0, lost.Reporter)
		require.Contains(t, lost.During, "AllReduce (8 float64, sum)")
	}
}
