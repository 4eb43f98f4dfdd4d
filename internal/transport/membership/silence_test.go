package membership

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/silence"
)

// pipes is a network within this process, with one listener. It drops bytes that are written by
// silent processes, to simulate stopped processes.
type pipes struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipes() *pipes {
	return &pipes{accept: make(chan net.Conn), closed: make(chan struct{})}
}

func (n *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-n.accept:
		return c, nil
	case <-n.closed:
		return nil, net.ErrClosed
	}
}

func (n *pipes) Close() error   { n.once.Do(func() { close(n.closed) }); return nil }
func (n *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes", Net: "unix"} }

// process is the network that one process of the group uses.
type process struct {
	*pipes
	all    []process // all processes, by number
	silent *atomic.Bool
}

func (p process) Listen(context.Context, string) (net.Listener, error) {
	if p.silent == p.all[0].silent {
		return p.pipes, nil
	}
	return newPipes(), nil
}

func (p process) Dial(ctx context.Context, _ string) (net.Conn, error) {
	near, far := net.Pipe()
	select {
	case p.accept <- mutable{far, p.all[0].silent}:
		return mutable{near, p.silent}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// mutable is a connection that drops written bytes while the process is silent.
type mutable struct {
	net.Conn
	silent *atomic.Bool
}

func (m mutable) Write(b []byte) (int, error) {
	if m.silent.Load() {
		return len(b), nil
	}
	return m.Conn.Write(b)
}

// inBubble runs a test with a group of n processes in virtual time.
func inBubble(t *testing.T, n int, test func(t *testing.T, group []*Membership, processes []process)) {
	synctest.Test(t, func(t *testing.T) {
		shared := newPipes()
		processes := make([]process, n)
		for i := range processes {
			processes[i] = process{shared, processes, new(atomic.Bool)}
		}
		group := joinAllAt(t, n, func(p int, c *peerlink.Config) { c.Net = processes[p] }, func(c *Config) {
			c.Store, c.Coordinator = nil, "pipes"
			c.State = func() []State {
				return []State{{Rank: c.Process, Seq: 3, Op: barrier, Progress: uint64(time.Now().UnixNano())}}
			}
		})
		defer closeAll(group)
		test(t, group, processes)
	})
}

func TestNobodySilentNobodyDead(t *testing.T) {
	inBubble(t, 3, func(t *testing.T, group []*Membership, _ []process) {
		time.Sleep(time.Hour)
		for _, m := range group {
			require.NoError(t, m.Err())
		}
	})
}

func TestSilentProcessIsDeadWithinTheDetectionTime(t *testing.T) {
	for dead := range 3 {
		for _, phase := range []time.Duration{0, 100, 333, 499} { // milliseconds since the last heartbeat
			inBubble(t, 3, func(t *testing.T, group []*Membership, processes []process) {
				time.Sleep(10*time.Second + phase*time.Millisecond)
				processes[dead].silent.Store(true)
				start := time.Now()
				for p, m := range group {
					if p == dead {
						continue
					}
					<-m.Failed()
					require.LessOrEqual(t, time.Since(start), defaultDetection)
					require.Greater(t, time.Since(start), defaultDetection*3/4, "a short silence must not count as death")
					require.ErrorIs(t, m.Err(), ErrTimeout)
					var peer *PeerError
					require.ErrorAs(t, m.Err(), &peer)
					require.Equal(t, dead, peer.Rank)
					require.Equal(t, "Barrier #3", peer.During)
				}
			})
		}
	}
}

func TestReportWithoutAnswer(t *testing.T) {
	// If the report is lost but the coordinator's messages arrive, the cause must be the
	// failure that the process reported.
	inBubble(t, 2, func(t *testing.T, group []*Membership, processes []process) {
		time.Sleep(time.Second)
		processes[1].silent.Store(true)
		start := time.Now()
		require.EqualError(t, group[1].Fail(errors.New("the disk is full")), "the disk is full")
		require.Equal(t, verdictWait, time.Since(start))
		start = time.Now()
		require.EqualError(t, group[1].Fail(errors.New("more")), "the disk is full")
		require.Zero(t, time.Since(start))
	})
	// If no messages of the coordinator arrive either, the cause must be the loss of the
	// coordinator, which the other processes will detect too.
	inBubble(t, 3, func(t *testing.T, group []*Membership, processes []process) {
		time.Sleep(time.Second)
		processes[0].silent.Store(true)
		time.Sleep(time.Second)
		err := group[1].Fail(&PeerError{Rank: 2, Reporter: 1, Reason: "closed its connection"})
		require.ErrorIs(t, err, ErrTimeout)
		var peer *PeerError
		require.ErrorAs(t, err, &peer)
		require.Equal(t, 0, peer.Rank)
	})
	// If there is no answer to the report of a mismatch, the error must still have the number
	// of the other rank's operation.
	inBubble(t, 2, func(t *testing.T, group []*Membership, processes []process) {
		processes[1].silent.Store(true)
		err := group[1].Fail(Disagreement(1, "Barrier #3", 0, 4))
		require.EqualError(t, err, "ranks disagree: rank 1 is in Barrier #3, rank 0 is in operation #4")
	})
}

func TestRankThatWaitsIsSeenSoon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := newPipes()
		processes := make([]process, 3)
		for i := range processes {
			processes[i] = process{shared, processes, new(atomic.Bool)}
		}
		group, at := joinStandingAt(t, 3, func(p int, c *peerlink.Config) { c.Net = processes[p] }, func(c *Config) {
			c.Store, c.Coordinator = nil, "pipes"
		})
		defer closeAll(group)
		time.Sleep(time.Second + time.Millisecond) // this time is just after a regular state message
		start := time.Now()
		at[1].set(State{Rank: 1, Seq: 4, Op: allReduce})
		at[2].set(State{Rank: 2, Seq: 4, Op: barrier})
		cause(t, group)
		require.LessOrEqual(t, time.Since(start), 2*samplePeriod)
	})
}

