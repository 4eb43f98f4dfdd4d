package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/transport"
)

// peer is the dialer's end of the connection to another worker, with the gates at which its
// senders wait.
type peer struct {
	n        *Network
	worker   int
	grantBuf [grantBytes]byte // buffer that the reading goroutine uses
	over     chan struct{}    // closed when err is set

	mu             sync.Mutex
	address        string
	conn           *conn
	err            error // set when no message can be sent any more
	neverConnected bool  // the worker could not be reached; the network fails when a sender needs the worker
	gates          map[transport.Address]*transport.Gate
}

func newPeer(n *Network, worker int) *peer {
	return &peer{
		n: n, worker: worker, over: make(chan struct{}),
		gates: make(map[transport.Address]*transport.Gate),
	}
}

// gate returns the gate with the credits for an inbox. It makes the gate for the first sender
// or for the first grant of credits, whichever comes first.
func (p *peer) gate(addr transport.Address) *transport.Gate {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.gates[addr]
	if g == nil {
		g = transport.NewGate(0)
		if p.err != nil {
			g.Shut(p.err)
		}
		p.gates[addr] = g
	}
	return g
}

// shut makes waiting and later calls of Send to the worker return err. Only the first call has
// an effect.
func (p *peer) shut(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return
	}
	p.err = err
	close(p.over)
	for _, g := range p.gates {
		g.Shut(err)
	}
	if p.conn != nil {
		p.conn.sendGate.Shut(err)
	}
}

// cause returns the error because of which no message can be sent any more, or nil if messages
// can be sent. If the worker could not be reached, it makes the network fail.
func (p *peer) cause() error {
	p.mu.Lock()
	err, unmet := p.err, p.neverConnected
	p.mu.Unlock()
	if unmet {
		p.n.fail(err)
	}
	return err
}

// where returns the address of the worker, or "" if it is not known yet.
func (p *peer) where() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.address
}

// connect makes the connection. It retries after errors that are not final.
func (p *peer) connect() {
	select {
	case <-p.n.placed:
	case <-p.n.ctx.Done():
		return
	}
	p.n.mu.Lock()
	address := p.n.addresses[p.worker]
	p.n.mu.Unlock()
	p.mu.Lock()
	p.address = address
	p.mu.Unlock()
	ctx, cancel := context.WithTimeout(p.n.ctx, p.n.cfg.ConnectTimeout)
	defer cancel()
	nc, err := peerlink.Retry(ctx, func(ctx context.Context) (net.Conn, error) {
		nc, err := p.n.cfg.Port.Dial(ctx, address, p.n.hello(p.worker))
		if err != nil && nc != nil {
			nc.Close()
		}
		if err != nil && (nc != nil || p.ended()) {
			err = peerlink.Final(err)
		}
		return nc, err
	})
	switch {
	case err == nil:
		p.begin(nc, address)
	case p.n.ctx.Err() == nil:
		p.neverReached(p.n.lost(p.worker, address, missed(err), err))
	}
}

// ended reports whether no message can be sent any more.
func (p *peer) ended() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// missed returns the reason why a worker could not be reached, as a text that follows the name
// of the worker.
func missed(err error) string {
	var r *peerlink.Refusal
	switch {
	case errors.As(err, &r) && r.Theirs:
		return "refused the connection: " + r.Reason
	case errors.As(err, &r):
		return "is refused: " + r.Reason
	case errors.Is(err, ErrDamaged):
		return "answered what was " + err.Error()
	case errors.Is(err, ErrProtocol):
		return "sent what is " + err.Error()
	}
	return "cannot be reached: " + err.Error()
}

// begin starts a connection to the worker.
func (p *peer) begin(nc net.Conn, address string) {
	c := p.n.newConn(nc, p.worker, address)
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	p.mu.Lock()
	p.conn = c
	if p.err != nil {
		c.sendGate.Shut(p.err)
	}
	p.mu.Unlock()
	p.n.adopt(c, p)
}

// neverReached records that the worker cannot be reached. The network fails only when a sender
// needs the worker.
func (p *peer) neverReached(err error) {
	p.mu.Lock()
	p.neverConnected = p.err == nil
	p.mu.Unlock()
	p.shut(err)
}

func (p *peer) handle(k kind, _ int) error {
	switch k {
	case kindGrant:
		return p.granted()
	}
	return peerlink.Violation("a %v from the side that accepted", k)
}

func (p *peer) finish() {}

// granted handles a grant frame. It adds the credits to the gate of their inbox.
func (p *peer) granted() error {
	if _, err := io.ReadFull(&p.conn.body, p.grantBuf[:]); err != nil {
		return err
	}
	le := binary.LittleEndian
	addr := transport.Address{
		Edge: int(int32(le.Uint32(p.grantBuf[0:]))), Inbox: int(int32(le.Uint32(p.grantBuf[4:]))), Worker: p.worker,
	}
	n := le.Uint32(p.grantBuf[8:])
	p.mu.Lock()
	boxes := len(p.gates)
	p.mu.Unlock()
	if n == 0 || n > 1<<20 || boxes > maxInboxes {
		return peerlink.Violation("%d credits for %v, one of %d inboxes", n, addr, boxes)
	}
	p.gate(addr).Leave(int64(n))
	return nil
}

