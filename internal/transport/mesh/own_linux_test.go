package mesh

import (
	"errors"
	"fmt"
	"net"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// alone calls Alone until the sockets of conns are taken out of the runtime's poller.
func alone(t testing.TB, conns ...Conn) {
	for _, c := range conns {
		tc := c.(*tcpConn)
		tc.localIndex = -1
		for range aloneAfter<<tc.returns + 1 {
			tc.Alone(true)
		}
		require.NotNil(t, tc.own)
	}
}

// exchangeMessages posts n messages of the given length from rank me to rank other, and then
// receives n messages of this length from rank other.
func exchangeMessages(c Conn, me, other, n, length int) error {
	for i := range n {
		h := headerOf(me, other, 0, i, length)
		if err := c.Post(&h, content(me, other, 0, i, length)); err != nil {
			return err
		}
	}
	for i := range n {
		var h Header
		if err := c.Next(&h); err != nil {
			return err
		}
		b := make([]byte, length)
		if err := c.Read(b); err != nil {
			return err
		}
		if h != headerOf(other, me, 0, i, length) || string(b) != string(content(other, me, 0, i, length)) {
			return fmt.Errorf("message %d of %d bytes is not what was sent", i, length)
		}
	}
	return nil
}

// TestOwnSocketsCarryMessages requires that no message is lost when sockets leave the runtime's
// poller or return to it, even if only the socket of one side does so, and even if more is
// posted than the sockets' buffers can hold.
func TestOwnSocketsCarryMessages(t *testing.T) {
	for _, buffer := range []int{0, 4096} {
		_, nodes := clusterAt(t, oneEach(2), func(c *peerlink.Config) { c.Net = peerlink.TCP{SocketBuffer: buffer} }, nil)
		ca, cb := couple(t, nodes[0], nodes[1], 0)
		ca.(*tcpConn).t.oversubscribed = true
		for round, own := range [][2]bool{{true, true}, {true, false}, {false, true}, {false, false}, {true, true}, {true, true}} {
			for side, c := range []Conn{ca, cb} {
				tc := c.(*tcpConn)
				tc.flush()
				if own[side] {
					alone(t, c)
				} else {
					tc.Alone(false)
					require.Nil(t, tc.own)
				}
			}
			for _, length := range []int{0, 8, 5000, 60 << 10} {
				var g errgroup.Group
				g.Go(func() error { return exchangeMessages(ca, 0, 1, 20, length) })
				g.Go(func() error { return exchangeMessages(cb, 1, 0, 20, length) })
				require.NoError(t, g.Wait(), "round %d", round)
			}
			// Both sides send and receive at the same time. Lanes do the same if a socket could
			// not be returned to the poller.
			var g errgroup.Group
			for _, c := range []Conn{ca, cb} {
				g.Go(func() error { return c.Send(&Header{Length: 1 << 20}, make([]byte, 1<<20)) })
				g.Go(func() error {
					if err := c.Next(new(Header)); err != nil {
						return err
					}
					return c.Read(make([]byte, 1<<20))
				})
			}
			require.NoError(t, g.Wait(), "round %d", round)
		}
	}
}

// TestOwnSocketsAreNotTakenFromTheBackground requires that a socket stays in the poller while
// posted messages are still being written in the background, and that Alone does not wait for
// these messages.
func TestOwnSocketsAreNotTakenFromTheBackground(t *testing.T) {
	_, nodes := clusterAt(t, oneEach(2), smallSockets, nil)
	ca, cb := couple(t, nodes[0], nodes[1], 0)
	const n = 8 << 20
	tc := ca.(*tcpConn)
	for _, own := range []bool{false, true} {
		if own {
			tc.flush()
			alone(t, ca)
		}
		require.NoError(t, ca.Post(&Header{Length: n}, make([]byte, n)))
		for range 2 * aloneAfter {
			tc.Alone(!own)
		}
		require.Equal(t, own, tc.own != nil)
		require.NoError(t, cb.Next(new(Header)))
		require.NoError(t, cb.Read(make([]byte, n)))
	}
}

// reset makes peer reset its connection.
func reset(_ []*TCP, peer *tcpConn) {
	_ = peer.sock.(*net.TCPConn).SetLinger(0)
	_ = peer.sock.Close()
}

// TestOwnSocketsEnd requires that a goroutine that waits outside the runtime's poller wakes up
// when its connection ends, for whatever reason, and that no descriptor or goroutine is left.
func TestOwnSocketsEnd(t *testing.T) {
	for name, end := range map[string]struct {
		how  func(meshes []*TCP, peer *tcpConn)
		want string
		kind error
		busy bool // a posted message is being written in the background
		late bool // the connection ends before Next is called, on a host with more ranks than cores
	}{
		"the group fails": {func(meshes []*TCP, _ *tcpConn) {
			meshes[0].group.(*localGroup).Fail(errors.New("disk full")) // simulates a failure that another process reports
		}, "disk full", nil, true, false},
		"this side closes":           {func(meshes []*TCP, _ *tcpConn) { _ = meshes[0].Close() }, "closed", ErrClosed, false, false},
		"the peer closes":            {func(meshes []*TCP, _ *tcpConn) { _ = meshes[1].Close() }, "closed its connection", membership.ErrLeft, false, false},
		"the peer resets":            {reset, "reset its connection", nil, false, false},
		"the peer has reset already": {reset, "reset its connection", nil, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			before, routines := descriptors(t), goleak.IgnoreCurrent()
			meshes, nodes := clusterAt(t, oneEach(2), smallSockets, nil)
			ca, cb := couple(t, nodes[0], nodes[1], 0)
			alone(t, ca)
			if end.busy {
				require.NoError(t, ca.Post(&Header{Length: 4 << 20}, make([]byte, 4<<20)))
			}
			received := make(chan error, 1)
			if end.late {
				own := ca.(*tcpConn).own
				own.oversubscribed = true
				end.how(meshes, cb.(*tcpConn))
				n, err := unix.Poll([]unix.PollFd{{Fd: int32(own.fd), Events: unix.POLLIN}}, -1)
				require.NoError(t, err)
				require.Equal(t, 1, n)
				received <- ca.Next(new(Header))
			} else {
				go func() { received <- ca.Next(new(Header)) }()
				end.how(meshes, cb.(*tcpConn))
			}
			err := <-received
			require.ErrorContains(t, err, end.want)
			if end.kind != nil {
				require.ErrorIs(t, err, end.kind)
			}
			require.Equal(t, err, ca.Send(new(Header), nil))
			ca.(*tcpConn).Alone(false) // must have no effect on a connection that has ended
			for _, m := range meshes {
				require.NoError(t, m.Close())
				require.NoError(t, m.cfg.Port.Close())
			}
			require.LessOrEqual(t, descriptors(t), before+1, "no descriptors may be left open, except one that the runtime's poller may have opened")
			goleak.VerifyNone(t, routines)
		})
	}
}