func TestRankThatLeavesItsProcessBehind(t *testing.T) {
	group, at := joinStanding(t, 2, nil)
	defer closeAll(group)
	at[1].set(State{Rank: 1, Seq: 3, Left: true})
	at[0].set(State{Rank: 0, Seq: 4, Op: barrier})
	err := cause(t, group)
	require.ErrorIs(t, err, ErrLeft)
	require.EqualError(t, err, "rank 1 (127.0.0.1:1001) left the group, noticed by rank 0 in Barrier #4")
}

// TestStarvedCoordinatorSuspectsNobody runs a group of three processes. The coordinator gets a
// tick only every 5 seconds, and reads messages only after the tick. It must not declare a
// process dead that has sent messages.
func TestStarvedCoordinatorSuspectsNobody(t *testing.T) {
	c := newCore(settings{processes: 3, size: 3, detection: defaultDetection, join: defaultJoin})
	for p := range 3 {
		h := hello{process: p, processes: 3, size: 3, ranks: []int{p}, address: "host:7"}
		c.handleHello(0, p, h, netip.Addr{}, netip.Addr{})
	}
	require.Equal(t, running, c.phase)
	now := time.Duration(0)
	for turn := range 1000 {
		now += 5 * time.Second
		c.tick(now)
		if turn%10 == 9 {
			c.receive(now, 1, beat{})
		}
		if turn < 900 {
			c.receive(now, 2, beat{})
		}
		if c.phase == failed {
			var peer *PeerError
			require.ErrorAs(t, c.cause, &peer)
			require.Equal(t, 2, peer.Rank)
			require.Greater(t, turn, 900)
			return
		}
	}
	t.Fatal("a process that stops sending must be declared dead")
}

