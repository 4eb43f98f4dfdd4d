package remote

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/superstep-ml/superstep/internal/peerlink"
	"github.com/superstep-ml/superstep/internal/silence"
	"github.com/superstep-ml/superstep/internal/transport"
)

// conn is one end of a connection after its handshake. One goroutine reads and another
// goroutine writes. Senders put frames into the queue.
//
// A connection has these states:
//
//	           leave: good-bye is queued          good-bye received
//	open ─────────────────────────────────► leaving ─────────────► over
//	  │                                        │                    ▲
//	  │ good-bye received: answered at once    │ end, error, timeout│
//	  ├────────────────────────────────────────┴────────────────────┤
//	  │ end, error, silence, damage: the network fails              │
//	  └─────────────────────────────────────────────────────────────┘
//
// A good-bye is the last frame that a side sends. After it, the side closes its sending
// direction. The side that has sent its good-bye first reads until the good-bye of the other
// side arrives: if it closed a socket with unread bytes, the connection would be reset, and
// bytes that the other side has not read yet would be lost.
type conn struct {
	n         *Network
	nc        net.Conn
	worker    int // number of the worker at the other end
	address   string
	reader    *bufio.Reader
	readErr   error  // error of the last read of the socket; used only by the reading goroutine
	nextFrame uint32 // number of the next frame to read
	body      frameReader
	side      side // set before the goroutines start
	accepted  bool // the other side made the connection; set before the goroutines start

	reads    atomic.Uint64   // number of reads that returned bytes
	wrote    atomic.Bool     // bytes have been written since the last heartbeat was due
	sendGate *transport.Gate // gate whose free amount is the number of bytes of messages that may still be queued

	// The following fields are used only by Network.watch.
	lastReads uint64 // value of reads at the last tick
	liveness  silence.Peer
	lastHeard time.Time // time of the last tick at which reads had changed

	mu         sync.Mutex
	queue      []*[]byte
	nextNumber uint32          // number of the next frame to queue
	queued     uint32          // number of frames in the queue
	tail       *[]byte         // the last buffer of the queue, if small frames may be added to it
	unwritten  int64           // number of bytes of messages that have not been written yet
	backlog    int64           // number of bytes of other frames in the queue
	sent       map[*codec]bool // codecs whose schemas have been queued
	leaving    bool            // the good-bye has been queued
	peerLeft   bool            // the good-bye of the other side has been received
	written    bool            // the good-bye has been written
	over       bool
	lost       bool // the connection ended before all queued messages were written

	wake chan struct{}
	quit chan struct{} // closed when over is set
	done sync.WaitGroup
}

const (
	readBuffer  = 4 << 10 // bytes of a read buffer; it holds many small frames, and reads of rows bypass it
	smallFrame  = 2 << 10 // frames up to this length are put into one buffer
	smallBuffer = 8 << 10
	keptBuffer  = 1 << 20 // larger buffers are not reused

	// damageReportTimeout bounds how long a side waits until the other side has read its report
	// of damage.
	damageReportTimeout = 2 * time.Second

	// maxBacklog bounds the number of bytes of queued frames other than messages. A worker that
	// reads nothing could otherwise make the queue grow without bound.
	maxBacklog = 64 << 20
)

func (n *Network) newConn(nc net.Conn, worker int, address string) *conn {
	c := &conn{
		n: n, nc: nc, worker: worker, address: address, sent: make(map[*codec]bool),
		wake: make(chan struct{}, 1), quit: make(chan struct{}), lastHeard: time.Now(),
	}
	c.sendGate = transport.NewGate(n.cfg.window)
	c.reader = bufio.NewReaderSize((*socket)(c), readBuffer)
	c.body = frameReader{source: c.reader, summed: n.summed(), edgeName: n.cfg.EdgeName}
	return c
}

// side handles the frames that are received at one end of a connection. Only the reading
// goroutine calls its methods.
type side interface {
	// handle handles a frame of kind k. It must read the whole body, which has the given
	// length, from conn.body.
	handle(k kind, length int) error

	// finish is called after the last frame.
	finish()
}

// start starts the reading and the writing goroutine.
func (c *conn) start(s side) {
	c.side = s
	c.done.Go(c.read)
	c.done.Go(c.write)
}

// socket reads from the socket of a conn. It counts the reads that returned bytes, and records
// errors.
type socket conn

func (s *socket) Read(p []byte) (int, error) {
	n, err := s.nc.Read(p)
	if n > 0 {
		s.reads.Add(1)
	}
	if err != nil {
		s.readErr = err
	}
	return n, err
}

