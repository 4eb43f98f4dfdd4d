package remote

import (
	"encoding/binary"
	"io"
	"sync"
	"sync/atomic"

	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/transport"
)

// inbox passes messages to one receiver. It gets messages of other workers from its queue, and
// messages of this worker from a transport.Mem.
type inbox struct {
	n     *Network
	addr  transport.Address
	queue chan arrival

	mu   sync.Mutex // held during recv.Receive, so that the receiver gets one message at a time
	recv transport.Receiver
}

// arrival is a message of another worker, with the state of that worker's credits.
type arrival struct {
	m       transport.Message
	credits *credits
}

// newInbox returns an inbox. Its queue has space for as many messages as there are credits, so
// the goroutine that reads a connection never waits for a receiver.
func (n *Network) newInbox(addr transport.Address, r transport.Receiver) *inbox {
	return &inbox{n: n, addr: addr, recv: r, queue: make(chan arrival, n.cfg.perPeer()*(n.cfg.Workers-1))}
}

// Receive passes m to the receiver.
func (in *inbox) Receive(m transport.Message) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.recv.Receive(m)
}

// run passes the messages in the queue to the receiver, until the network closes.
func (in *inbox) run() {
	for {
		select {
		case <-in.n.ctx.Done():
			return
		default:
		}
		select {
		case a := <-in.queue:
			in.Receive(a.m)
			a.credits.taken()
		case <-in.n.ctx.Done():
			return
		}
	}
}

// drain releases the messages left in the queue.
func (in *inbox) drain() {
	for {
		select {
		case a := <-in.queue:
			a.m.Release()
		default:
			return
		}
	}
}

// credits has the state of the credits that another worker has for one inbox.
type credits struct {
	in        *inbox
	c         *conn
	available atomic.Int32 // number of messages that the worker may still send
	owed      int          // number of received messages whose credits have not been granted again yet; used only by the inbox's goroutine
	batch     int          // number of credits that are granted again together
}

// taken is called when the receiver has taken a message. It grants the credits of taken messages
// again when a batch of them has been taken.
func (k *credits) taken() {
	if k.owed++; k.owed < k.batch {
		return
	}
	k.available.Add(int32(k.owed))
	k.c.post(grantFrame(k.in.addr, k.owed, k.c.body.summed))
	k.owed = 0
}

// incoming is the listener's end of a connection, on which the other worker sends messages.
type incoming struct {
	*conn
	decoders   map[uint32]*decoder
	messageBuf [messageBytes]byte

	mu      sync.Mutex
	credits map[transport.Address]*credits
}

func newIncoming(c *conn) *incoming {
	return &incoming{
		conn: c, decoders: make(map[uint32]*decoder),
		credits: make(map[transport.Address]*credits),
	}
}

// open grants the first credits for an inbox. If they have been granted already, it does
// nothing.
func (i *incoming) open(in *inbox) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.credits[in.addr] != nil {
		return
	}
	n := i.n.cfg.perPeer()
	k := &credits{in: in, c: i.conn, batch: max(1, n/2)}
	k.available.Store(int32(n))
	i.credits[in.addr] = k
	i.post(grantFrame(in.addr, n, i.body.summed))
}

func (i *incoming) handle(k kind, length int) error {
	switch k {
	case kindSchema:
		return i.schema(length)
	case kindMessage:
		return i.message(length)
	}
	return peerlink.Violation("a %v from the side that connected", k)
}

// finish releases the decoders.
func (i *incoming) finish() {
	for _, d := range i.decoders {
		d.release()
	}
}

// schema handles a schema frame. It makes the decoder for later messages with this schema.
func (i *incoming) schema(length int) error {
	var b [4]byte
	if _, err := io.ReadFull(&i.body, b[:]); err != nil {
		return err
	}
	number := binary.LittleEndian.Uint32(b[:])
	if int(number) >= maxSchemas || i.decoders[number] != nil {
		return peerlink.Violation("a schema of number %d, which is too large or was sent before", number)
	}
	head := make([]byte, length-len(b)) // at most maxSchema
	if _, err := io.ReadFull(&i.body, head); err != nil {
		return err
	}
	d, err := newDecoder(head, i.n.cfg.Allocator)
	if err != nil {
		return peerlink.Violation("schema %d: %w", number, err)
	}
	i.decoders[number] = d
	return nil
}

// message handles a message frame. It puts the message into the queue of the message's inbox.
func (i *incoming) message(length int) error {
	if _, err := io.ReadFull(&i.body, i.messageBuf[:]); err != nil {
		return err
	}
	var h messageHead
	if err := h.parse(i.messageBuf[:]); err != nil {
		return err
	}
	addr := transport.Address{Edge: int(h.edge), Inbox: int(h.inbox), Worker: i.n.cfg.Worker}
	i.mu.Lock()
	from := i.credits[addr]
	i.mu.Unlock()
	if from == nil || from.available.Add(-1) < 0 {
		return peerlink.Violation("a message to %v, without a credit", addr)
	}
	left := length - messageBytes - int(h.parts)*partBytes
	if left < 0 || !h.rows && left > 0 {
		return peerlink.Violation("a message of %d bytes with %d parts, rows %t", length, h.parts, h.rows)
	}
	m := transport.Message{Shard: int(h.shard), To: int(h.to), Seq: h.seq, Sent: h.sent, SentRows: h.sentRows, Last: h.last}
	if err := i.parts(&m, int(h.parts)); err != nil {
		return err
	}
	if h.rows {
		if err := i.rows(&m, h.schema, left); err != nil {
			return err
		}
	}
	if err := checkParts(&m); err != nil {
		m.Release()
		return peerlink.Violation("a message to %v: %w", addr, err)
	}
	select {
	case from.in.queue <- arrival{m, from}:
		return nil
	default:
		m.Release()
		return peerlink.Violation("a message to %v, which is full", addr) // cannot happen, as there was a credit for the message
	}
}

// parts reads the n parts of a message.
func (i *incoming) parts(m *transport.Message, n int) error {
	if n == 0 {
		return nil
	}
	m.Parts = make([]transport.Part, 0, min(n, readBuffer/partBytes)) // the slice grows as parts arrive
	for range n {
		b := i.messageBuf[:partBytes]
		if _, err := io.ReadFull(&i.body, b); err != nil {
			return err
		}
		le := binary.LittleEndian
		m.Parts = append(m.Parts, transport.Part{Shard: int(int32(le.Uint32(b))), End: int(int32(le.Uint32(b[4:])))})
	}
	return nil
}

// rows reads the rows of a message, which take length bytes.
func (i *incoming) rows(m *transport.Message, schema uint32, length int) error {
	d := i.decoders[schema]
	if d == nil {
		return peerlink.Violation("rows of schema %d, which was not sent", schema)
	}
	rows, err := d.decode(&i.body, int64(length))
	if err != nil {
		return peerlink.Violation("rows of shard %d: %w", m.Shard, err)
	}
	m.Rows = rows
	return nil
}

var _ side = (*incoming)(nil)
