package mesh

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/testsize"
	"github.com/superstep-ml/superstep/internal/tlstest"
	"github.com/superstep-ml/superstep/internal/transport/membership"
)

func TestTCPCarriesAllTraffic(t *testing.T) {
	secure := tlstest.NewConfig(t)
	variants := map[string]struct {
		hosting [][]int
		secure  bool
		change  func(*TCPConfig)
	}{
		"one rank a process": {oneEach(3), false, nil},
		"ranks side by side": {[][]int{{3, 0}, {1, 2}}, false, nil},
		"no checksums":       {oneEach(2), false, func(c *TCPConfig) { c.NoChecksum = true }},
		"small buffers":      {oneEach(2), false, func(c *TCPConfig) { c.ReadBuffer = 1 }},
		"TLS":                {oneEach(2), true, nil},
		"TLS, small buffers": {oneEach(2), true, nil},
		"no keep-alive":      {oneEach(2), false, func(c *TCPConfig) { c.KeepAlive, c.UserTimeout = -1, time.Minute }},
	}
	for name, v := range variants {
		t.Run(name, func(t *testing.T) {
			_, nodes := clusterAt(t, v.hosting, func(c *peerlink.Config) {
				if v.secure {
					c.TLS = secure
				}
				if strings.HasSuffix(name, "small buffers") {
					smallSockets(c)
				}
			}, v.change)
			rounds := 6
			if testsize.Soak {
				rounds = 100
			}
			done := 0
			rapid.Check(t, func(t *rapid.T) {
				if done == rounds {
					return
				}
				traffic(t, nodes, 2, 20, 1<<18, rapid.Uint64().Draw(t, "seed"))
				done++
			})
		})
	}
}

// TestTCPPostNeverWaits requires that both sides can post more than the sockets' buffers hold
// before either side receives.
func TestTCPPostNeverWaits(t *testing.T) {
	for _, secure := range []*tls.Config{nil, tlstest.NewConfig(t)} {
		_, nodes := clusterAt(t, oneEach(2), func(c *peerlink.Config) { smallSockets(c); c.TLS = secure }, nil)
		ca, cb := couple(t, nodes[0], nodes[1], 0)
		const n, count = 64 << 10, 50
		side := func(c Conn, me, other int) error {
			for i := range count {
				h := headerOf(me, other, 0, i, n)
				if err := c.Post(&h, content(me, other, 0, i, n)); err != nil {
					return err
				}
			}
			h := headerOf(me, other, 0, count, 8)
			for i := range count {
				var got Header
				if err := c.Next(&got); err != nil {
					return err
				}
				b := make([]byte, n)
				if err := c.Read(b); err != nil {
					return err
				}
				if got != headerOf(other, me, 0, i, n) || string(b) != string(content(other, me, 0, i, n)) {
					return fmt.Errorf("message %d is not what was sent", i)
				}
			}
			if err := c.Send(&h, make([]byte, 8)); err != nil {
				return err
			}
			return c.Next(&h)
		}
		var g errgroup.Group
		g.Go(func() error { return side(ca, 0, 1) })
		g.Go(func() error { return side(cb, 1, 0) })
		require.NoError(t, g.Wait())
	}
}

func TestTCPOpeningAgainIsTheSame(t *testing.T) {
	_, nodes := cluster(t, [][]int{{0, 2}, {1}}, nil)
	ca, cb := couple(t, nodes[0], nodes[1], 0)
	again, againB := couple(t, nodes[0], nodes[1], 0)
	require.Same(t, ca, again)
	require.Same(t, cb, againB)
	require.IsType(t, &localConn{}, open(t, nodes[0], 2, 0), "ranks of one process must be connected in memory")
	require.Equal(t, "*mesh.tcpConn", fmt.Sprintf("%T", ca))
}

func TestTCPAllocatesNothing(t *testing.T) {
	for _, size := range []int{0, 8, 4 << 10, 1 << 20} {
		_, nodes := cluster(t, oneEach(2), nil)
		couple(t, nodes[0], nodes[1], 0)
		requireNoAllocations(t, nodes[0], nodes[1], size)
	}
}

