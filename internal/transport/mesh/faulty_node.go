package mesh

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// NewFaulty returns a node that inserts the faults of the plan into the messages that it sends.
// To use the plan in the whole group, wrap all nodes with the same plan. In all other respects
// the node behaves like inner.
//
// Messages are changed before the mesh computes checksums, so the mesh does not detect a
// Corrupt payload. A Cut ends the group like the loss of a connection: with a
// membership.PeerError in which the sender reports the receiver. A Delay makes the sending
// goroutine wait.
func NewFaulty(inner Node, plan FaultPlan) Node {
	return &faultyNode{Node: inner, plan: plan, conns: make(map[Route]Conn)}
}

type faultyNode struct {
	Node
	plan    FaultPlan
	tracker opTracker // for the texts of errors

	mu    sync.Mutex
	conns map[Route]Conn // open connections; each of them numbers its messages
}

func (n *faultyNode) Begin(seq uint64, op *Operation) {
	n.tracker.begin(seq, op)
	n.Node.Begin(seq, op)
}

func (n *faultyNode) End() {
	n.tracker.end()
	n.Node.End()
}

func (n *faultyNode) Open(ctx context.Context, routes []Route) ([]Conn, error) {
	if err := n.plan.Check(); err != nil {
		return nil, err
	}
	inner, err := n.Node.Open(ctx, routes)
	if err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	conns := make([]Conn, len(routes))
	for i, r := range routes {
		if n.conns[r] == nil {
			n.conns[r] = n.wrap(inner[i], r)
		}
		conns[i] = n.conns[r]
	}
	return conns, nil
}

func (n *faultyNode) wrap(inner Conn, r Route) Conn {
	c := &faultyConn{Conn: inner, node: n, peer: r.Peer, faults: n.plan.of(n.Rank(), r.Peer, r.Channel)}
	if lender, ok := inner.(Borrower); ok {
		return &faultyLender{c, lender}
	}
	return c
}

// faultyConn is a connection that inserts the faults of a plan into the messages that it sends.
// It does not change received messages.
type faultyConn struct {
	Conn
	node   *faultyNode
	peer   int
	faults *faults
}

// faultyLender is a faultyConn that also implements Borrower, so that tests of executors use
// borrowed messages too.
type faultyLender struct {
	*faultyConn
	Borrower
}

func (c *faultyConn) Send(h *Header, payload []byte) error { return c.pass(h, payload, c.Conn.Send) }
func (c *faultyConn) Post(h *Header, payload []byte) error { return c.pass(h, payload, c.Conn.Post) }

// pass sends a message according to the plan.
func (c *faultyConn) pass(h *Header, payload []byte, send func(*Header, []byte) error) error {
	if checkMessage(h, payload, math.MaxInt) != nil {
		return send(h, payload) // misuse: the inner connection returns an error, and the message gets no number
	}
	f := c.faults.next()
	if f.delay > 0 {
		if err := c.hold(f.delay); err != nil {
			return err
		}
	}
	changed := *h
	switch {
	case f.kind == Drop:
		return nil
	case f.kind == Cut:
		return c.node.Fail(&membership.PeerError{
			Rank: c.peer, Reporter: c.node.Rank(), During: c.node.tracker.during(),
			Reason: fmt.Sprintf("was cut off at message %d (fault plan: %s)", f.number, f.rule),
		})
	case f.kind == Truncate:
		changed.Length = uint32(f.shorter(len(payload)))
		payload = payload[:changed.Length]
	case f.kind == Corrupt && f.header:
		f.flipHeader(&changed)
	case f.kind == Corrupt:
		payload = f.flip(payload)
	}
	if err := send(&changed, payload); err != nil || f.kind != Duplicate {
		return err
	}
	// The duplicate is posted, as Send might wait for ever if the duplicate is never received.
	return c.Conn.Post(&changed, payload)
}

// hold waits for d. If the group ends meanwhile, it returns the group's cause.
func (c *faultyConn) hold(d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-c.node.Failed():
		return c.node.Err()
	}
}

// flipHeader flips a drawn bit of a header field that the executor sets; the length is not
// changed, as the mesh checks it.
func (f *fault) flipHeader(h *Header) {
	bit := f.draw % (64 + 64 + 16 + 16 + 32 + 64)
	for _, field := range [...]struct {
		bits uint64
		flip func(mask uint64)
	}{
		{64, func(m uint64) { h.Seq ^= m }},
		{64, func(m uint64) { h.Hash ^= m }},
		{16, func(m uint64) { h.Lane ^= uint16(m) }},
		{16, func(m uint64) { h.Step ^= uint16(m) }},
		{32, func(m uint64) { h.Segment ^= uint32(m) }},
		{64, func(m uint64) { h.Offset ^= m }},
	} {
		if bit < field.bits {
			field.flip(1 << bit)
			return
		}
		bit -= field.bits
	}
}
