package mesh

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/superstep-ml/superstep/internal/checksum"
	"github.com/superstep-ml/superstep/internal/transport/membership"
)

const (
	// smallWrite is the length of the longest payload that is copied behind its header. For
	// such payloads the copy costs less than a write of two buffers.
	smallWrite = 16 << 10
	// A long payload is summed and written in parts of summedWrite bytes. summedWrite is a
	// multiple of checksum.PieceBytes. It is large enough that writes are cheap, and small
	// enough that a part is still in the cache when it is written.
	summedWrite = 4 * checksum.PieceBytes
	// If at least directRead bytes remain to be read, they are read directly into their
	// destination, and not through the buffer.
	directRead = 8 << 10
	// After a payload of at least longPayload bytes, the next payload is usually long too. So
	// the next call of Next fills the buffer with at most shortWindow bytes, which is little
	// more than the header, since payload bytes in the buffer must be copied to their
	// destination.
	longPayload = 48 << 10
	shortWindow = 1 << 10
)

// tcpConn is one rank's end of a connection to a rank of another process. There are no
// background goroutines: Send writes to the socket and Read reads from it in the caller's
// goroutine. Only while posted messages wait for room in the socket's buffer does another
// goroutine write them.
type tcpConn struct {
	t       *TCP
	node    *node
	peer    int
	channel int
	sock    net.Conn        // the socket; interrupt closes it
	conn    net.Conn        // used for reads and writes: sock, or the TLS connection over it
	raw     syscall.RawConn // raw connection of sock, to write without waiting; nil if that is not possible
	cause   atomic.Pointer[error]

	// own is the socket while it is taken out of the runtime's poller; sock, conn and raw are
	// not used then. It changes only between runs, while mu is held.
	own        *ownSocket
	localIndex int // index of the rank among the ranks of this process
	serialRuns int // number of consecutive runs with Alone(true)
	returns    int // number of times that the socket has been returned to the poller

	// The following fields are for sending. mu serializes the sender, the goroutine that drains
	// the queue, and interrupt.
	mu       sync.Mutex
	idle     sync.Cond // signalled when the queue has been drained or the connection has ended
	queue    fifo[*block]
	draining bool
	drain    func()                // drainQueue as a value, made once so that starting it allocates nothing
	smallBuf []byte                // a header and the beginning of its payload
	header   [headerBytes]byte     // header of a long message
	trailer  [trailerBytes]byte    // checksum that follows the payload of a long message
	parts    [3][]byte             // buffers of one write
	vector   net.Buffers           // refers to parts
	attempt  attempt               // state of a write without waiting
	sent     uint32                // number of messages sent, modulo 2^32 as in headers
	try      func(fd uintptr) bool // attempt.write as a value, made once so that it allocates nothing later

	// The following fields are for receiving.
	buf      []byte
	lo, hi   int        // range of the unread bytes in buf
	window   int        // number of bytes up to which Next fills buf
	unread   int        // number of bytes of the message that have not been read yet
	number   uint64     // number of earlier messages; headers have its lower 32 bits
	current  Header     // header of the message
	want     payloadSum // what the header says about the payload's checksum
	sum      checksum.Stream
	unsummed []byte // the part of the destination that is not in sum yet
	arrived  int    // how many bytes of unsummed have arrived
	frame    [headerBytes]byte
}

func newTCPConn(t *TCP, n *node, r Route, sock, conn net.Conn) *tcpConn {
	c := &tcpConn{t: t, node: n, peer: r.Peer, channel: r.Channel, sock: sock, conn: conn,
		buf: make([]byte, t.cfg.ReadBuffer), window: t.cfg.ReadBuffer}
	c.idle.L = &c.mu
	c.localIndex = slices.Index(t.cfg.Ranks, n.rank)
	c.drain = c.drainQueue
	c.try = c.attempt.write
	if sc, ok := sock.(syscall.Conn); ok && conn == sock {
		if raw, err := sc.SyscallConn(); err == nil {
			c.raw = raw
		}
	}
	return c
}

