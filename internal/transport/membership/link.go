package membership

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/superstep-ml/superstep/internal/peerlink"
)

// link is one end of the connection between a process and the coordinator.
type link interface {
	// send queues a message and returns at once. If the message cannot be sent, the link ends,
	// and receive returns an error.
	send(message)

	// receive waits for the next message and returns it. Only one goroutine may call it.
	receive() (message, error)

	// unread reports whether bytes or messages have arrived that receive has not read yet.
	unread() bool

	// end makes the link send the queued messages and then close its sending direction. end
	// itself does not wait.
	end()

	// drain reads and drops messages until the other side ends the link, for at most limit. It
	// is called after end, so that the other side can read the last messages: if a socket with
	// unread bytes is closed, the connection is reset, and bytes that were sent may be lost.
	drain(limit time.Duration)

	// close ends the link at once, and waits until its goroutines have ended.
	close()
}

// maxQueue bounds the number of bytes that are queued for one peer. If the queue exceeds it,
// the peer has stopped reading, and the link is closed.
const maxQueue = 16 * maxFrame

// conn is a link over a network connection. A separate goroutine writes, so that send never
// waits for the peer.
type conn struct {
	nc       net.Conn
	timeout  time.Duration // bounds the time of one write
	scratch  []byte        // buffer of receive
	received uint32        // number of messages that receive has read
	wake     chan struct{} // buffer of one; wakes the writer if there are bytes to write or the link ends
	written  chan struct{} // closed when the writer has ended

	mu    sync.Mutex
	queue []byte
	sent  uint32 // number of messages that have been queued
	over  bool
	idle  chan struct{} // closed when all queued bytes are written; nil if nothing is queued
}

func newConn(nc net.Conn, timeout time.Duration) *conn {
	c := &conn{nc: nc, timeout: timeout, wake: make(chan struct{}, 1), written: make(chan struct{})}
	go c.write()
	return c
}

func (c *conn) send(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	queue, err := appendFrame(c.queue, c.sent, m)
	c.sent++
	if err != nil || len(queue) > maxQueue {
		c.over = true
		c.nc.Close()
	}
	c.queue = queue
	if c.idle == nil {
		c.idle = make(chan struct{})
	}
	c.wakeWriter()
}

// flush waits until all queued bytes are written to the socket, until the writer has ended, or
// until timeout has a value.
func (c *conn) flush(timeout <-chan time.Time) {
	c.mu.Lock()
	idle := c.idle
	c.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-c.written:
	case <-timeout:
	}
}

// wakeWriter wakes the writer.
func (c *conn) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// write writes queued bytes until the link ends.
func (c *conn) write() {
	defer close(c.written)
	var spare []byte
	for range c.wake {
		c.mu.Lock()
		queue, over := c.queue, c.over
		c.queue = spare[:0]
		c.mu.Unlock()
		if len(queue) > 0 {
			if err := c.put(queue); err != nil {
				if !peerClosed(err) {
					c.nc.Close() // receive then returns an error
				}
				over = true
			}
		}
		c.mu.Lock()
		if len(c.queue) == 0 && c.idle != nil {
			close(c.idle)
			c.idle = nil
		}
		c.mu.Unlock()
		spare = queue
		if over {
			if half, ok := c.nc.(interface{ CloseWrite() error }); ok {
				half.CloseWrite()
			} else {
				c.nc.Close()
			}
			return
		}
	}
}

// put writes bytes to the peer within the timeout of the connection. If the timeout passes, it
// writes once more. The peer was not late if this process was stopped, or got no processor time,
// during the timeout.
func (c *conn) put(b []byte) error {
	c.nc.SetWriteDeadline(time.Now().Add(c.timeout))
	n, err := c.nc.Write(b)
	if _, secure := c.nc.(*tls.Conn); secure || !errors.Is(err, os.ErrDeadlineExceeded) {
		return err // a TLS connection cannot be written any more after a timeout
	}
	c.nc.SetWriteDeadline(time.Now().Add(c.timeout))
	_, err = c.nc.Write(b[n:])
	return err
}

// peerClosed reports whether err, the error of a write, says that the peer has closed the
// connection. In this case, receive first returns the peer's remaining messages, which may end
// with a good-bye, and then an error.
func peerClosed(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

func (c *conn) receive() (message, error) {
	m, err := readFrame(c.nc, c.received, &c.scratch)
	c.received++
	return m, err
}

func (c *conn) unread() bool { return peerlink.Unread(c.nc) }

func (c *conn) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	c.wakeWriter()
}

func (c *conn) drain(limit time.Duration) {
	c.nc.SetReadDeadline(time.Now().Add(limit))
	io.Copy(io.Discard, c.nc)
}

func (c *conn) close() {
	c.nc.Close()
	c.end()
	<-c.written
}

// lossReason returns the reason why a link was lost, as a text that follows "rank 3 ", and the
// kind of the error. The text for a process that died is the same as that for a process that
// closed its connection: the two cannot be distinguished, and the original error depends on the
// operating system.
func lossReason(err error) (reason string, kind error) {
	switch {
	case errors.Is(err, ErrDamaged):
		return "sent a message that was " + err.Error(), ErrDamaged
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.ErrClosedPipe),
		errors.Is(err, net.ErrClosed), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "closed its connection", nil
	case errors.Is(err, errFrame):
		return "sent what is no message: " + err.Error(), nil
	}
	return "lost its connection: " + err.Error(), nil
}

// localLink is the link between the coordinator and its own process. It uses no connection.
type localLink struct {
	to   *coordinator
	wake chan struct{}

	mu    sync.Mutex
	queue []message
	over  bool
}

func newLocalLink(to *coordinator) *localLink {
	return &localLink{to: to, wake: make(chan struct{}, 1)}
}

func (l *localLink) send(m message) { l.to.receive(localConn, m) }

// deliver queues m, a message of the coordinator, for receive.
func (l *localLink) deliver(m message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, m)
	l.wakeWriter()
}

func (l *localLink) wakeWriter() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *localLink) receive() (message, error) {
	for {
		l.mu.Lock()
		if len(l.queue) > 0 {
			m := l.queue[0]
			l.queue = l.queue[1:]
			l.mu.Unlock()
			return m, nil
		}
		over := l.over
		l.mu.Unlock()
		if over {
			return nil, io.EOF
		}
		<-l.wake
	}
}

func (l *localLink) unread() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.queue) > 0
}

func (l *localLink) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.over = true
	l.wakeWriter()
}

func (*localLink) drain(time.Duration) {}

func (l *localLink) close() { l.end() }
