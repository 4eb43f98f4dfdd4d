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

// JoinFunc enters the group, given the address at which this process accepts
// connections of other ranks and a way to ask where its own ranks stand. It returns
// the processes of the group. Who joins also leaves: closing the mesh does not.
type JoinFunc func(ctx context.Context, address string, states func() []membership.State) (Group, []membership.Peer, error)

// TCPConfig says how a process takes part in a mesh.
type TCPConfig struct {
	Size    int    // ranks of the group
	Ranks   []int  // those that this process hosts
	Group   string // name of the group, equal everywhere
	Attempt uint32 // number of the attempt, equal everywhere; others are fenced off

	// Port is where this process is reached, and how it reaches others. It stays its
	// owner's, who closes it after the mesh. Where it listens on all interfaces it is for
	// Join to find out which address others see.
	Port *peerlink.Port

	Join JoinFunc // required

	// ConnectTimeout bounds the time that Open takes; 0 stands for 30 s.
	ConnectTimeout time.Duration
	// KeepAlive is how long a connection is idle before the system probes it, and
	// what three lost probes of a third of it each may take; 0 stands for 15 s,
	// negative for never. It finds dead machines where the membership's heartbeats
	// do not.
	KeepAlive time.Duration
	// UserTimeout, on Linux, is how long sent bytes may remain unacknowledged. It
	// also ends connections to ranks that receive nothing for so long, however alive
	// they are, so it must be longer than any operation waits for a straggler; 0
	// leaves it to the system.
	UserTimeout time.Duration

	// NoChecksum leaves away the checksums of payloads, which finds what TCP's own 16 bits
	// let pass. All processes of a group must say the same. Under TLS, which
	// authenticates what it carries, there is none in any case.
	NoChecksum bool

	MaxFrame   int // longest payload in bytes; 0 stands for 64 MiB
	ReadBuffer int // bytes of each connection's read buffer; 0 stands for 64 KiB, which reads small messages whole

	wire func(ctx context.Context, conn net.Conn, from int, r Route) net.Conn // of tests: what to write and read in the place of a connection; see FaultPlan.OnWire
}

// TCP connects the ranks of this process with each other in memory, and with those
// of other processes by one TCP connection per pair of ranks and channel.
type TCP struct {
	*fabric
	cfg     TCPConfig
	fence   fence
	door    *peerlink.Opened
	peers   []string // addresses, by rank; "" where unknown
	crowded bool     // more processes of the group than cores are on this host

	ctx    context.Context // ends with the group, or when the mesh is closed
	cancel context.CancelCauseFunc
	work   sync.WaitGroup
	dials  chan struct{} // room for those under way

	mu    sync.Mutex
	slots map[linkKey]*slot
	ended error // nothing is connected any more
}

// slot is the place of a connection.
type slot struct {
	ready   chan struct{} // closed when conn is set
	conn    *tcpConn
	try     uint32 // of the lower rank, that made it
	dialing bool   // this side makes it
	claimed bool   // it was given to its rank
	err     error  // of the latest attempt to make it
}

// JoinTCP joins the group, and takes connections from then on: those that others make
// before wait at the port. ctx bounds joining alone. The mesh must be closed in the end.
// A later attempt of the group at the same port ends this one, for a cause that wraps
// membership.ErrReplaced.
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
	t.crowded = crowded(t.Address(), peers)
	replaced := make(chan error, 1)
	t.door, err = cfg.Port.Open(peerlink.Door{
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

// Node is the access of a rank that this process hosts, or nil.
func (t *TCP) Node(rank int) Node {
	if rank < 0 || rank >= t.size || t.nodes[rank] == nil {
		return nil
	}
	return t.nodes[rank]
}

// crowded says whether more processes of a group are on the host of an address than it
// has cores.
func crowded(address string, peers []membership.Peer) bool {
	here, _, _ := net.SplitHostPort(address)
	count := 0
	for _, p := range peers {
		if host, _, err := net.SplitHostPort(p.Address); err == nil && host == here {
			count++
		}
	}
	return count > runtime.NumCPU()
}

// Address is where other ranks connect to.
func (t *TCP) Address() string { return t.cfg.Port.Address() }

// States are the standings of the ranks of this process, in rank order.
func (t *TCP) States() []membership.State { return t.states() }

// Leave says that a rank of this process is done, though the process is not. Others
// still receive what it has sent; those that wait for more get an error that wraps
// membership.ErrLeft.
func (t *TCP) Leave(rank int) { t.leave(rank) }

// watch ends the connections when somebody anywhere ends the group.
func (t *TCP) watch(replaced <-chan error) {
	select {
	case cause := <-replaced:
		t.interrupt(t.group.Fail(cause))
	case <-t.group.Failed():
		t.interrupt(t.group.Err())
	case <-t.ctx.Done():
	}
}

// interruptConns ends all connections, and the making of new ones.
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

// Close sends what was posted, waiting for it no longer than the connection
// timeout, closes all connections, and returns when no goroutine is left. Ranks
// that wait for more from this process get an error that wraps membership.ErrLeft.
// No other call may be under way. Closing again does nothing.
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
	t.door.Close()
	t.work.Wait()
	return nil
}