// read handles frames until the other side sends its good-bye, or the connection ends.
func (c *conn) read() {
	switch err := c.frames(); {
	case err == nil:
		c.answerGoodbye()
	case errors.Is(err, ErrDamaged):
		c.reportDamage(err)
	default:
		c.broken(err)
	}
	c.side.finish()
	c.n.forget(c)
}

// frames handles frames until it has received a good-bye, after which it returns nil, or until
// an error occurs.
func (c *conn) frames() error {
	for {
		head, err := c.reader.Peek(headBytes)
		if err != nil {
			return err
		}
		h, err := parseHead(head, c.nextFrame, c.n.cfg.maxMessage)
		if err != nil {
			return err
		}
		c.reader.Discard(headBytes)
		c.body.begin(h)
		k, length := h.kind, h.length
		c.nextFrame++
		switch {
		case k == kindBye:
			return nil
		case k == kindBeat:
		case k == kindDamaged:
			text := make([]byte, length)
			if _, err := io.ReadFull(&c.body, text); err != nil {
				return err
			}
			return &damageReport{strings.ToValidUTF8(string(text), "\uFFFD")}
		case c.ended():
			if _, err := io.CopyN(io.Discard, &c.body, length); err != nil {
				return err
			}
		default:
			if err := c.side.handle(k, int(length)); err != nil {
				switch {
				case c.body.damageErr != nil: // damage takes precedence over other errors, as it may have caused them
					return c.body.damageErr
				case c.readErr != nil:
					return c.readErr
				}
				return err
			}
			if rest := c.body.rest(); rest != 0 {
				return peerlink.Violation("a %v of %d bytes, %d too many", k, length, rest)
			}
		}
	}
}

// ended reports whether this side has queued its last frame. If so, received frames are
// ignored.
func (c *conn) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leaving
}

// answerGoodbye is called after the other side's good-bye. It sends a good-bye, and waits until
// the good-bye is written and the connection has ended.
func (c *conn) answerGoodbye() {
	c.n.left(c)
	c.queueGoodbye(true)
	c.mu.Lock()
	c.peerLeft = true
	written := c.written
	c.mu.Unlock()
	if written {
		c.end()
	}
	<-c.quit
}

// queueGoodbye queues the good-bye. If drop is set, it first drops the queued frames.
func (c *conn) queueGoodbye(drop bool) {
	c.sendGate.Shut(ErrLeft)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving || c.over {
		return
	}
	c.nc.SetDeadline(time.Now().Add(closeTimeout))
	if drop {
		c.dropQueue()
	}
	c.queueSmall(frame(kindBye, c.body.summed))
	c.leaving = true
	c.wakeWriter()
}

// dropQueue drops the queued frames. It resets the number of the next frame, so that the frame
// numbers that the other side receives have no gap. The caller holds mu.
func (c *conn) dropQueue() {
	c.nextNumber -= c.queued
	c.queued = 0
	for _, b := range c.queue {
		c.n.recycle(b)
	}
	c.queue, c.tail, c.unwritten = nil, nil, 0
}

// reportDamage ends the connection because of damaged bytes. It reports the damage to the other
// side, which would otherwise consider this side lost, and waits until the other side has read
// the report.
func (c *conn) reportDamage(err error) {
	var theirs *damageReport
	c.mu.Lock()
	if c.leaving || c.peerLeft || c.over || errors.As(err, &theirs) {
		c.mu.Unlock()
		c.broken(err)
		return
	}
	c.dropQueue()
	text := err.Error()
	c.queueSmall(frame(kindDamaged, c.body.summed, []byte(text[:min(len(text), maxReason)])))
	c.leaving = true // no more frames are sent
	c.wakeWriter()
	c.mu.Unlock()
	c.n.fail(c.n.lost(c.worker, c.address, c.n.reason(err), err))
	c.nc.SetDeadline(time.Now().Add(damageReportTimeout))
	io.Copy(io.Discard, c.nc)
	c.end()
}

// broken ends the connection because of err. The network fails with the error, unless one of
// the two sides was leaving. If the dialer closes the connection before its first frame, it
// left while it was connecting; this is not a failure, as no message is lost.
func (c *conn) broken(err error) {
	c.mu.Lock()
	quiet := c.leaving || c.peerLeft || c.over || c.accepted && c.reads.Load() == 0 && peerlink.IsClosed(err)
	c.mu.Unlock()
	if !quiet {
		c.n.fail(c.n.lost(c.worker, c.address, c.n.reason(err), err))
	}
	c.end()
}

