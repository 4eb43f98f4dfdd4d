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

// ErrClosed is returned by the calls on a mesh that was closed.
var ErrClosed = errors.New("the mesh is closed")

// Defaults of TCPConfig.
const (
	DefaultConnectTimeout = 30 * time.Second
	DefaultMaxFrame       = 64 << 20
	DefaultReadBuffer     = 64 << 10
	DefaultKeepAlive      = 15 * time.Second
	minReadBuffer         = 1 << 10
)

// JoinFunc joins the group. It gets the address at which this process accepts connections of
// other ranks, and a function that returns the states of its own ranks. It returns the
// processes of the group. Its owner also leaves the group: closing the mesh does not.
type JoinFunc func(ctx context.Context, address string, states func() []membership.State) (Group, []membership.Peer, error)

// TCPConfig is the configuration of a process's part in a mesh.
type TCPConfig struct {
	Size    int    // ranks of the group
	Ranks   []int  // those that this process hosts
	Group   string // name of the group, equal everywhere
	Attempt uint32 // number of the attempt, equal everywhere; other attempts are refused

	// Port accepts and makes the connections of this process. Its owner closes it after the
	// mesh. If it listens on all interfaces, Join must find out which address others see.
	Port *peerlink.Port

	Join JoinFunc // required

	// ConnectTimeout bounds the time that Open takes; 0 stands for 30 s.
	ConnectTimeout time.Duration
	// KeepAlive is how long a connection is idle before the system probes it; after that it has
	// the same time again for three probes. 0 stands for 15 s, negative for never. It finds
	// dead machines where the membership's heartbeats do not.
	KeepAlive time.Duration
	// UserTimeout, on Linux, is how long sent bytes may remain unacknowledged. It also ends
	// connections to ranks that are alive but receive nothing for that long, so it must be
	// longer than any operation waits for a straggler; 0 leaves it to the system.
	UserTimeout time.Duration

	// NoChecksum turns off the checksums of payloads, which find damage that TCP's own 16 bits
	// miss. All processes of a group must have the same setting. Under TLS, which authenticates
	// the data, there are none in any case.
	NoChecksum bool

	MaxFrame   int // longest payload in bytes; 0 stands for 64 MiB
	ReadBuffer int // bytes of each connection's read buffer; 0 stands for 64 KiB, which reads small messages whole

	wire func(ctx context.Context, conn net.Conn, from int, r Route) net.Conn // for tests: returns the wrapper of a connection; see FaultPlan.OnWire
}

// TCP is a mesh over TCP: ranks of this process are connected in memory, ranks of different
// processes by one TCP connection per pair of ranks and channel.
type TCP struct {
	*fabric
	cfg            TCPConfig
	fence          fence
	endpoint       *peerlink.Opened
	peers          []string // addresses, by rank; "" where unknown
	oversubscribed bool     // this host has more processes of the group than cores

	ctx    context.Context // ends with the group, or when the mesh is closed
	cancel context.CancelCauseFunc
	work   sync.WaitGroup
	dials  chan struct{} // bounds the dials under way

	mu    sync.Mutex
	slots map[linkKey]*slot
	ended error // set when no connections are made any more
}

// slot holds a connection until its rank claims it.
type slot struct {
	ready   chan struct{} // closed when conn is set
	conn    *tcpConn
	try     uint32 // try of the lower rank that made it
	dialing bool   // this side is making it
	claimed bool   // it was given to its rank
	err     error  // of the latest attempt to make it
}

// JoinTCP joins the group, and then accepts connections; earlier ones wait at the port. ctx
// bounds only the joining. The mesh must be closed in the end. A later attempt of the group at
// the same port ends this one, for a cause that wraps membership.ErrReplaced.
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

// complete checks a configuration and fills in its defaults.
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

// Node returns the node of a rank, nil if this process does not host it.
func (t *TCP) Node(rank int) Node {
	if rank < 0 || rank >= t.size || t.nodes[rank] == nil {
		return nil
	}
	return t.nodes[rank]
}

// oversubscribed reports whether the host of an address has more processes of a group than cores.
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

// Address returns the address to which other ranks connect.
func (t *TCP) Address() string { return t.cfg.Port.Address() }

// States returns the states of the ranks of this process, in rank order.
func (t *TCP) States() []membership.State { return t.states() }

// Leave says that a rank of this process has finished, though the process goes on. Others still
// receive what it has sent; those that wait for more get an error that wraps
// membership.ErrLeft.
func (t *TCP) Leave(rank int) { t.leave(rank) }

// watch ends the connections when the group ends anywhere.
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

// Close sends posted messages, for the connection timeout at most, closes all connections, and
// returns when no goroutine is left. Ranks that wait for more from this process get an error
// that wraps membership.ErrLeft. No other call may be under way. Closing again does nothing.
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