// sender sends to one inbox of another worker.
type sender struct {
	p      *peer
	addr   transport.Address
	gate   *transport.Gate
	waiter *transport.Waiter
	schema *arrow.Schema // schema of the last rows; codec is its codec
	codec  *codec
	out    frameWriter
}

func (p *peer) sender(addr transport.Address) *sender {
	return &sender{p: p, addr: addr, gate: p.gate(addr), waiter: transport.NewWaiter()}
}

// Send waits for a credit for the inbox and for free bytes in the queue of the connection, and
// then queues the message.
func (s *sender) Send(ctx context.Context, m transport.Message) error {
	defer m.Release()
	head, err := headOf(s.addr, &m)
	var size int64
	if err == nil {
		size, err = s.prepare(&head, &m)
	}
	if err != nil {
		return s.failed(&m, err)
	}
	if err := s.gate.Enter(ctx, s.waiter, 1); err != nil {
		return s.reason(ctx, err)
	}
	s.p.mu.Lock()
	c := s.p.conn // not nil, as the credit was granted on this connection
	s.p.mu.Unlock()
	if err := c.sendGate.Enter(ctx, s.waiter, size); err != nil {
		s.gate.Leave(1)
		return s.reason(ctx, err)
	}
	b, err := s.encode(&head, &m, size)
	if err != nil {
		c.sendGate.Leave(size)
		s.gate.Leave(1)
		return s.failed(&m, err)
	}
	c.sendGate.Leave(size - int64(len(*b)))
	if err := c.push(b, s.codecOf(&m)); err != nil {
		return s.reason(ctx, err)
	}
	return nil
}

func (s *sender) codecOf(m *transport.Message) *codec {
	if m.Rows == nil {
		return nil
	}
	return s.codec
}

// failed returns an error that says that message m cannot be sent because of err.
func (s *sender) failed(m *transport.Message, err error) error {
	return fmt.Errorf("send message %d of shard %d to %v of worker %d: %w", m.Seq, m.Shard, s.addr, s.addr.Worker, err)
}

// reason returns the error for a message that was not sent: the cause of ctx if ctx has ended,
// and otherwise the reason why nothing can be sent to the worker.
func (s *sender) reason(ctx context.Context, err error) error {
	cause := s.p.cause()
	switch {
	case cause != nil && !(ctx.Err() != nil && err == context.Cause(ctx)):
		return cause
	case errors.Is(err, ErrLeft), errors.Is(err, errOver): // the connection has ended, and the peer has not been shut yet
		return s.p.n.endedBefore(s.p)
	}
	return err
}

// prepare sets the codec for the rows of m, and sets the number of the schema in head. It
// returns an estimate of the message's length in bytes.
func (s *sender) prepare(head *messageHead, m *transport.Message) (int64, error) {
	size := int64(headBytes + messageBytes + partBytes*len(m.Parts) + sumBytes)
	if m.Rows == nil {
		return size, nil
	}
	if schema := m.Rows.Schema(); schema != s.schema {
		c, err := s.p.n.codecs.find(schema)
		if err != nil {
			return 0, err
		}
		s.schema, s.codec = schema, c
	}
	head.schema = s.codec.number
	rows := batch.Size(m.Rows)
	if limit := s.p.n.cfg.maxMessage; rows > limit {
		return 0, tooLarge(m, rows, limit)
	}
	return size + rows + rows/pieceBytes*sumBytes + 512 + 192*m.Rows.NumCols(), nil
}

func tooLarge(m *transport.Message, size, limit int64) error {
	return fmt.Errorf("%d rows of %d bytes exceed the %d that a message can hold: use smaller batches", m.Rows.NumRows(), size, limit)
}

// encode returns a buffer with the frame of a message. size is the estimated length of the
// frame in bytes.
func (s *sender) encode(head *messageHead, m *transport.Message, size int64) (*[]byte, error) {
	n := s.p.n
	b := n.buffer(int(size))
	s.out = beginFrame(*b, kindMessage, n.summed())
	setEdge(s.out.b[s.out.start:], head.edge)
	var fixed [messageBytes]byte
	s.out.Write(head.append(fixed[:0]))
	writeParts(&s.out, m.Parts)
	var err error
	if m.Rows != nil {
		err = s.codec.append(&s.out, m.Rows)
	}
	*b = s.out.end()
	if length := int64(s.out.length); err == nil && length > n.cfg.maxMessage {
		err = tooLarge(m, length, n.cfg.maxMessage)
	}
	s.out.b = nil
	if err != nil {
		n.recycle(b)
		return nil, err
	}
	return b, nil
}
