package mesh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// The lower of two ranks dials and sends a hello, and the higher rank accepts and answers. The
// higher rank accepts even before it opens the route itself, so that ranks do not wait for each
// other in a cycle. If the answer is lost, the lower rank connects again. The new connection
// replaces the earlier connection, unless the higher rank has claimed the earlier one already.

// open makes the connections for routes from n to ranks of other processes, in parallel, and
// stores them in conns.
func (t *TCP) open(ctx context.Context, n *node, routes []Route, conns []Conn) error {
	ctx, cancel := context.WithTimeout(ctx, t.cfg.ConnectTimeout)
	defer cancel()
	slots := make([]*slot, len(routes))
	for i, r := range routes {
		s, err := t.slotOf(keyOf(n.rank, r))
		if err != nil {
			return err
		}
		slots[i] = s
		if n.rank < r.Peer && t.mayDial(s) {
			// Other callers of open may use the same dial, so the end of ctx ends only the wait
			// of this call, and not the dial.
			deadline, _ := ctx.Deadline()
			t.work.Go(func() { t.dial(n, r, s, deadline) })
		}
	}
	for i, s := range slots {
		select {
		case <-s.ready:
		case <-t.ctx.Done():
			return context.Cause(t.ctx)
		case <-ctx.Done():
			return n.Fail(t.notOpened(ctx, n, routes[i], s))
		}
		c, err := t.claim(s)
		if err != nil {
			return err
		}
		conns[i] = c
	}
	return nil
}

// slotOf returns the slot of the connection with the given key. If there is no slot, it makes
// one.
func (t *TCP) slotOf(key linkKey) (*slot, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil {
		return nil, t.ended
	}
	s := t.slots[key]
	if s == nil {
		s = &slot{ready: make(chan struct{})}
		t.slots[key] = s
	}
	return s, nil
}

// mayDial reports whether the caller has to dial. For each slot, it returns true to only one
// caller.
func (t *TCP) mayDial(s *slot) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !s.dialing && s.conn == nil && t.ended == nil
	s.dialing = s.dialing || first
	return first
}

// claim returns the connection in s, for the rank that uses it. After claim, no other
// connection may replace the connection.
func (t *TCP) claim(s *slot) (*tcpConn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil {
		return nil, t.ended
	}
	s.claimed = true
	return s.conn, nil
}

// notOpened returns an error that says that a route was not opened in time, why, and what the
// user should check.
func (t *TCP) notOpened(ctx context.Context, n *node, r Route, s *slot) error {
	if err := context.Cause(ctx); !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("rank %d gave up connecting to rank %d (%s): %w", n.rank, r.Peer, t.peers[r.Peer], err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	reason, last := "", error(nil)
	if n.rank < r.Peer {
		reason = fmt.Sprintf("did not answer on channel %d within %v: check that its process runs, and that its address is right and can be reached from here", r.Channel, t.cfg.ConnectTimeout)
		last = s.err
	} else {
		reason = fmt.Sprintf("did not connect to rank %d on channel %d within %v: check that its process runs, that it is in the same operation, and that it can reach %s", n.rank, r.Channel, t.cfg.ConnectTimeout, t.Address())
		last = t.cfg.Port.AcceptError()
	}
	if last != nil {
		reason += fmt.Sprintf(" (last error: %v)", last)
	}
	return t.lost(n, r.Peer, reason, membership.ErrTimeout)
}

// lost returns the error by which n reports the loss of rank peer.
func (t *TCP) lost(n *node, peer int, reason string, kind error) error {
	return &membership.PeerError{
		Rank: peer, Address: t.peers[peer], Reporter: n.rank,
		During: n.tracker.during(), Reason: reason, Kind: kind,
	}
}

// dial connects to a higher rank. It retries until the deadline of the call of open. If an
// error occurs that retries cannot avoid, the group fails.
func (t *TCP) dial(n *node, r Route, s *slot, deadline time.Time) {
	ctx, cancel := context.WithDeadline(t.ctx, deadline)
	defer cancel()
	select {
	case t.dials <- struct{}{}:
		defer func() { <-t.dials }()
	case <-ctx.Done():
	}
	try := uint32(0)
	c, err := peerlink.Retry(ctx, func(ctx context.Context) (*tcpConn, error) {
		try++
		c, err := t.dialOnce(ctx, n, r, try)
		if err != nil {
			t.mu.Lock()
			s.err = err
			t.mu.Unlock()
		}
		return c, err
	})
	switch {
	case err == nil:
		t.place(s, c, try)
	case peerlink.IsFinal(err) && ctx.Err() == nil:
		n.Fail(t.lost(n, r.Peer, fmt.Sprintf("refuses channel %d of rank %d: %v", r.Channel, n.rank, err), nil))
	}
}

// dialOnce makes one attempt to connect to a higher rank.
func (t *TCP) dialOnce(ctx context.Context, n *node, r Route, try uint32) (*tcpConn, error) {
	address := t.peers[r.Peer]
	if address == "" {
		return nil, peerlink.Final(errors.New("its address is not known: the group's table does not list it"))
	}
	conn, err := t.cfg.Port.Dial(ctx, address, peerlink.Hello{
		Kind: peerlink.Lane, Scope: t.cfg.Group, Epoch: t.cfg.Attempt, Sums: t.fence.summed,
		From: uint32(n.rank), To: uint32(r.Peer), Size: uint32(t.size), Channel: uint32(r.Channel), Try: try,
	})
	if err != nil && conn != nil { // the peer may already use the connection, so the group must get the cause before the connection ends
		err = n.Fail(t.lost(n, r.Peer, fmt.Sprintf("took channel %d of rank %d, but its answer was damaged: %v", r.Channel, n.rank, err), membership.ErrDamaged))
		_ = conn.Close()
		return nil, err
	}
	if err != nil {
		return nil, err
	}
	return t.connected(conn, n, r)
}

// connected sets the socket options of a connection after hello and answer, and returns its
// tcpConn.
func (t *TCP) connected(conn net.Conn, n *node, r Route) (*tcpConn, error) {
	sock := peerlink.Socket(conn)
	if err := t.cfg.adjust(sock); err != nil {
		_ = sock.Close()
		return nil, err
	}
	return newTCPConn(t, n, r, sock, t.wired(conn, n, r)), nil
}

// place stores c in slot s, where the rank that uses it waits for it. c replaces a connection
// of an earlier try, if that has not been claimed. place closes c if a connection in the slot
// has been claimed or is of a later try, or if the mesh has ended.
func (t *TCP) place(s *slot, c *tcpConn, try uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.ended != nil:
		c.interrupt(t.ended)
		return
	case s.claimed, s.conn != nil && try < s.try:
		c.interrupt(ErrClosed)
		return
	case s.conn != nil:
		s.conn.interrupt(ErrClosed)
	default:
		close(s.ready)
	}
	s.conn, s.try = c, try
}