// TestTCPClosing requires that a mesh that closes between two messages counts as having left.
// Other ranks must still receive the messages that it has posted; ranks that wait for further
// messages must get an error that wraps ErrLeft.
func TestTCPClosing(t *testing.T) {
	meshes, nodes := clusterAt(t, oneEach(3), smallSockets, nil)
	ca, cb := couple(t, nodes[0], nodes[1], 3)
	_, cd := couple(t, nodes[1], nodes[2], 0)
	op := &Operation{Hash: 5, Text: "Broadcast (1 byte)"}
	nodes[1].Begin(9, op)
	require.NoError(t, ca.Post(&Header{Seq: 1, Length: 1 << 20}, make([]byte, 1<<20)))
	var closing errgroup.Group
	closing.Go(meshes[0].Close)
	var h Header
	require.NoError(t, cb.Next(&h))
	require.NoError(t, cb.Read(make([]byte, 1<<20)), "a message posted before Close must be received")
	require.NoError(t, closing.Wait())
	require.ErrorIs(t, ca.Send(&Header{}, nil), ErrClosed)
	_, err := nodes[0].Open(context.Background(), []Route{{1, 8}})
	require.ErrorIs(t, err, ErrClosed)

	waiting := make(chan error)
	go func() { waiting <- cd.Next(new(Header)) }()
	err = cb.Next(&h)
	require.ErrorIs(t, err, membership.ErrLeft)
	var lost *membership.PeerError
	require.ErrorAs(t, err, &lost)
	require.Equal(t, membership.PeerError{
		Rank: 0, Address: meshes[0].Address(), Reporter: 1, During: membership.Describe(9, op),
		Reason: "closed its connection", Kind: membership.ErrLeft,
	}, *lost)
	require.Equal(t, err, <-waiting, "other ranks must get the same cause")
}

// TestTCPPeerDiesWithinMessage requires that a peer whose connection ends in the middle of a
// message counts as failed, and not as having left.
func TestTCPPeerDiesWithinMessage(t *testing.T) {
	for name, how := range map[string]struct {
		linger int
		reason string
	}{
		"closed": {-1, "closed its connection in the middle of a message"},
		"reset":  {0, "reset its connection"},
	} {
		t.Run(name, func(t *testing.T) {
			_, nodes := cluster(t, oneEach(3), nil)
			ca, cb := couple(t, nodes[0], nodes[1], 0)
			_, cd := couple(t, nodes[1], nodes[2], 0)
			waiting := make(chan error)
			go func() { waiting <- cd.Next(new(Header)) }()
			tc := ca.(*tcpConn)
			var b [headerBytes]byte
			tc.t.fence.encode(&b, &Header{Length: 1000}, 0, payloadSum{})
			_, err := tc.sock.Write(append(b[:], 1, 2, 3))
			require.NoError(t, err)
			require.NoError(t, cb.Next(new(Header)))
			require.NoError(t, tc.sock.(*net.TCPConn).SetLinger(how.linger))
			require.NoError(t, tc.sock.Close())
			err = cb.Read(make([]byte, 1000))
			require.ErrorContains(t, err, "rank 0 (127.0.0.1:")
			require.ErrorContains(t, err, how.reason)
			require.NotErrorIs(t, err, membership.ErrLeft)
			require.Equal(t, err, <-waiting)
			require.Equal(t, err, ca.Send(&Header{}, nil))
		})
	}
}

// TestTCPGroupFails requires that a failure of the group makes all waiting calls return: Send,
// Next, Read and Open.
func TestTCPGroupFails(t *testing.T) {
	meshes, nodes := clusterAt(t, oneEach(3), smallSockets, nil)
	ca, _ := couple(t, nodes[0], nodes[1], 0)
	results := make(chan error, 5)
	go func() {
		h := Header{Length: 1 << 20}
		for {
			if err := ca.Send(&h, make([]byte, 1<<20)); err != nil {
				results <- err
				return
			}
		}
	}()
	go func() { results <- ca.Next(new(Header)) }()
	posting, _ := couple(t, nodes[0], nodes[2], 0)
	require.NoError(t, posting.Post(&Header{Length: 4 << 20}, make([]byte, 4<<20)))
	go func() { results <- posting.Send(&Header{}, nil) }()
	go func() {
		_, err := nodes[1].Open(context.Background(), []Route{{0, 7}})
		results <- err
	}()
	cause := errors.New("disk full")
	meshes[0].group.(*localGroup).Fail(cause) // the membership makes this call if another process fails
	for range 4 {
		require.Equal(t, cause, <-results)
	}
	require.Equal(t, cause, ca.Post(&Header{}, nil))
	require.Equal(t, cause, nodes[2].Err())
}

func TestTCPOpenGivesUp(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer silent.Close()
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, gone.Close())

	for name, c := range map[string]struct {
		rank, peer int
		address    string
		want, last string
	}{
		"nobody listens": {0, 1, gone.Addr().String(), "did not answer on channel 5 within AFTER: check that its process runs", "refused"},
		"nobody answers": {0, 1, silent.Addr().String(), "did not answer on channel 5 within AFTER", ""},
		"nobody dials":   {1, 0, "192.0.2.1:1", "did not connect to rank 1 on channel 5 within AFTER", "that it can reach 127.0.0.1:"},
		"no address":     {0, 1, "", "refuses channel 5", "its address is not known"},
	} {
		t.Run(name, func(t *testing.T) {
			giveUp := func(after time.Duration) error {
				group := &localGroup{failed: make(chan struct{})}
				m, err := JoinTCP(context.Background(), TCPConfig{Size: 2, Ranks: []int{c.rank}, ConnectTimeout: after, Port: newPort(t, nil),
					Join: func(_ context.Context, address string, _ func() []membership.State) (Group, []membership.Peer, error) {
						return group, []membership.Peer{{Ranks: []int{c.rank}, Address: address}, {Ranks: []int{c.peer}, Address: c.address}}, nil
					}})
				require.NoError(t, err)
				defer m.Close()
				_, err = m.Node(c.rank).Open(context.Background(), []Route{{c.peer, 5}})
				require.Equal(t, err, group.Err())
				return err
			}
			after := 50 * time.Millisecond
			err := giveUp(after)
			for ; c.last == "refused" && !strings.Contains(err.Error(), c.last) && after < time.Minute; after *= 2 {
				err = giveUp(2 * after) // on a busy machine the first error may occur too late
			}
			for _, text := range []string{c.want, c.last, fmt.Sprintf("rank %d", c.peer), c.address} {
				require.ErrorContains(t, err, strings.ReplaceAll(text, "AFTER", after.String()))
			}
			if c.address != "" {
				require.ErrorIs(t, err, membership.ErrTimeout)
			}
		})
	}
}

