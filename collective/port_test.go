package collective

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/peerlink"
)

// testPorts returns the ports of n processes. The ports are closed when the test ends.
func testPorts(t *testing.T, n int) []*peerlink.Port {
	ports := make([]*peerlink.Port, n)
	for i := range ports {
		p, err := peerlink.Listen(peerlink.Config{Job: t.Name(), Secret: []byte("known to all of them")})
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, p.Close()) })
		ports[i] = p
	}
	return ports
}

// atPorts returns the TCPGroups of a group that has one rank at each port.
func atPorts(t *testing.T, ports []*peerlink.Port, name string, attempt uint32) []*TCPGroup {
	groups, errs := make([]*TCPGroup, len(ports)), make([]error, len(ports))
	var all sync.WaitGroup
	for r, p := range ports {
		all.Go(func() {
			groups[r], errs[r] = NewTCPGroup(t.Context(), r, TCPConfig{
				Port: p, Leader: ports[0].Address(), Size: len(ports), Group: name, Attempt: attempt, JoinTimeout: time.Minute,
			})
		})
	}
	all.Wait()
	require.NoError(t, errors.Join(errs...))
	return groups
}

// sums runs the given number of AllReduces on all ranks and checks the results.
func sums(groups []*TCPGroup, times int) error {
	errs := make([]error, len(groups))
	var all sync.WaitGroup
	for r, g := range groups {
		all.Go(func() {
			for k := range times {
				x := []float64{float64(r + k)}
				if errs[r] = AllReduce(g.Rank(r), &Reduction[float64]{Name: "x", Op: Sum[float64](), Whole: x, Out: x}); errs[r] != nil {
					return
				}
				if want := float64(len(groups)*k + len(groups)*(len(groups)-1)/2); x[0] != want {
					errs[r] = fmt.Errorf("round %d: the sum is %v, want %v", k, x[0], want)
					return
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// TestGroupsAtOnePort requires that several groups of the same processes can run at the same
// time if each process has one port for all groups.
func TestGroupsAtOnePort(t *testing.T) {
	ports := testPorts(t, 3)
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			groups := atPorts(t, ports, fmt.Sprint("queue ", i), 1)
			require.NoError(t, sums(groups, 50))
			closeAll(t, groups)
		})
	}
	all.Wait()
}

// TestLaterAttemptAtTheSamePorts requires that after the loss of a process, the other processes
// can join the next attempt at the ports that they already have, together with a new process.
// This must work whether or not they have closed the group of the earlier attempt.
func TestLaterAttemptAtTheSamePorts(t *testing.T) {
	for _, closed := range []bool{true, false} {
		ports := testPorts(t, 3)
		first := atPorts(t, ports, "queue", 1)
		require.NoError(t, sums(first, 5))
		lost := errors.New("the machine is gone")
		first[1].Abort(lost)
		for r, g := range first {
			require.ErrorContains(t, g.Rank(r).Barrier(context.Background()), lost.Error())
		}
		leave := func() {
			for r, g := range first {
				g.Rank(r).Close(lost)
				require.Error(t, g.Close())
			}
		}
		if closed {
			leave()
		}
		ports[1] = testPorts(t, 1)[0]
		second := atPorts(t, ports, "queue", 2)
		if !closed {
			leave()
		}
		require.NoError(t, sums(second, 5))
		_, err := NewTCPGroup(t.Context(), 1, TCPConfig{Port: ports[1], Leader: ports[0].Address(), Size: 3, Group: "queue", Attempt: 1})
		require.ErrorContains(t, err, `attempt 1 of the control connection of group "queue" is over: this is attempt 2`)
		require.NoError(t, sums(second, 5), "the refused process of attempt 1 must not end attempt 2")
		closeAll(t, second)
	}
}

// TestLaterAttemptEndsTheOneBefore requires that ranks in an operation of an earlier attempt
// get ErrReplaced when their processes join a later attempt.
func TestLaterAttemptEndsTheOneBefore(t *testing.T) {
	ports := testPorts(t, 2)
	first := atPorts(t, ports, "queue", 1)
	ended := make(chan error, 1)
	go func() { ended <- sums(first, 1<<30) }()
	second := atPorts(t, ports, "queue", 2)
	err := <-ended
	require.ErrorIs(t, err, ErrReplaced)
	require.NoError(t, sums(second, 5))
	closeAll(t, second)
	for _, g := range first {
		require.ErrorIs(t, g.Close(), ErrReplaced)
	}
}