// end closes the connection at once, and drops the queue.
func (c *conn) end() {
	c.sendGate.Shut(ErrLeft)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.over = true
	c.lost = c.unwritten > 0
	c.dropQueue()
	close(c.quit)
	c.nc.Close()
}

// wakeWriter wakes the writer.
func (c *conn) wakeWriter() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// post queues a small frame without waiting. After a good-bye it does nothing.
func (c *conn) post(frame []byte) {
	c.mu.Lock()
	if c.leaving || c.over {
		c.mu.Unlock()
		return
	}
	c.queueSmall(frame)
	c.backlog += int64(len(frame))
	full := c.backlog > maxBacklog
	c.wakeWriter()
	c.mu.Unlock()
	if full {
		c.broken(fmt.Errorf("%d bytes of answers are not taken", maxBacklog))
	}
}

// queueSmall adds a small frame to the queue. Several small frames share one buffer. The caller
// holds mu.
func (c *conn) queueSmall(frame []byte) {
	c.setNumber(frame)
	if c.tail == nil || len(*c.tail)+len(frame) > smallBuffer {
		c.tail = c.n.buffer(smallBuffer)
		c.queue = append(c.queue, c.tail)
	}
	*c.tail = append(*c.tail, frame...)
}

// setNumber sets the number of a frame that is being queued. The caller holds mu.
func (c *conn) setNumber(frame []byte) {
	stamp(frame, c.nextNumber)
	c.nextNumber++
	c.queued++
}

// errOver is the error of push after the end of the connection.
var errOver = errors.New("the connection is over")

// push queues a message. If the schema of rows has not been sent yet, push queues the schema
// before the message. b has the frame of the message. After the call, the connection owns b,
// even if push returns an error.
func (c *conn) push(b *[]byte, rows *codec) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving || c.over {
		c.n.recycle(b)
		return errOver
	}
	if rows != nil && !c.sent[rows] {
		c.sent[rows] = true
		frame := schemaFrame(rows, c.body.summed)
		c.setNumber(frame)
		c.queue, c.tail = append(c.queue, &frame), nil
	}
	c.unwritten += int64(len(*b))
	if len(*b) <= smallFrame {
		c.queueSmall(*b)
		c.n.recycle(b)
	} else {
		c.setNumber(*b)
		c.queue, c.tail = append(c.queue, b), nil
	}
	c.wakeWriter()
	return nil
}

// write writes queued frames until it has written the last frame or the connection has ended.
func (c *conn) write() {
	var batch net.Buffers
	for {
		c.mu.Lock()
		queue, counted, last := c.queue, c.unwritten, c.leaving
		c.queue, c.tail, c.backlog, c.queued = nil, nil, 0, 0
		c.mu.Unlock()
		if len(queue) > 0 {
			batch = batch[:0]
			for _, b := range queue {
				batch = append(batch, *b)
			}
			out := batch
			_, err := out.WriteTo(c.nc)
			clear(batch)
			for _, b := range queue {
				c.n.recycle(b)
			}
			if err != nil {
				c.broken(err)
				return
			}
			c.wrote.Store(true)
			c.mu.Lock()
			c.unwritten -= min(counted, c.unwritten)
			c.mu.Unlock()
			c.sendGate.Leave(counted)
			if !last {
				continue
			}
		}
		if last {
			c.finish()
			return
		}
		select {
		case <-c.wake:
		case <-c.quit:
			return
		}
	}
}

// finish closes the sending direction after the last frame. It closes the whole connection if
// the other side has sent its good-bye.
func (c *conn) finish() {
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
	c.mu.Lock()
	c.written = true
	parted := c.peerLeft
	c.mu.Unlock()
	if parted {
		c.end()
	}
}

// waitEnded waits until the connection's goroutines have ended. It returns an error if the
// connection ended before all queued messages were written.
func (c *conn) waitEnded() error {
	c.done.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost {
		return fmt.Errorf("worker %d (%s) did not take all that was sent to it", c.worker, c.address)
	}
	return nil
}

// judge is called at every tick of Network.watch. It returns whether the other side counts as
// silent.
func (c *conn) judge(w *silence.Watch, now time.Time) silence.Verdict {
	if reads := c.reads.Load(); reads != c.lastReads {
		c.lastReads, c.lastHeard = reads, now
		w.Heard(&c.liveness)
	}
	verdict := w.Judge(&c.liveness)
	if verdict != silence.Alive && peerlink.Unread(c.nc) {
		w.Heard(&c.liveness)
		return silence.Alive
	}
	return verdict
}
