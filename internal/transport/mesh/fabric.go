package mesh

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// MaxChannels is the maximum number of channels between two ranks: 0 ≤ Route.Channel <
// MaxChannels.
const MaxChannels = 1024

// fabric is shared by the ranks of one process. It has the routes between these ranks, which
// are pipes in memory. When the group ends, fabric makes all waiting calls return.
type fabric struct {
	size  int
	group Group
	nodes []*node // rank -> its node; nil for ranks of other processes
	// remote makes the connections of routes, all of which lead to ranks of other processes. It
	// is nil in a group of one process.
	remote func(ctx context.Context, n *node, routes []Route, conns []Conn) error
	// interruptRemote ends the connections to other processes with the group's cause. It is
	// called only once.
	interruptRemote func(cause error)
	remoteEnd       sync.Once

	pool   pool
	ledger *ledger // detects disagreements between ranks of this process; nil if the process hosts only one rank

	mu    sync.Mutex
	links map[linkKey]*link
	left  map[int]error // rank of this process that has left -> the error that other ranks get
	cause error         // the group's cause; set when the group has ended
}

// linkKey identifies a connection by its lower rank, its higher rank, and its channel.
type linkKey struct{ lo, hi, channel int32 }

func keyOf(rank int, r Route) linkKey {
	return linkKey{int32(min(rank, r.Peer)), int32(max(rank, r.Peer)), int32(r.Channel)}
}

// link is a route between two ranks of this process.
type link struct{ up, down pipe } // up carries messages from the lower rank to the higher rank

func (l *link) each(f func(*pipe)) {
	f(&l.up)
	f(&l.down)
}

func newFabric(size int, group Group, hosted []int) *fabric {
	f := &fabric{size: size, group: group, nodes: make([]*node, size),
		links: make(map[linkKey]*link), left: make(map[int]error)}
	if len(hosted) > 1 {
		f.ledger = new(ledger)
	}
	for _, r := range hosted {
		f.nodes[r] = &node{fabric: f, rank: r, conns: make(map[Route]Conn)}
	}
	return f
}

// link returns the link for route r of the given rank. Both ranks of the route must be in this
// process. If there is no link, it makes one.
func (f *fabric) link(rank int, r Route) (*link, error) {
	key := keyOf(rank, r)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cause != nil {
		return nil, f.cause
	}
	l := f.links[key]
	if l == nil {
		l = new(link)
		l.each(func(p *pipe) {
			p.init(&f.pool)
			for _, end := range []int{rank, r.Peer} {
				if err := f.left[end]; err != nil {
					p.leave(err)
				}
			}
		})
		f.links[key] = l
	}
	return l, nil
}

// interrupt ends all routes with the group's cause. When it returns, all routes have ended,
// even if a concurrent call of interrupt has ended them.
func (f *fabric) interrupt(cause error) {
	f.mu.Lock()
	if f.cause == nil {
		f.cause = cause
		for _, l := range f.links {
			l.each(func(p *pipe) { p.fail(cause) })
		}
	}
	cause = f.cause
	f.mu.Unlock()
	if f.interruptRemote != nil {
		f.remoteEnd.Do(func() { f.interruptRemote(cause) })
	}
}

// leave ends the routes of a rank of this process that has finished. Other ranks that wait for
// further messages of that rank get an error.
func (f *fabric) leave(rank int) {
	err := &membership.PeerError{Rank: rank, Reporter: rank, Reason: "left the group", Kind: membership.ErrLeft}
	f.nodes[rank].left.Store(true)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.left[rank] = err
	for key, l := range f.links {
		if int(key.lo) == rank || int(key.hi) == rank {
			l.each(func(p *pipe) { p.leave(err) })
		}
	}
}

// states returns the states of the ranks of this process, in rank order.
func (f *fabric) states() []membership.State {
	var all []membership.State
	for _, n := range f.nodes {
		if n == nil {
			continue
		}
		now := n.tracker.state(n.rank)
		now.Left = n.left.Load()
		all = append(all, now)
	}
	return all
}

// node is a rank of this process.
type node struct {
	fabric  *fabric
	rank    int
	tracker opTracker
	left    atomic.Bool // the rank begins no more operations

	mu    sync.RWMutex
	conns map[Route]Conn
}

func (n *node) Rank() int               { return n.rank }
func (n *node) Size() int               { return n.fabric.size }
func (n *node) Failed() <-chan struct{} { return n.fabric.group.Failed() }
func (n *node) Err() error              { return n.fabric.group.Err() }