// TestUnreadBytesAreNoSilence requires that a link reports unread bytes in its
// socket, and that a process whose bytes are unread is not declared dead.
func TestUnreadBytesAreNoSilence(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer listener.Close()
	speaker, err := net.Dial("tcp", listener.Addr().String())
	require.NoError(t, err)
	defer speaker.Close()
	nc, err := listener.Accept()
	require.NoError(t, err)
	for _, link := range []*conn{newConn(nc, time.Second), newConn(tls.Server(nc, nil), time.Second)} {
		require.False(t, link.unread())
		_, err = speaker.Write([]byte{1})
		require.NoError(t, err)
		require.Eventually(t, link.unread, 5*time.Second, time.Millisecond)
		_, err = nc.Read(make([]byte, 1))
		require.NoError(t, err)
		require.False(t, link.unread())
		defer link.close()
	}
	// Unread must not consume the error of a reset, which the system reports only once: the
	// next read must get this error.
	require.NoError(t, speaker.(*net.TCPConn).SetLinger(0))
	require.NoError(t, speaker.Close())
	require.Eventually(t, func() bool { return peerlink.Unread(nc) }, time.Minute, time.Millisecond)
	_, err = nc.Read(make([]byte, 1))
	require.ErrorIs(t, err, syscall.ECONNRESET)

	c := newCore(settings{processes: 2, size: 2, detection: defaultDetection, join: defaultJoin})
	for p := range 2 {
		h := hello{process: p, processes: 2, size: 2, ranks: []int{p}, address: "host:7"}
		c.handleHello(0, p, h, netip.Addr{}, netip.Addr{})
	}
	var now time.Duration
	for looked := 0; looked < 100; {
		now += c.watch.Period
		for _, conn := range c.suspects() {
			looked++
			require.Equal(t, 1, conn)
			c.noteUnread(conn)
		}
		c.tick(now)
		require.Equal(t, running, c.phase)
	}
}

// TestStarvedProcessSeesNoStandstill gives the coordinator a tick only in every third period.
// While the group makes progress at every tenth tick, it must not fail. When it makes no
// progress any more, it must fail after 3/2 of the stall timeout, since for each tick at most
// two of the three periods count.
func TestStarvedProcessSeesNoStandstill(t *testing.T) {
	c := newCore(settings{processes: 1, size: 1, detection: defaultDetection, stall: defaultStall, join: defaultJoin})
	h := hello{processes: 1, size: 1, ranks: []int{0}, address: "host:7"}
	c.handleHello(0, localConn, h, netip.Addr{}, netip.Addr{})
	require.Equal(t, running, c.phase)
	var now, moved time.Duration
	for turn := 0; c.phase == running; turn++ {
		now += 3 * c.watch.Period
		if turn%10 == 9 && turn < 100 {
			moved = now
		}
		c.receive(now, localConn, state{ranks: []rankState{{rank: 0, seq: 1, inside: true, hash: 1, progress: uint64(moved)}}})
		c.tick(now)
	}
	require.Equal(t, failed, c.phase)
	require.ErrorContains(t, c.cause, "no rank has made progress")
	require.InDelta(t, float64(defaultStall*3/2), float64(now-moved), float64(4*c.watch.Period))
}

// muted is the link of a process that was stopped. words says whether there are unread messages
// of the coordinator.
type muted struct {
	link
	words bool
}

func (muted) send(message)   {}
func (l muted) unread() bool { return l.words }

// TestUnreadMessagesAreNoSilence requires that a process that got no answer does not declare the
// coordinator dead while messages from the coordinator are still unread.
func TestUnreadMessagesAreNoSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		boom := errors.New("boom")
		cfg := Config{Process: 1, Processes: 2, Ranks: []int{1}, Size: 2}
		for _, words := range []bool{true, false} {
			m := &Membership{
				cfg: cfg, table: []Peer{{Ranks: []int{0}, Address: "10.0.0.1:1"}, {Ranks: []int{1}, Address: "10.0.0.2:1"}},
				hosts: []int{0, 1}, link: muted{words: words}, start: time.Now(), watch: silence.NewWatch(400*time.Millisecond, 0),
			}
			m.sampler = newSampler(cfg, m.link, m.watch.Beat)
			time.Sleep(time.Minute)
			if err := m.unanswered(boom, 0); words {
				require.Equal(t, boom, err)
			} else {
				require.ErrorContains(t, err, "rank 0 (10.0.0.1:1) was silent for 1m0s")
			}
		}
	})
}