// TestOwnSocketsGoBackWhereProcessorsAreFew requires that a socket is returned to the poller,
// and stays there, if the runtime has too few processors. A waiting thread would keep other
// goroutines from running.
func TestOwnSocketsGoBackWhereProcessorsAreFew(t *testing.T) {
	_, nodes := cluster(t, oneEach(2), nil)
	ca, _ := couple(t, nodes[0], nodes[1], 0)
	alone(t, ca)
	tc := ca.(*tcpConn)
	tc.localIndex = runtime.GOMAXPROCS(0)
	for range mayOwnPeriod {
		tc.Alone(true)
	}
	require.Nil(t, tc.own)
	for range 100 * aloneAfter {
		tc.Alone(true)
	}
	require.Nil(t, tc.own)
}

func TestOversubscribedHosts(t *testing.T) {
	at := func(hosts ...string) (peers []membership.Peer) {
		for _, h := range hosts {
			peers = append(peers, membership.Peer{Address: h})
		}
		return peers
	}
	many := at("10.0.0.2:1", "10.0.0.2:2", "[::1]:5", "")
	for i := range runtime.NumCPU() {
		many = append(many, at(fmt.Sprintf("10.0.0.1:%d", i))...)
	}
	require.False(t, oversubscribed("10.0.0.1:0", many))
	require.True(t, oversubscribed("10.0.0.1:0", append(many, at("10.0.0.1:999")...)))
	require.Equal(t, runtime.NumCPU() < 2, oversubscribed("10.0.0.2:1", many))
	require.False(t, oversubscribed("10.0.0.7:1", many))
}

func TestOwnSocketsAllocateNothing(t *testing.T) {
	for _, size := range []int{0, 8, 4 << 10} {
		_, nodes := cluster(t, oneEach(2), nil)
		ca, cb := couple(t, nodes[0], nodes[1], 0)
		alone(t, ca, cb)
		requireNoAllocations(t, nodes[0], nodes[1], size)
	}
}

// TestSlowYieldStopsYielding requires that the next skippedYields calls of yieldCore do not yield
// if a yield has taken longer than longYield, which means that another program got the core.
func TestSlowYieldStopsYielding(t *testing.T) {
	yields := 0
	s := &ownSocket{oversubscribed: true, yield: func() {
		yields++
		for began := time.Now(); time.Since(began) <= longYield; {
		}
	}}
	for range 4 * (skippedYields + 1) {
		s.yieldCore()
	}
	require.Equal(t, 4, yields)
}
