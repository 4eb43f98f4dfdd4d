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

// conn is one connection after its handshake, at either end. One goroutine reads and one
// writes; senders put frames into the queue.
//
// Its life:
//
//	           leave: good-bye is queued            good-bye heard
//	open ─────────────────────────────────► leaving ─────────────► over
//	  │                                        │                    ▲
//	  │ good-bye heard: answered at once       │ end, error, late   │
//	  ├────────────────────────────────────────┴────────────────────┤
//	  │ end, error, silence, damage: the network fails              │
//	  └─────────────────────────────────────────────────────────────┘
//
// A good-bye is the last frame, and after it the writing half is closed. The side that sent it
// first goes on reading until the answer comes: closing a socket with unread bytes would reset
// it, and destroy what the other side has not read yet.
type conn struct {
	n       *Network
	nc      net.Conn
	worker  int // worker at the other end
	address string
	in      *bufio.Reader
	readErr error  // error of the socket, for the reader
	frame   uint32 // number of the next one to read
	body    frameReader
	side    side // set before the start
	greeted bool // the other side made it; set before the start

	reads atomic.Uint64   // reads that returned bytes
	wrote atomic.Bool     // something was written since the last beat
	room  *transport.Gate // bytes of messages that may still be queued

	// Used only by the network's watch.
	seen     uint64 // reads at the last tick
	liveness silence.Peer
	heard    time.Time // when reads was last seen to grow

	mu      sync.Mutex
	queue   []*[]byte
	number  uint32          // of the next frame to queue
	queued  uint32          // frames in the queue
	tail    *[]byte         // the last of the queue, if small frames may be added to it
	counted int64           // bytes of messages in the queue
	backlog int64           // bytes of other frames in it
	sent    map[*codec]bool // schemas that were sent
	leaving bool            // the good-bye is queued
	parted  bool            // the good-bye of the other side was heard
	written bool            // the good-bye is written
	over    bool
	lost    bool // something that was queued was not written

	wake chan struct{}
	quit chan struct{} // closed when over
	done sync.WaitGroup
}

const (
	readBuffer  = 4 << 10 // room for many small frames; rows bypass it
	smallFrame  = 2 << 10 // frames up to this size are packed together
	smallBuffer = 8 << 10
	keptBuffer  = 1 << 20 // larger buffers are not reused

	// damageReportTimeout bounds the wait for the other side to read the report that its bytes
	// arrived damaged.
	damageReportTimeout = 2 * time.Second

	// maxBacklog bounds the queued answers to a worker that keeps asking and reads nothing.
	maxBacklog = 64 << 20
)

func (n *Network) newConn(nc net.Conn, worker int, address string) *conn {
	c := &conn{
		n: n, nc: nc, worker: worker, address: address, sent: make(map[*codec]bool),
		wake: make(chan struct{}, 1), quit: make(chan struct{}), heard: time.Now(),
	}
	c.room = transport.NewGate(n.cfg.window)
	c.in = bufio.NewReaderSize((*socket)(c), readBuffer)
	c.body = frameReader{from: c.in, summed: n.summed(), names: n.cfg.EdgeName}
	return c
}

// side handles the frames at one end of a connection. The reading goroutine calls it.
type side interface {
	// handle reads the body of a frame, of the given kind and length, from the connection's
	// body.
	handle(k kind, length int) error

	// finish is called when nothing more is read.
	finish()
}

// start starts the reader and the writer of the connection.
func (c *conn) start(s side) {
	c.side = s
	c.done.Go(c.read)
	c.done.Go(c.write)
}

// socket is the reading side of a connection: it records that bytes have arrived.
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
		c.answer()
	case errors.Is(err, ErrDamaged):
		c.reportDamage(err)
	default:
		c.broken(err)
	}
	c.side.finish()
	c.n.forget(c)
}

// frames handles frames, and returns nil after a good-bye.
func (c *conn) frames() error {
	for {
		head, err := c.in.Peek(headBytes)
		if err != nil {
			return err
		}
		h, err := parseHead(head, c.frame, c.n.cfg.maxMessage)
		if err != nil {
			return err
		}
		c.in.Discard(headBytes)
		c.body.begin(h)
		k, length := h.kind, h.length
		c.frame++
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
				case c.body.damaged != nil: // takes precedence over other errors
					return c.body.damaged
				case c.readErr != nil:
					return c.readErr
				}
				return err
			}
			if rest := c.body.rest(); rest != 0 {
				return violation("a %v of %d bytes, %d too many", k, length, rest)
			}
		}
	}
}

// ended reports whether this side has sent its good-bye, so that incoming frames are ignored.
func (c *conn) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leaving
}

// answer sends a good-bye because the other side did, and ends the connection when it is
// written.
func (c *conn) answer() {
	c.n.left(c)
	c.leave(true)
	c.mu.Lock()
	c.parted = true
	written := c.written
	c.mu.Unlock()
	if written {
		c.end()
	}
	<-c.quit
}

// leave queues the good-bye, after the queued frames or instead of them.
func (c *conn) leave(drop bool) {
	c.room.Shut(ErrLeft)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving || c.over {
		return
	}
	c.nc.SetDeadline(time.Now().Add(closeTimeout))
	if drop {
		c.drop()
	}
	c.small(frame(kindBye, c.body.summed))
	c.leaving = true
	c.wakeWriter()
}

