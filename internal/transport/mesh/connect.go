package mesh

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/superstep-ml/superstep/internal/transport/membership"
)

// Of two ranks the lower dials and says hello, and the higher accepts and answers.
// The higher accepts before it opens the route itself, so that nobody waits in a
// circle. A connection whose answer got lost is made anew: what was accepted, but
// not yet given to its rank, is replaced.

// purpose tells the proofs of data connections from others.
const purpose = "data"

// open makes the routes of a rank to ranks of other processes, all in parallel.
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
			// The context of this call is for waiting: a dial also serves other callers.
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

// slotOf returns the place of a connection.
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

// mayDial says whether the caller is the one to make the connection.
func (t *TCP) mayDial(s *slot) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !s.dialing && s.conn == nil && t.ended == nil
	s.dialing = s.dialing || first
	return first
}

// claim takes the connection out of its place, for its rank.
func (t *TCP) claim(s *slot) (*tcpConn, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended != nil {
		return nil, t.ended
	}
	s.claimed = true
	return s.conn, nil
}

// notOpened says why a route was not there in time, and what to look at.
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
		reason = fmt.Sprintf("did not connect to rank %d on channel %d within %v: check that its process runs, that it is in the same operation, and that it can reach %s", n.rank, r.Channel, t.cfg.ConnectTimeout, t.address)
		last = t.acceptErr
	}
	if last != nil {
		reason += fmt.Sprintf(" (last error: %v)", last)
	}
	return t.lost(n, r.Peer, reason, membership.ErrTimeout)
}

// lost is the error about a peer, as a rank of this process sees it.
func (t *TCP) lost(n *node, peer int, reason string, kind error) error {
	return &membership.PeerError{
		Rank: peer, Address: t.peers[peer], Reporter: n.rank,
		During: n.standing.during(), Reason: reason, Kind: kind,
	}
}

// dial connects to a higher rank, again and again until the deadline, when whoever
// opens the route gives up too. If trying again cannot help, the group fails.
func (t *TCP) dial(n *node, r Route, s *slot, deadline time.Time) {
	ctx, cancel := context.WithDeadline(t.ctx, deadline)
	defer cancel()
	select {
	case t.dials <- struct{}{}:
		defer func() { <-t.dials }()
	case <-ctx.Done():
	}
	pause := 5 * time.Millisecond
	for try := uint32(1); ctx.Err() == nil; try++ {
		c, again, err := t.dialOnce(ctx, n, r, try)
		if err == nil {
			t.place(s, c, try)
			return
		}
		if !again && ctx.Err() == nil {
			n.Fail(t.lost(n, r.Peer, fmt.Sprintf("refuses channel %d of rank %d: %v", r.Channel, n.rank, err), nil))
			return
		}
		t.mu.Lock()
		s.err = err
		t.mu.Unlock()
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, 250*time.Millisecond)
	}
}

// closeOnEnd closes a socket when ctx ends before stop is called, which says
// whether it did not.
func closeOnEnd(ctx context.Context, sock net.Conn) (stop func() bool) {
	closed := make(chan struct{})
	cancel := context.AfterFunc(ctx, func() {
		_ = sock.Close()
		close(closed)
	})
	return func() bool {
		if cancel() {
			return true
		}
		<-closed
		return false
	}
}

// dialOnce makes one try; again says whether another may do better.
func (t *TCP) dialOnce(ctx context.Context, n *node, r Route, try uint32) (c *tcpConn, again bool, err error) {
	address := t.peers[r.Peer]
	if address == "" {
		return nil, false, errors.New("its address is not known: the group's table does not list it")
	}
	sock, err := t.dialer().DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, true, err
	}
	// The deadline for a peer that is silent, closing for a group that ends.
	stop := closeOnEnd(ctx, sock)
	conn, again, err := t.greet(ctx, sock, n, r, try)
	if !stop() && err == nil {
		err, again = ctx.Err(), true
	}
	if err != nil {
		if errors.Is(err, errAnswer) { // the peer may use the connection: it learns the cause before the end
			err = n.Fail(t.lost(n, r.Peer, fmt.Sprintf("took channel %d of rank %d, but %v", r.Channel, n.rank, err), membership.ErrDamaged))
		}
		_ = sock.Close()
		return nil, again, err
	}
	return newTCPConn(t, n, r, sock, t.wired(conn, n, r)), false, nil
}

// greet says hello on a new connection and waits for the answer.
func (t *TCP) greet(ctx context.Context, sock net.Conn, n *node, r Route, try uint32) (conn net.Conn, again bool, err error) {
	conn = sock
	if t.cfg.TLS != nil {
		config := t.cfg.TLS.Clone()
		if config.ServerName == "" {
			config.ServerName, _, _ = net.SplitHostPort(t.peers[r.Peer])
		}
		secure := tls.Client(sock, config)
		if err := secure.HandshakeContext(ctx); err != nil {
			var broken *tls.CertificateVerificationError
			return nil, !errors.As(err, &broken), fmt.Errorf("TLS: %w", err)
		}
		conn = secure
	}
	if err := membership.Prove(conn, t.cfg.Secret, purpose); err != nil {
		return nil, !errors.Is(err, membership.ErrSecret) && !errors.Is(err, membership.ErrNoSecret), err
	}
	var b [helloBytes]byte
	(&hello{attempt: t.fence.attempt, group: t.fence.group,
		from: uint32(n.rank), to: uint32(r.Peer), channel: uint32(r.Channel), try: try, summed: t.fence.summed}).encode(&b)
	if _, err := conn.Write(b[:]); err != nil {
		return nil, true, err
	}
	v, reason, err := readAnswer(conn)
	switch {
	case errors.Is(err, ErrFrame), errors.Is(err, errAnswer):
		return nil, false, err
	case err != nil:
		return nil, true, fmt.Errorf("it accepted, but did not answer: %w", err)
	case v == accepted:
		return conn, false, nil
	}
	return nil, v == notYet, errors.New(reason)
}

