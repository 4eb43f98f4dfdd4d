package mesh

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// ErrClosed is wrapped by the errors of calls on a mesh that is closed.
var ErrClosed = errors.New("the mesh is closed")

// These are the defaults of TCPConfig.
const (
	DefaultConnectTimeout = 30 * time.Second
	DefaultMaxFrame       = 64 << 20
	DefaultReadBuffer     = 64 << 10
	DefaultKeepAlive      = 15 * time.Second
	minReadBuffer         = 1 << 10
)

// JoinFunc joins the group. address is the address at which this process accepts connections of
// other ranks, and states returns the states of the ranks of this process. JoinFunc returns the
// group and its processes. Closing the mesh does not leave the group; the caller of JoinTCP
// must do that.
type JoinFunc func(ctx context.Context, address string, states func() []membership.State) (Group, []membership.Peer, error)

// TCPConfig configures the part of a mesh in one process.
type TCPConfig struct {
	Size    int    // number of ranks of the group
	Ranks   []int  // ranks that this process hosts
	Group   string // name of the group, equal in all processes
	Attempt uint32 // number of the attempt, equal in all processes; peers of other attempts are refused

	// Port accepts and makes the connections of this process. The caller must close it after it
	// has closed the mesh. If Port listens on all interfaces, Join must find the address that
	// other processes can dial.
	Port *peerlink.Port

	Join JoinFunc // required

	// ConnectTimeout bounds the time that Open takes; 0 means 30 s.
	ConnectTimeout time.Duration
	// KeepAlive is the time for which a connection must be idle before the operating system
	// sends probes. Three probes are sent within another KeepAlive. 0 means 15 s; a negative
	// value means no probes. Probes also detect dead machines that the membership's heartbeats
	// do not detect.
	KeepAlive time.Duration
	// UserTimeout is the time for which sent bytes may remain unacknowledged; it is used only
	// on Linux. It also ends connections to ranks that are alive but read nothing for that
	// time, so it must be longer than the time for which any operation may wait for a slow
	// rank. 0 means the default of the operating system.
	UserTimeout time.Duration

	// NoChecksum turns off the checksums of payloads. The checksums detect damage that TCP's
	// own checksum of 16 bits does not detect. All processes of a group must have the same
	// setting. With TLS, which authenticates the data, payloads have no checksums in any case.
	NoChecksum bool

	MaxFrame   int // length of the longest payload in bytes; 0 means 64 MiB
	ReadBuffer int // bytes of each connection's read buffer; 0 means 64 KiB, so that small messages are read in one call

	wire func(ctx context.Context, conn net.Conn, from int, r Route) net.Conn // for tests: wraps a connection; see FaultPlan.OnWire
}

// TCP is a mesh over TCP. The ranks of this process are connected in memory. Ranks of different
// processes are connected by one TCP connection per pair of ranks and channel.
type TCP struct {
	*fabric
	cfg            TCPConfig
	fence          fence
	endpoint       *peerlink.Opened
	peers          []string // rank -> address of its process; "" if unknown
	oversubscribed bool     // this host has more processes of the group than cores

	ctx    context.Context // ends when the group ends or the mesh is closed
	cancel context.CancelCauseFunc
	work   sync.WaitGroup
	dials  chan struct{} // bounds the number of concurrent dials

	mu    sync.Mutex
	slots map[linkKey]*slot
	ended error // the group's cause; set when no connections are made any more
}

// slot holds a connection until its rank claims it.
type slot struct {
	ready   chan struct{} // closed when conn has been set
	conn    *tcpConn
	try     uint32 // number of the attempt of the lower rank that made conn
	dialing bool   // this side is making the connection
	claimed bool   // conn has been returned to its rank by claim
	err     error  // error of the latest attempt to make the connection
}

// JoinTCP joins the group, and then accepts connections. Connections that arrive earlier wait
// at the port. ctx limits only the time of joining. The caller must close the mesh. If a later
// attempt of the group joins at the same port, the group of this mesh fails with an error that
// wraps membership.ErrReplaced.
func JoinTCP(ctx context.Context, cfg TCPConfig) (*TCP, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	t := &TCP{
		fabric: newFabric(cfg.Size, nil, cfg.Ranks), cfg: cfg,
		fence: fence{attempt: cfg.Attempt, group: groupHash(cfg.Group), limit: cfg.MaxFrame,
			summed: !cfg.NoChecksum && !cfg.Port.Encrypted()},
		peers: make([]string, cfg.Size),
		slots: make(map[linkKey]*slot), dials: make(chan struct{}, 128),
	}
	t.ctx, t.cancel = context.WithCancelCause(context.Background())
	t.fabric.remote, t.fabric.interruptRemote = t.open, t.interruptConns
	group, peers, err := cfg.Join(ctx, cfg.Port.Address(), t.states)
	if err != nil {
		t.cancel(err)
		return nil, err
	}
	t.fabric.group = group
	for _, p := range peers {
		for _, r := range p.Ranks {
			if r >= 0 && r < cfg.Size {
				t.peers[r] = p.Address
			}
		}
	}
	t.oversubscribed = oversubscribed(t.Address(), peers)
	replaced := make(chan error, 1)
	t.endpoint, err = cfg.Port.Open(peerlink.Endpoint{
		Kind: peerlink.Lane, Scope: cfg.Group, Epoch: cfg.Attempt, Serve: t.answer,
		Replaced: func(attempt uint32) { replaced <- fmt.Errorf("%w, %d", membership.ErrReplaced, attempt) },
	})
	if err != nil {
		t.cancel(err)
		return nil, fmt.Errorf("taking the connections of other ranks: %w", err)
	}
	t.work.Go(func() { t.watch(replaced) })
	return t, nil
}