func (n *node) Fail(err error) error {
	cause := n.fabric.group.Fail(n.fabric.completed(err))
	n.fabric.interrupt(cause)
	return cause
}

// completed returns err. If err is a mismatch error about a message of another operation, and
// the sender of the message is in this process, completed adds the sender's operation. If the
// sender is in another process, the membership adds it.
func (f *fabric) completed(err error) error {
	m, ok := err.(*membership.MismatchError)
	if !ok || m.OtherDoing != "" || m.Other < 0 || m.Other >= f.size || f.nodes[m.Other] == nil {
		return err
	}
	full := *m
	full.OtherDoing = "no operation"
	now := f.nodes[m.Other].tracker.state(m.Other)
	if now.Op != nil {
		full.OtherDoing = membership.Describe(now.Seq, now.Op)
	}
	for _, b := range now.Begun {
		if b.Op != nil && b.Seq == m.OtherSeq() { // Begun is searched, as the sender may have begun a later operation meanwhile
			full.OtherDoing = membership.Describe(b.Seq, b.Op)
		}
	}
	return &full
}

func (n *node) Begin(seq uint64, op *Operation) {
	n.tracker.begin(seq, op)
	if n.fabric.ledger == nil {
		return
	}
	if err := n.fabric.ledger.enter(n.rank, seq, op); err != nil {
		n.Fail(err)
	}
}

func (n *node) End() { n.tracker.end() }

func (n *node) Open(ctx context.Context, routes []Route) ([]Conn, error) {
	if err := n.Err(); err != nil {
		return nil, err
	}
	for _, r := range routes {
		if err := n.checkRoute(r); err != nil {
			return nil, err
		}
	}
	conns := make([]Conn, len(routes))
	missing := 0
	n.mu.RLock()
	for i, r := range routes {
		if conns[i] = n.conns[r]; conns[i] == nil {
			missing++
		}
	}
	n.mu.RUnlock()
	if missing == 0 {
		return conns, nil
	}
	if err := n.openMissing(ctx, routes, conns); err != nil {
		return nil, err
	}
	return conns, nil
}

func (n *node) checkRoute(r Route) error {
	switch {
	case r.Peer < 0 || r.Peer >= n.fabric.size:
		return fmt.Errorf("rank %d opens a route to rank %d, but the group has ranks 0 to %d", n.rank, r.Peer, n.fabric.size-1)
	case r.Peer == n.rank:
		return fmt.Errorf("rank %d opens a route to itself", n.rank)
	case r.Channel < 0 || r.Channel >= MaxChannels:
		return fmt.Errorf("rank %d opens channel %d to rank %d, but channels go from 0 to %d", n.rank, r.Channel, r.Peer, MaxChannels-1)
	}
	return nil
}

// openMissing opens the connections that are nil in conns, and stores all connections in
// n.conns.
func (n *node) openMissing(ctx context.Context, routes []Route, conns []Conn) error {
	var remoteRoutes []Route
	var indices []int
	for i, r := range routes {
		switch {
		case conns[i] != nil:
		case n.fabric.nodes[r.Peer] == nil:
			remoteRoutes, indices = append(remoteRoutes, r), append(indices, i)
		default:
			l, err := n.fabric.link(n.rank, r)
			if err != nil {
				return err
			}
			conns[i] = newLocalConn(n, r, l)
		}
	}
	if len(remoteRoutes) > 0 {
		made := make([]Conn, len(remoteRoutes))
		if err := n.fabric.remote(ctx, n, remoteRoutes, made); err != nil {
			return err
		}
		for k, i := range indices {
			conns[i] = made[k]
		}
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, r := range routes {
		if c := n.conns[r]; c != nil {
			conns[i] = c
		} else {
			n.conns[r] = conns[i]
		}
	}
	return nil
}

// checkMessage returns an error if the caller of Send or Post misuses the mesh: if the payload
// does not match its header, or is longer than limit.
func checkMessage(h *Header, payload []byte, limit int) error {
	switch {
	case uint64(h.Length) != uint64(len(payload)):
		return fmt.Errorf("mesh: the header announces %d bytes, the payload has %d", h.Length, len(payload))
	case len(payload) > limit:
		return fmt.Errorf("mesh: a message of %d bytes is above the limit of %d: send it in segments", len(payload), limit)
	case h.Absent && len(payload) != 0:
		return fmt.Errorf("mesh: an absent value comes with %d bytes", len(payload))
	}
	return nil
}