// interrupt ends the connection: waiting and later calls return cause.
func (c *tcpConn) interrupt(cause error) {
	c.mu.Lock()
	if c.cause.Load() == nil {
		c.cause.Store(&cause)
	}
	c.idle.Broadcast()
	own, sock := c.own, c.sock
	c.mu.Unlock()
	if own != nil {
		_ = own.Close()
		return
	}
	// sock is closed instead of conn, as Close of a TLS connection would wait until it has sent
	// an alert.
	_ = sock.Close()
}

// stream returns own if the socket is out of the poller, and conn otherwise.
func (c *tcpConn) stream() io.ReadWriter {
	if c.own != nil {
		return c.own
	}
	return c.conn
}

func (c *tcpConn) ended() error {
	if p := c.cause.Load(); p != nil {
		return *p
	}
	return nil
}

// failed ends the group because of err, an error of the connection. midMessage says whether err
// occurred in the middle of a message. failed returns the error that ended the group: the first
// failure, which may not be err.
func (c *tcpConn) failed(err error, midMessage bool) error {
	if cause := c.ended(); cause != nil {
		return cause
	}
	reason, kind := "", error(nil)
	switch {
	case errors.Is(err, membership.ErrDamaged):
		return c.node.Fail(c.t.lost(c.node, c.peer, fmt.Sprintf("sent message %d of channel %d%s, which was %v", c.number, c.channel, c.describeCurrent(), err), membership.ErrDamaged))
	case errors.Is(err, ErrFrame), errors.Is(err, ErrFenced):
		return c.node.Fail(fmt.Errorf("%w: %w", c.t.lost(c.node, c.peer, "sent what cannot be received", nil), err))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.EPIPE):
		reason, kind = "closed its connection", membership.ErrLeft
		if midMessage {
			reason, kind = "closed its connection in the middle of a message", nil
		}
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.ECONNABORTED):
		reason = "reset its connection"
	case errors.Is(err, syscall.ETIMEDOUT):
		reason, kind = "is not reachable any more ("+err.Error()+")", membership.ErrTimeout
	default:
		reason = "lost its connection (" + err.Error() + ")"
	}
	return c.node.Fail(c.t.lost(c.node, c.peer, reason, kind))
}

func (c *tcpConn) Send(h *Header, payload []byte) error {
	if err := checkMessage(h, payload, c.t.fence.limit); err != nil {
		return err
	}
	if err := c.waitForQueue(); err != nil {
		return err
	}
	var err error
	if len(payload) <= smallWrite {
		_, err = c.stream().Write(c.withHeader(h, payload, len(payload)))
	} else {
		err = c.sendLong(h, payload)
	}
	if err != nil {
		return c.failed(err, false)
	}
	c.node.tracker.payloadBytes.Add(uint64(len(payload)))
	return nil
}

// sendLong writes a message without copying it. If payloads have checksums, a payload of more
// than summedWrite bytes is summed and written part by part, and its checksum is written after
// it.
func (c *tcpConn) sendLong(h *Header, payload []byte) error {
	if len(payload) <= summedWrite || !c.t.fence.summed {
		c.encode(&c.header, h, payload)
		return c.writeParts(c.header[:], payload, nil)
	}
	c.t.fence.encode(&c.header, h, c.sent, payloadSum{inTrailer: true})
	c.sent++
	var sum checksum.Sum
	head, tail := c.header[:], []byte(nil)
	for len(payload) > 0 {
		piece := payload[:min(len(payload), summedWrite)]
		payload = payload[len(piece):]
		sum = sum.AddAll(piece)
		if len(payload) == 0 {
			tail = c.trailer[:]
			binary.LittleEndian.PutUint32(tail, sum.Bits())
		}
		if err := c.writeParts(head, piece, tail); err != nil {
			return err
		}
		head = nil
	}
	return nil
}

// writeParts writes head, body and tail in this order. Each of them may be empty.
func (c *tcpConn) writeParts(head, body, tail []byte) error {
	c.parts = [...][]byte{head, body, tail}
	c.vector = c.parts[:]
	_, err := c.vector.WriteTo(c.stream())
	clear(c.parts[:])
	return err
}