// drop drops the queued frames. The next frames get their numbers, so that the other side
// misses nothing.
func (c *conn) drop() {
	c.number -= c.queued
	c.queued = 0
	for _, b := range c.queue {
		c.n.recycle(b)
	}
	c.queue, c.tail, c.counted = nil, nil, 0
}

// reportDamage ends the connection because bytes arrived damaged. It reports this to the other
// side, which would otherwise take this one for lost, and waits until that has read the report.
func (c *conn) reportDamage(err error) {
	var theirs *damageReport
	c.mu.Lock()
	if c.leaving || c.parted || c.over || errors.As(err, &theirs) {
		c.mu.Unlock()
		c.broken(err)
		return
	}
	c.drop()
	text := err.Error()
	c.small(frame(kindDamaged, c.body.summed, []byte(text[:min(len(text), maxReason)])))
	c.leaving = true // and send nothing more
	c.wakeWriter()
	c.mu.Unlock()
	c.n.fail(c.n.lost(c.worker, c.address, c.n.reason(err), err))
	c.nc.SetDeadline(time.Now().Add(damageReportTimeout))
	io.Copy(io.Discard, c.nc)
	c.end()
}

// broken ends the connection because of an error. The error makes the network fail, unless one of
// the two sides was leaving. A side that closes before its first frame has left while it was
// still connecting: nothing that it sent is lost.
func (c *conn) broken(err error) {
	c.mu.Lock()
	quiet := c.leaving || c.parted || c.over || c.greeted && c.reads.Load() == 0 && peerlink.IsClosed(err)
	c.mu.Unlock()
	if !quiet {
		c.n.fail(c.n.lost(c.worker, c.address, c.n.reason(err), err))
	}
	c.end()
}

// end closes the connection at once.
func (c *conn) end() {
	c.room.Shut(ErrLeft)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.over {
		return
	}
	c.over = true
	c.lost = c.counted > 0
	c.drop()
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

// post queues a small frame. It does not wait; after a good-bye it does nothing.
func (c *conn) post(frame []byte) {
	c.mu.Lock()
	if c.leaving || c.over {
		c.mu.Unlock()
		return
	}
	c.small(frame)
	c.backlog += int64(len(frame))
	full := c.backlog > maxBacklog
	c.wakeWriter()
	c.mu.Unlock()
	if full {
		c.broken(fmt.Errorf("%d bytes of answers are not taken", maxBacklog))
	}
}

// small adds a frame to the queue, in the same buffer as other small ones if there is room. The
// caller holds the lock.
func (c *conn) small(frame []byte) {
	c.count(frame)
	if c.tail == nil || len(*c.tail)+len(frame) > smallBuffer {
		c.tail = c.n.buffer(smallBuffer)
		c.queue = append(c.queue, c.tail)
	}
	*c.tail = append(*c.tail, frame...)
}

// count numbers the next frame of the queue. The caller holds the lock.
func (c *conn) count(frame []byte) {
	stamp(frame, c.number)
	c.number++
	c.queued++
}

// errParted says that the connection is over.
var errParted = errors.New("the connection is over")

// push queues a message. b holds the schema that the message needs, and the message behind it.
// The connection owns the buffer from then on, even if push fails.
func (c *conn) push(b *[]byte, rows *codec) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leaving || c.over {
		c.n.recycle(b)
		return errParted
	}
	if rows != nil && !c.sent[rows] {
		c.sent[rows] = true
		frame := schemaFrame(rows, c.body.summed)
		c.count(frame)
		c.queue, c.tail = append(c.queue, &frame), nil
	}
	c.counted += int64(len(*b))
	if len(*b) <= smallFrame {
		c.small(*b)
		c.n.recycle(b)
	} else {
		c.count(*b)
		c.queue, c.tail = append(c.queue, b), nil
	}
	c.wakeWriter()
	return nil
}

// write writes queued frames until the good-bye is written or the connection is over.
func (c *conn) write() {
	var batch net.Buffers
	for {
		c.mu.Lock()
		queue, counted, last := c.queue, c.counted, c.leaving
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
			c.counted -= min(counted, c.counted)
			c.mu.Unlock()
			c.room.Leave(counted)
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

// finish closes the writing half after the good-bye, or both halves if the other side has sent
// its own.
func (c *conn) finish() {
	if half, ok := c.nc.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
	c.mu.Lock()
	c.written = true
	parted := c.parted
	c.mu.Unlock()
	if parted {
		c.end()
	}
}

// settle waits until the connection's goroutines have ended, and fails if something that was
// queued was not written.
func (c *conn) settle() error {
	c.done.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost {
		return fmt.Errorf("worker %d (%s) did not take all that was sent to it", c.worker, c.address)
	}
	return nil
}

// look is called at every tick of the network's watch, and returns the verdict on the other
// side's silence.
func (c *conn) look(w *silence.Watch, now time.Time) silence.Verdict {
	if reads := c.reads.Load(); reads != c.seen {
		c.seen, c.heard = reads, now
		w.Heard(&c.liveness)
	}
	verdict := w.Judge(&c.liveness)
	if verdict != silence.Alive && peerlink.Unread(c.nc) {
		w.Heard(&c.liveness)
		return silence.Alive
	}
	return verdict
}