// answer accepts the connection of a lower rank, or returns the error by which it is refused.
func (t *TCP) answer(caller *peerlink.Caller) error {
	h := &caller.Hello
	if err := t.checkHello(h); err != nil {
		return err
	}
	n := t.nodes[h.To]
	r := Route{Peer: int(h.From), Channel: int(h.Channel)}
	s, err := t.slotOf(keyOf(n.rank, r))
	if err != nil {
		return peerlink.RefuseLater("%v", err) // refused later, as the dialer must get the cause from its own group
	}
	if err := caller.Welcome(); err != nil {
		return err
	}
	c, err := t.connected(caller.Conn, n, r)
	if err != nil {
		return err
	}
	t.place(s, c, h.Try)
	return nil
}

// checksumming returns a text that says whether a rank sends checksums.
func checksumming(summed bool) string {
	if summed {
		return "sends data with checksums"
	}
	return "sends data without checksums"
}

// checkHello returns an error if h is not a valid hello to this process.
func (t *TCP) checkHello(h *peerlink.Hello) error {
	size := uint32(t.size)
	switch {
	case h.Size != size:
		return peerlink.Refuse("rank %d was started for %d ranks, this process for %d", h.From, h.Size, size)
	case h.Sums != t.fence.summed:
		return peerlink.Refuse("rank %d %s and rank %d %s: say the same of checksums (NoChecksum) in all processes",
			h.From, checksumming(h.Sums), h.To, checksumming(t.fence.summed))
	case h.From >= size || h.To >= size || h.From >= h.To || h.Channel >= MaxChannels:
		return peerlink.Refuse("a hello from rank %d to rank %d for channel %d, in a group of %d ranks", h.From, h.To, h.Channel, size)
	case t.nodes[h.To] == nil:
		return peerlink.Refuse("a hello for rank %d, but %s hosts ranks %v: check the addresses", h.To, t.Address(), t.cfg.Ranks)
	case t.nodes[h.From] != nil:
		return peerlink.Refuse("a hello from rank %d, which the process at %s hosts itself: check the addresses", h.From, t.Address())
	}
	key := linkKey{int32(h.From), int32(h.To), int32(h.Channel)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.slots[key]; s != nil && s.claimed {
		return peerlink.Refuse("rank %d is connected to rank %d on channel %d already", h.From, h.To, h.Channel)
	}
	return nil
}
