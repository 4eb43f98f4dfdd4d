package mesh

import (
	"math"
	"sync"

	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// Borrower is implemented by connections that can give the receiver access to a message in its
// sender's memory, so that the message can be reduced without a copy.
type Borrower interface {
	// Borrow returns the next n bytes of the message, which Read would copy, without copying
	// them. The bytes must not be modified. They may be used until Return, even if the group
	// ends meanwhile. The sender may have to wait for Return.
	Borrow(n int) ([]byte, error)
	// Return ends the use of the bytes that the last call of Borrow returned. It must be called
	// after every call of Borrow that returned no error, before any other call on the receiving
	// side.
	Return()
}

// Local is a mesh whose ranks are all in this process.
type Local struct {
	fabric *fabric
}

// NewLocal returns a mesh of p ≥ 1 ranks that are goroutines of this process. A route takes no
// memory before it is opened, and has no goroutines.
func NewLocal(p int) *Local {
	ranks := make([]int, p)
	for r := range ranks {
		ranks[r] = r
	}
	return &Local{newFabric(p, &localGroup{failed: make(chan struct{})}, ranks)}
}

// Node returns the node of a rank, 0 ≤ rank < p.
func (l *Local) Node(rank int) Node { return l.fabric.nodes[rank] }

// States returns the states of all ranks, in rank order.
func (l *Local) States() []membership.State { return l.fabric.states() }

// Leave is called when a rank has finished. Other ranks still receive the messages that the
// rank has sent. After these messages, and when they send to the rank, they get an error that
// wraps membership.ErrLeft.
func (l *Local) Leave(rank int) { l.fabric.leave(rank) }

// localGroup is the Group of a single process.
type localGroup struct {
	once   sync.Once
	cause  error
	failed chan struct{}
}

func (g *localGroup) Fail(err error) error {
	g.once.Do(func() {
		g.cause = err
		close(g.failed)
	})
	return g.cause
}

func (g *localGroup) Failed() <-chan struct{} { return g.failed }

func (g *localGroup) Err() error {
	select {
	case <-g.failed:
		return g.cause
	default:
		return nil
	}
}

// localConn is one rank's end of a link.
type localConn struct {
	node    *node
	out, in *pipe
	lent    int
}

func newLocalConn(n *node, r Route, l *link) *localConn {
	if n.rank < r.Peer {
		return &localConn{node: n, out: &l.up, in: &l.down}
	}
	return &localConn{node: n, out: &l.down, in: &l.up}
}

func (c *localConn) Send(h *Header, payload []byte) error {
	if err := checkMessage(h, payload, math.MaxInt); err != nil {
		return err
	}
	if err := c.out.send(h, payload); err != nil {
		return err
	}
	c.node.tracker.payloadBytes.Add(uint64(len(payload)))
	return nil
}

func (c *localConn) Post(h *Header, payload []byte) error {
	if err := checkMessage(h, payload, math.MaxInt); err != nil {
		return err
	}
	if err := c.out.post(h, payload); err != nil {
		return err
	}
	c.node.tracker.payloadBytes.Add(uint64(len(payload)))
	return nil
}

func (c *localConn) Next(h *Header) error { return c.in.next(h) }

func (c *localConn) Read(dst []byte) error {
	if err := c.in.read(dst); err != nil {
		return err
	}
	c.node.tracker.payloadBytes.Add(uint64(len(dst)))
	return nil
}

func (c *localConn) Borrow(n int) ([]byte, error) {
	b, err := c.in.lend(n)
	if err == nil {
		c.lent = n
	}
	return b, err
}

func (c *localConn) Return() {
	if c.lent == 0 {
		return
	}
	c.node.tracker.payloadBytes.Add(uint64(c.lent))
	c.in.giveBack(c.lent)
	c.lent = 0
}