// complete checks the configuration and sets defaults.
func (c *TCPConfig) complete() error {
	switch {
	case c.Size < 1:
		return fmt.Errorf("a group of %d ranks: at least one is needed", c.Size)
	case len(c.Ranks) == 0:
		return errors.New("the process hosts no rank of the group")
	case c.Join == nil:
		return errors.New("mesh: TCPConfig.Join is not set")
	case c.MaxFrame < 0 || int64(c.MaxFrame) > math.MaxUint32:
		return fmt.Errorf("a largest message of %d bytes: it must be positive and fit in 32 bits", c.MaxFrame)
	}
	seen := make(map[int]bool)
	for _, r := range c.Ranks {
		if r < 0 || r >= c.Size {
			return fmt.Errorf("the process hosts rank %d, but the group has ranks 0 to %d", r, c.Size-1)
		}
		if seen[r] {
			return fmt.Errorf("the process hosts rank %d twice", r)
		}
		seen[r] = true
	}
	if c.Port == nil {
		return errors.New("mesh: TCPConfig.Port is not set")
	}
	c.Ranks = slices.Clone(c.Ranks)
	if c.ConnectTimeout <= 0 {
		c.ConnectTimeout = DefaultConnectTimeout
	}
	if c.MaxFrame == 0 {
		c.MaxFrame = DefaultMaxFrame
	}
	if c.ReadBuffer == 0 {
		c.ReadBuffer = DefaultReadBuffer
	}
	c.ReadBuffer = max(c.ReadBuffer, minReadBuffer)
	if c.KeepAlive == 0 {
		c.KeepAlive = DefaultKeepAlive
	}
	return nil
}

// Node returns the node of a rank, or nil if this process does not host the rank.
func (t *TCP) Node(rank int) Node {
	if rank < 0 || rank >= t.size || t.nodes[rank] == nil {
		return nil
	}
	return t.nodes[rank]
}

// oversubscribed reports whether the number of processes in peers that run on the host of the
// given address exceeds the number of cores of this host.
func oversubscribed(address string, peers []membership.Peer) bool {
	here, _, _ := net.SplitHostPort(address)
	count := 0
	for _, p := range peers {
		if host, _, err := net.SplitHostPort(p.Address); err == nil && host == here {
			count++
		}
	}
	return count > runtime.NumCPU()
}

// Address returns the address that other ranks dial.
func (t *TCP) Address() string { return t.cfg.Port.Address() }

// States returns the states of the ranks of this process, in rank order.
func (t *TCP) States() []membership.State { return t.states() }

// Leave is called when a rank of this process has finished but the process continues. Other
// ranks still receive the messages that the rank has sent. Ranks that wait for further messages
// of the rank get an error that wraps membership.ErrLeft.
func (t *TCP) Leave(rank int) { t.leave(rank) }

// watch ends the connections when the group fails in any process, or when a later attempt
// replaces this attempt.
func (t *TCP) watch(replaced <-chan error) {
	select {
	case cause := <-replaced:
		t.interrupt(t.group.Fail(cause))
	case <-t.group.Failed():
		t.interrupt(t.group.Err())
	case <-t.ctx.Done():
	}
}

// interruptConns ends all connections and prevents new ones.
func (t *TCP) interruptConns(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = cause
	t.cancel(cause)
	for _, s := range t.slots {
		if s.conn != nil {
			s.conn.interrupt(cause)
		}
	}
}

// Close first waits, for at most the connection timeout, until posted messages are written to
// the sockets. Then it closes all connections, and returns when all goroutines of the mesh have
// ended. Ranks that wait for further messages of this process get an error that wraps
// membership.ErrLeft. No other call may be running. Further calls of Close do nothing.
func (t *TCP) Close() error {
	closed := fmt.Errorf("%w, and its ranks have %w", ErrClosed, membership.ErrLeft)
	limit := time.AfterFunc(t.cfg.ConnectTimeout, func() { t.interrupt(closed) })
	t.mu.Lock()
	var conns []*tcpConn
	for _, s := range t.slots {
		if s.conn != nil {
			conns = append(conns, s.conn)
		}
	}
	t.mu.Unlock()
	for _, c := range conns {
		c.flush()
	}
	limit.Stop()
	t.interrupt(closed)
	t.endpoint.Close()
	t.work.Wait()
	return nil
}
