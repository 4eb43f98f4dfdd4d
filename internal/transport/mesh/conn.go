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

	"github.com/superstep-ml/superstep/internal/transport/checksum"
	"github.com/superstep-ml/superstep/internal/transport/membership"
)

const (
	// smallWrite is the longest payload that is copied behind its header, which costs less than
	// a write from two places.
	smallWrite = 16 << 10
	// summedWrite is how much is summed before it is written: whole pieces of checksums, enough
	// to keep the cost of writes low, and few enough to be still in the cache.
	summedWrite = 4 * checksum.PieceBytes
	// directRead is the shortest rest of a message that is read directly into its destination
	// instead of through the buffer.
	directRead = 8 << 10
	// A long payload is mostly followed by another one: then Next reads little more than the
	// header, so that few bytes must be copied out of the buffer.
	longPayload = 48 << 10
	shortWindow = 1 << 10
)

// tcpConn is one rank's end of a connection to a rank of another process. The
// goroutine that sends writes itself, and the one that receives reads itself; there
// is another one only while posted messages wait for room in the socket.
type tcpConn struct {
	t       *TCP
	node    *node
	peer    int
	channel int
	sock    net.Conn        // the socket to close
	conn    net.Conn        // for reads and writes: the socket, or TLS on it
	raw     syscall.RawConn // of the socket, to write without waiting; nil where that is impossible
	cause   atomic.Pointer[error]

	// The socket while the runtime's poller does not wait for it: then the three fields above
	// are not used. Changed between runs, with mu held.
	own        *ownSocket
	place      int // index of its rank among those of this process
	serialRuns int // consecutive runs with Alone(true)
	returns    int // how often the socket went back to the poller

	// Sending. mu orders the sender, the goroutine that drains the queue, and the end.
	mu       sync.Mutex
	idle     sync.Cond // the queue is drained, or the end has come
	queue    fifo[*block]
	draining bool
	drain    func()                // made once, so that starting it allocates nothing
	small    []byte                // a header and the beginning of its payload
	header   [headerBytes]byte     // of a long message
	trailer  [trailerBytes]byte    // and the checksum behind its payload
	parts    [3][]byte             // parts of one write
	vector   net.Buffers           // over parts
	attempt  attempt               // to write without waiting
	sent     uint32                // messages, as headers count them
	try      func(fd uintptr) bool // attempt.write, made once

	// Receiving.
	buf    []byte
	lo, hi int    // range of the unread bytes in buf
	window int    // how much of buf to fill in Next
	rest   int    // bytes of the message not yet read
	number uint64 // number of earlier messages; headers have its lower half
	now    Header // header of the message
	want   seal   // its checksum as in its header
	sum    checksum.Stream
	due    []byte // the part of the destination that is not in sum yet
	have   int    // how many bytes of due have arrived
	frame  [headerBytes]byte
}

func newTCPConn(t *TCP, n *node, r Route, sock, conn net.Conn) *tcpConn {
	c := &tcpConn{t: t, node: n, peer: r.Peer, channel: r.Channel, sock: sock, conn: conn,
		buf: make([]byte, t.cfg.ReadBuffer), window: t.cfg.ReadBuffer}
	c.idle.L = &c.mu
	c.place = slices.Index(t.cfg.Ranks, n.rank)
	c.drain = c.drainQueue
	c.try = c.attempt.write
	if sc, ok := sock.(syscall.Conn); ok && conn == sock {
		if raw, err := sc.SyscallConn(); err == nil {
			c.raw = raw
		}
	}
	return c
}

// interrupt ends the connection: calls that wait return with the cause.
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
	// Not TLS's own Close, which would wait to send an alert.
	_ = sock.Close()
}

// stream returns the connection for reads and writes.
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

// failed ends the group because of an error of the connection. It returns the group's cause,
// which is the first failure and may be another one.
func (c *tcpConn) failed(err error, within bool) error {
	if cause := c.ended(); cause != nil {
		return cause
	}
	reason, kind := "", error(nil)
	switch {
	case errors.Is(err, membership.ErrDamaged):
		return c.node.Fail(c.t.lost(c.node, c.peer, fmt.Sprintf("sent message %d of channel %d%s, which was %v", c.number, c.channel, c.whereabouts(), err), membership.ErrDamaged))
	case errors.Is(err, ErrFrame), errors.Is(err, ErrFenced):
		return c.node.Fail(fmt.Errorf("%w: %w", c.t.lost(c.node, c.peer, "sent what cannot be received", nil), err))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.EPIPE):
		reason, kind = "closed its connection", membership.ErrLeft
		if within {
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
	c.node.standing.moved.Add(uint64(len(payload)))
	return nil
}

// sendLong writes a message without copying it. If its payload has a checksum and does not fit
// in the cache, it is summed and written piece by piece, and the checksum follows it.
func (c *tcpConn) sendLong(h *Header, payload []byte) error {
	if len(payload) <= summedWrite || !c.t.fence.summed {
		c.encode(&c.header, h, payload)
		return c.writeParts(c.header[:], payload, nil)
	}
	c.t.fence.encode(&c.header, h, c.sent, seal{trails: true})
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

// writeParts writes up to three parts in a row.
func (c *tcpConn) writeParts(head, body, tail []byte) error {
	c.parts = [...][]byte{head, body, tail}
	c.vector = c.parts[:]
	_, err := c.vector.WriteTo(c.stream())
	clear(c.parts[:])
	return err
}

// encode writes the header of the next message.
func (c *tcpConn) encode(b *[headerBytes]byte, h *Header, payload []byte) {
	var s seal
	if c.t.fence.summed {
		s.sum = checksum.Of(payload).Bits()
	}
	c.t.fence.encode(b, h, c.sent, s)
	c.sent++
}

// withHeader returns the header followed by the first n bytes of the payload.
func (c *tcpConn) withHeader(h *Header, payload []byte, n int) []byte {
	if c.small == nil {
		c.small = make([]byte, headerBytes+smallWrite)
	}
	c.encode((*[headerBytes]byte)(c.small), h, payload)
	copy(c.small[headerBytes:], payload[:n])
	return c.small[:headerBytes+n]
}

// waitForQueue waits until everything posted is sent.
func (c *tcpConn) waitForQueue() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.draining && c.ended() == nil {
		c.idle.Wait()
	}
	return c.ended()
}

// flush waits until everything posted is sent or has failed.
func (c *tcpConn) flush() { _ = c.waitForQueue() }

func (c *tcpConn) Post(h *Header, payload []byte) error {
	if err := checkMessage(h, payload, c.t.fence.limit); err != nil {
		return err
	}
	if err := c.post(h, payload); err != nil {
		return c.failed(err, false)
	}
	c.node.standing.moved.Add(uint64(len(payload)))
	return nil
}

// post writes as much as the socket takes without waiting, and queues the rest.
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

// smallestQueued is the least room for a queued message, so that small ones that follow are
// written together with it.
const smallestQueued = 4 << 10

// enqueue copies the parts of a message to the end of the queue. mu is held.
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

// drainQueue writes posted messages, and ends when there are none left.
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
			// This ends the group, and with it this connection.
			c.interrupt(c.failed(err, false))
		}
	}
}

// dequeue takes the next block to write, nil if there is none.
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