// place puts a connection where its rank waits for it, instead of one of an earlier
// try that nobody has claimed. Where it comes too late it is closed.
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

// accept takes connections until the mesh ends. Each one is answered on its own, so
// that one that says nothing holds up nobody.
func (t *TCP) accept() {
	pending := make(chan struct{}, 1024)
	for pause := time.Duration(0); ; {
		sock, err := t.listener.Accept()
		if t.ctx.Err() != nil {
			if err == nil {
				_ = sock.Close()
			}
			return
		}
		if err != nil {
			// Out of descriptors, or aborted by the peer: others may fare better.
			t.mu.Lock()
			t.acceptErr = err
			t.mu.Unlock()
			pause = min(max(2*pause, 5*time.Millisecond), time.Second)
			select {
			case <-time.After(pause):
			case <-t.ctx.Done():
			}
			continue
		}
		pause = 0
		select {
		case pending <- struct{}{}:
		case <-t.ctx.Done():
			_ = sock.Close()
			return
		}
		t.work.Go(func() {
			t.answer(sock)
			<-pending
		})
	}
}

// answer listens to a hello and takes the connection, or closes it.
func (t *TCP) answer(sock net.Conn) {
	stop := closeOnEnd(t.ctx, sock)
	_ = sock.SetDeadline(time.Now().Add(min(handshakeTimeout, t.cfg.ConnectTimeout)))
	conn, m, err := t.hear(sock)
	if err != nil {
		stop()
		_ = sock.Close()
		return
	}
	n := t.nodes[m.to]
	r := Route{Peer: int(m.from), Channel: int(m.channel)}
	s, err := t.slotOf(keyOf(n.rank, r))
	_ = sock.SetDeadline(time.Time{})
	if !stop() || err != nil {
		_ = sock.Close()
		return
	}
	t.place(s, newTCPConn(t, n, r, sock, t.wired(conn, n, r)), m.try)
}

// hear reads the hello on a new connection and answers it. Errors are for nobody to
// read but the peer: whoever connects may be anybody.
func (t *TCP) hear(sock net.Conn) (net.Conn, hello, error) {
	conn := sock
	if t.cfg.TLS != nil {
		config := t.cfg.TLS.Clone()
		config.ClientAuth = tls.RequireAndVerifyClientCert
		if config.ClientCAs == nil {
			config.ClientCAs = config.RootCAs
		}
		secure := tls.Server(sock, config)
		if err := secure.HandshakeContext(t.ctx); err != nil {
			return nil, hello{}, err
		}
		conn = secure
	}
	var b [helloBytes]byte
	var m hello
	begun, unproved := membership.Verify(conn, t.cfg.Secret, purpose)
	if begun == nil {
		return nil, m, unproved
	}
	if _, err := io.ReadFull(begun, b[:]); err != nil {
		return nil, m, err
	}
	v, err := m.decode(&b)
	if err == nil {
		v, err = t.judge(&m)
	}
	if unproved != nil && v != 0 {
		v, err = refused, unproved
	}
	if v == 0 {
		return nil, m, err
	}
	reason := ""
	if err != nil {
		reason = err.Error()
	}
	if wrong := writeAnswer(conn, v, reason); wrong != nil {
		return nil, m, wrong
	}
	return conn, m, err
}

// checksumming says what a rank does about checksums.
func checksumming(summed bool) string {
	if summed {
		return "sends data with checksums"
	}
	return "sends data without checksums"
}

// judge decides about a hello.
func (t *TCP) judge(m *hello) (verdict, error) {
	if err := t.fence.admit(m.attempt, m.group); err != nil {
		if errors.Is(err, ErrFenced) && m.attempt > t.fence.attempt {
			return notYet, err
		}
		return refused, err
	}
	size := uint32(t.size)
	switch {
	case m.summed != t.fence.summed:
		return refused, fmt.Errorf("rank %d %s and rank %d %s: say the same of checksums (NoChecksum) in all processes",
			m.from, checksumming(m.summed), m.to, checksumming(t.fence.summed))
	case m.from >= size || m.to >= size || m.from >= m.to || m.channel >= MaxChannels:
		return refused, fmt.Errorf("%w: a hello from rank %d to rank %d for channel %d, in a group of %d ranks", ErrFrame, m.from, m.to, m.channel, size)
	case t.nodes[m.to] == nil:
		return refused, fmt.Errorf("%w: a hello for rank %d, but %s hosts ranks %v: check the addresses", ErrFrame, m.to, t.address, t.cfg.Ranks)
	case t.nodes[m.from] != nil:
		return refused, fmt.Errorf("%w: a hello from rank %d, which the process at %s hosts itself: check the addresses", ErrFrame, m.from, t.address)
	}
	key := linkKey{int32(m.from), int32(m.to), int32(m.channel)}
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.slots[key]; s != nil && s.claimed {
		return refused, fmt.Errorf("rank %d is connected to rank %d on channel %d already", m.from, m.to, m.channel)
	}
	return accepted, nil
}
