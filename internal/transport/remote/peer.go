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

// peer is the dialer's end of the connection to another worker, with the senders that wait for
// it.
type peer struct {
	n      *Network
	worker int
	fixed  [grantBytes]byte // buffer of the reader
	over   chan struct{}    // closed when err is set

	mu      sync.Mutex
	address string
	conn    *conn
	err     error // set when nothing can be sent any more
	unmet   bool  // err says that the worker could not be reached; the network fails when it is needed
	gates   map[transport.Address]*transport.Gate
}

func newPeer(n *Network, worker int) *peer {
	return &peer{
		n: n, worker: worker, over: make(chan struct{}),
		gates: make(map[transport.Address]*transport.Gate),
	}
}

// gate has the credits of an inbox. It is made when the first sender needs it, or when the
// other worker grants credits.
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

// shut ends all sending; the first cause counts.
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
		p.conn.room.Shut(err)
	}
}

// cause returns why nothing can be sent any more.
func (p *peer) cause() error {
	p.mu.Lock()
	err, unmet := p.err, p.unmet
	p.mu.Unlock()
	if unmet {
		p.n.fail(err)
	}
	return err
}

// where returns the address of the worker.
func (p *peer) where() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.address
}

// connect makes the connection, with retries where they may help.
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
		p.miss(p.n.lost(p.worker, address, missed(err), err))
	}
}

// ended reports whether nothing can be sent any more.
func (p *peer) ended() bool {
	select {
	case <-p.over:
		return true
	default:
		return false
	}
}

// missed says why a worker could not be reached, in words that follow "worker 3 ...".
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

// begin begins to use a connection.
func (p *peer) begin(nc net.Conn, address string) {
	c := p.n.newConn(nc, p.worker, address)
	p.n.mu.Lock()
	defer p.n.mu.Unlock()
	p.mu.Lock()
	p.conn = c
	if p.err != nil {
		c.room.Shut(p.err)
	}
	p.mu.Unlock()
	p.n.adopt(c, p)
}

// miss records that the worker cannot be reached. The network fails when a sender needs the
// worker.
func (p *peer) miss(err error) {
	p.mu.Lock()
	p.unmet = p.err == nil
	p.mu.Unlock()
	p.shut(err)
}

func (p *peer) handle(k kind, _ int) error {
	switch k {
	case kindGrant:
		return p.granted()
	}
	return violation("a %v from the side that accepted", k)
}

func (p *peer) finish() {}

// granted reads a grant of credits.
func (p *peer) granted() error {
	if _, err := io.ReadFull(&p.conn.body, p.fixed[:]); err != nil {
		return err
	}
	le := binary.LittleEndian
	addr := transport.Address{
		Edge: int(int32(le.Uint32(p.fixed[0:]))), Inbox: int(int32(le.Uint32(p.fixed[4:]))), Worker: p.worker,
	}
	n := le.Uint32(p.fixed[8:])
	p.mu.Lock()
	boxes := len(p.gates)
	p.mu.Unlock()
	if n == 0 || n > 1<<20 || boxes > maxInboxes {
		return violation("%d credits for %v, one of %d inboxes", n, addr, boxes)
	}
	p.gate(addr).Leave(int64(n))
	return nil
}

// sender sends to one inbox of another worker.
type sender struct {
	p      *peer
	addr   transport.Address
	gate   *transport.Gate
	w      *transport.Waiter
	schema *arrow.Schema // schema of the last rows, and its codec
	codec  *codec
	out    frameWriter
}

func (p *peer) sender(addr transport.Address) *sender {
	return &sender{p: p, addr: addr, gate: p.gate(addr), w: transport.NewWaiter()}
}

// Send waits for a credit of the inbox and for room in the queue of the connection,
// and queues the message.
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
	if err := s.gate.Enter(ctx, s.w, 1); err != nil {
		return s.reason(ctx, err)
	}
	s.p.mu.Lock()
	c := s.p.conn // not nil, as it has granted the credit
	s.p.mu.Unlock()
	if err := c.room.Enter(ctx, s.w, size); err != nil {
		s.gate.Leave(1)
		return s.reason(ctx, err)
	}
	b, err := s.encode(&head, &m, size)
	if err != nil {
		c.room.Leave(size)
		s.gate.Leave(1)
		return s.failed(&m, err)
	}
	c.room.Leave(size - int64(len(*b)))
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

// failed returns the error of a message that cannot be sent.
func (s *sender) failed(m *transport.Message, err error) error {
	return fmt.Errorf("send message %d of shard %d to %v of worker %d: %w", m.Seq, m.Shard, s.addr, s.addr.Worker, err)
}

// reason returns why a message was not sent: the end of ctx, or of the connection.
func (s *sender) reason(ctx context.Context, err error) error {
	if cause := s.p.cause(); cause != nil && !(ctx.Err() != nil && err == context.Cause(ctx)) {
		return cause
	}
	return err
}

// prepare finds the codec of a message's rows and estimates the message's size in bytes.
func (s *sender) prepare(head *messageHead, m *transport.Message) (int64, error) {
	size := int64(headBytes + messageBytes + partBytes*len(m.Parts) + sumBytes)
	if m.Rows == nil {
		return size, nil
	}
	if schema := m.Rows.Schema(); schema != s.schema {
		c, err := s.p.n.codecs.of(schema)
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

// encode writes a message into a buffer.
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