func TestTCPOpenIsCancelled(t *testing.T) {
	_, nodes := cluster(t, oneEach(2), nil)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("the user pressed Ctrl-C"))
	_, err := nodes[1].Open(ctx, []Route{{0, 0}})
	require.ErrorContains(t, err, "rank 1 gave up connecting to rank 0")
	require.ErrorContains(t, err, "Ctrl-C")
	require.Equal(t, err, nodes[0].Err())
}

// TestTCPWaitsForListener requires that retries connect to a mesh that starts late. Until the
// mesh starts, another listener, which does not answer, occupies the mesh's address.
func TestTCPWaitsForListener(t *testing.T) {
	reserved, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := reserved.Addr().String()
	group := &localGroup{failed: make(chan struct{})}
	join := func(context.Context, string, func() []membership.State) (Group, []membership.Peer, error) {
		return group, []membership.Peer{{Ranks: []int{0}}, {Ranks: []int{1}, Address: address}}, nil
	}
	early, err := JoinTCP(context.Background(), TCPConfig{Size: 2, Ranks: []int{0}, Port: newPort(t, nil), Join: join})
	require.NoError(t, err)
	defer early.Close()
	var g errgroup.Group
	g.Go(func() error {
		_, err := early.Node(0).Open(context.Background(), []Route{{1, 0}})
		return err
	})
	attempt, err := reserved.Accept()
	require.NoError(t, err)
	require.NoError(t, attempt.Close())
	require.NoError(t, reserved.Close())
	late, err := JoinTCP(context.Background(), TCPConfig{Size: 2, Ranks: []int{1}, Join: join,
		Port: newPort(t, func(c *peerlink.Config) { c.Listen = address })})
	require.NoError(t, err)
	defer late.Close()
	open(t, late.Node(1), 0, 0)
	require.NoError(t, g.Wait())
}

func TestTCPConfigIsChecked(t *testing.T) {
	join := func(context.Context, string, func() []membership.State) (Group, []membership.Peer, error) {
		return nil, nil, errors.New("nobody is there")
	}
	for want, cfg := range map[string]TCPConfig{
		"at least one":       {Ranks: []int{0}, Join: join},
		"hosts no rank":      {Size: 2, Join: join},
		"Join is not set":    {Size: 2, Ranks: []int{0}},
		"Port is not set":    {Size: 2, Ranks: []int{0}, Join: join},
		"hosts rank 2, but":  {Size: 2, Ranks: []int{2}, Join: join},
		"hosts rank 1 twice": {Size: 2, Ranks: []int{1, 1}, Join: join},
		"fit in 32 bits":     {Size: 2, Ranks: []int{1}, Join: join, MaxFrame: -1},
		"nobody is there":    {Size: 2, Ranks: []int{1}, Join: join, Port: newPort(t, nil)},
	} {
		_, err := JoinTCP(context.Background(), cfg)
		require.ErrorContains(t, err, want)
	}
}

// descriptors returns the number of open files of this process, which Linux and macOS list in
// /dev/fd.
func descriptors(t *testing.T) int {
	entries, err := os.ReadDir("/dev/fd")
	require.NoError(t, err)
	return len(entries)
}

func TestTCPLeavesNothingBehind(t *testing.T) {
	before, routines := descriptors(t), goleak.IgnoreCurrent()
	for _, fail := range []bool{false, true} {
		meshes, nodes := cluster(t, [][]int{{0, 1}, {2, 3}}, nil)
		traffic(t, nodes, 2, 3, 1<<16, 1)
		idle, err := net.Dial("tcp", meshes[0].Address()) // a connection that sends nothing
		require.NoError(t, err)
		require.Greater(t, descriptors(t), before+16)
		if fail {
			nodes[3].Fail(errors.New("stop"))
		}
		for _, m := range meshes {
			require.NoError(t, m.Close())
			require.NoError(t, m.cfg.Port.Close())
		}
		require.NoError(t, idle.Close())
		require.LessOrEqual(t, descriptors(t), before+1, "no descriptors may be left open, except one that the runtime's poller may have opened")
		goleak.VerifyNone(t, routines)
	}
}