// encode writes to b the header of the next message, with the checksum of the payload.
func (c *tcpConn) encode(b *[headerBytes]byte, h *Header, payload []byte) {
	var s payloadSum
	if c.t.fence.summed {
		s.sum = checksum.Of(payload).Bits()
	}
	c.t.fence.encode(b, h, c.sent, s)
	c.sent++
}

// withHeader returns a buffer with the header and the first n bytes of the payload.
func (c *tcpConn) withHeader(h *Header, payload []byte, n int) []byte {
	if c.smallBuf == nil {
		c.smallBuf = make([]byte, headerBytes+smallWrite)
	}
	c.encode((*[headerBytes]byte)(c.smallBuf), h, payload)
	copy(c.smallBuf[headerBytes:], payload[:n])
	return c.smallBuf[:headerBytes+n]
}

// waitForQueue waits until all posted messages are written to the socket. It returns the
// connection's error if it has ended.
func (c *tcpConn) waitForQueue() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.draining && c.ended() == nil {
		c.idle.Wait()
	}
	return c.ended()
}

// flush waits until all posted messages are written to the socket, or the connection has ended.
func (c *tcpConn) flush() { _ = c.waitForQueue() }

func (c *tcpConn) Post(h *Header, payload []byte) error {
	if err := checkMessage(h, payload, c.t.fence.limit); err != nil {
		return err
	}
	if err := c.post(h, payload); err != nil {
		return c.failed(err, false)
	}
	c.node.tracker.payloadBytes.Add(uint64(len(payload)))
	return nil
}

// post writes as many bytes as the socket accepts without waiting, and queues the other bytes.
func (c *tcpConn) post(h *Header, payload []byte) error {
	first := min(len(payload), smallWrite)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.ended(); err != nil {
		return err
	}
	head, tail := c.withHeader(h, payload, first), payload[first:]
	if !c.draining && c.raw != nil {
		n, err := c.attemptWrite(head, tail)
		if err != nil {
			return err
		}
		if n >= len(head) {
			head, tail = nil, tail[n-len(head):]
		} else {
			head = head[n:]
		}
	}
	if len(head)+len(tail) == 0 {
		return nil
	}
	c.enqueue(head, tail)
	if !c.draining {
		c.draining = true
		c.t.work.Add(1)
		go c.drain()
	}
	return nil
}

// smallestQueued is the minimum capacity of a block of the queue, in bytes. A block then has
// space for small messages that follow, so that they are written together.
const smallestQueued = 4 << 10

// enqueue copies head and tail to the end of the queue. The caller holds mu.
func (c *tcpConn) enqueue(head, tail []byte) {
	n := len(head) + len(tail)
	var b *block
	if c.queue.n > 0 {
		b = *c.queue.last()
	}
	if b == nil || cap(b.data)-len(b.data) < n {
		b = c.t.pool.get(max(n, smallestQueued))
		b.data = b.data[:0]
		c.queue.push(b)
	}
	b.data = append(append(b.data, head...), tail...)
}

// drainQueue writes the queued blocks, and returns when the queue is empty.
func (c *tcpConn) drainQueue() {
	defer c.t.work.Done()
	for {
		b := c.dequeue()
		if b == nil {
			return
		}
		_, err := c.stream().Write(b.data)
		c.t.pool.put(b)
		if err != nil {
			// failed ends the group, and interrupt ends this connection.
			c.interrupt(c.failed(err, false))
		}
	}
}

// dequeue removes and returns the next block to write. If the queue is empty or the connection
// has ended, it clears draining and returns nil.
func (c *tcpConn) dequeue() *block {
	c.mu.Lock()
	defer c.mu.Unlock()
	ended := c.ended() != nil
	for c.queue.n > 0 {
		b := c.queue.pop()
		if !ended {
			return b
		}
		c.t.pool.put(b)
	}
	c.draining = false
	c.idle.Broadcast()
	return nil
}
