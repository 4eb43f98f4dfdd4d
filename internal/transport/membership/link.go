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

// link is a process's end of its connection to the coordinator.
type link interface {
	// send queues a message and returns at once. A message that cannot be sent is lost with the
	// link; receive then reports the error.
	send(message)

	// receive waits for the next message. One goroutine receives.
	receive() (message, error)

	// unread reports whether something has arrived that receive has not read yet.
	unread() bool

	// end sends what is queued and then closes the sending direction; it does not wait.
	end()

	// drain reads and drops messages until the other side ends or the time is over. After end,
	// it lets the other side read what was sent last: closing a socket with unread bytes resets
	// it, and that may destroy sent bytes.
	drain(limit time.Duration)

	// close ends the link at once, and waits until its goroutines have ended.
	close()
}

// maxQueue bounds the bytes that wait to be written to one peer. A peer that is that far behind
// reads nothing at all.
const maxQueue = 16 * maxFrame

// conn is a link over a network connection. One goroutine writes, so that senders
// never wait for a peer.
type conn struct {
	nc       net.Conn
	patience time.Duration // bounds one write
	scratch  []byte        // buffer of the reader
	got      uint32        // messages that the reader has read
	wake     chan struct{} // something to write, or ended
	written  chan struct{} // closed when the writer is done

	mu    sync.Mutex
	queue []byte
	sent  uint32 // messages that went into the queue
	over  bool
	idle  chan struct{} // closed when all that was queued is written; nil before
}

func newConn(nc net.Conn, patience time.Duration) *conn {
	c := &conn{nc: nc, patience: patience, wake: make(chan struct{}, 1), written: make(chan struct{})}
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

// flush waits until all queued bytes are passed to the system, or until late.
func (c *conn) flush(late <-chan time.Time) {
	c.mu.Lock()
	idle := c.idle
	c.mu.Unlock()
	if idle == nil {
		return
	}
	select {
	case <-idle:
	case <-c.written:
	case <-late:
	}
}

// wakeWriter wakes the writer.
func (c *conn) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// write writes what is queued until the link ends.
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
					c.nc.Close() // the reader notices it
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

// put writes bytes to the peer, which must make room within patience. If this process was
// stopped or starved, so that the write had no turn before its deadline, it is tried again: the
// peer was not late.
func (c *conn) put(b []byte) error {
	c.nc.SetWriteDeadline(time.Now().Add(c.patience))
	n, err := c.nc.Write(b)
	if _, secure := c.nc.(*tls.Conn); secure || !errors.Is(err, os.ErrDeadlineExceeded) {
		return err // a TLS connection is of no use after a timeout
	}
	c.nc.SetWriteDeadline(time.Now().Add(c.patience))
	_, err = c.nc.Write(b[n:])
	return err
}

// peerClosed reports whether a write failed because the peer has closed the connection. Then the
// reader finds the end by itself, after the peer's last message, which may be a good-bye.
func peerClosed(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

func (c *conn) receive() (message, error) {
	m, err := readFrame(c.nc, c.got, &c.scratch)
	c.got++
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

// lossReason says how a link was lost, in words that follow "rank 3 ...", and returns the kind
// of error. A process that dies and one that closes look alike, and differently from one system
// to another.
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

// localLink is the link of the coordinator's own process.
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

func (l *localLink) send(m message) { l.to.receive(local, m) }

// deliver queues a message of the coordinator.
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
