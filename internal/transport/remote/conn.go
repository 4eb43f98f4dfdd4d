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

// conn is one connection after its handshake, at either end. One goroutine reads and
// one writes; who has something to send leaves it in the queue.
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
// A good-bye is the last frame, and after it the writing half is closed. Who said it
// first goes on reading until it is answered: closing a socket in which something
// waits unread would reset it, and destroy what the other side has not read yet.
type conn struct {
	n       *Network
	nc      net.Conn
	worker  int // at the other end
	address string
	in      *bufio.Reader
	readErr error  // of the socket, for the reader
	frame   uint32 // number of the next one to read
	body    frameReader
	side    side // set before the start
	greeted bool // the other side made it; set before the start

	reads atomic.Uint64   // that gave something
	wrote atomic.Bool     // since the last beat
	room  *transport.Gate // bytes of messages that may still be queued

	// Of the network's watch alone.
	seen  uint64 // reads at the last tick
	ear   silence.Peer
	heard time.Time // when reads was last seen to grow

	mu      sync.Mutex
	queue   []*[]byte
	number  uint32          // of the next frame to queue
	queued  uint32          // frames in the queue
	tail    *[]byte         // the last of the queue, if small frames may be added to it
	counted int64           // bytes of messages in the queue
	backlog int64           // bytes of other frames in it
	sent    map[*codec]bool // schemas that are sent
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
	readBuffer  = 4 << 10 // takes many small frames at once; rows go past it
	smallFrame  = 2 << 10 // up to here frames are packed together
	smallBuffer = 8 << 10
	keptBuffer  = 1 << 20 // larger ones are not used again

	// accuseTimeout bounds the wait for the other side to read that it sent what arrived
	// damaged.
	accuseTimeout = 2 * time.Second

	// maxBacklog bounds the answers to one who asks and asks, and reads nothing.
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

// side is what one end of a connection does with what it hears. The goroutine that
// reads calls it.
type side interface {
	// handle reads the given bytes, which follow the head of a frame of a kind, from
	// the connection's body.
	handle(k kind, length int) error

	// finish is called when nothing more is read.
	finish()
}

// start has the connection read and written.
func (c *conn) start(s side) {
	c.side = s
	c.done.Go(c.read)
	c.done.Go(c.write)
}

// socket is the reading side of a connection: it notes that something came.
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

// read handles frames until the other side says good-bye, or the connection ends.
func (c *conn) read() {
	switch err := c.frames(); {
	case err == nil:
		c.answer()
	case errors.Is(err, ErrDamaged):
		c.accuse(err)
	default:
		c.broken(err)
	}
	c.side.finish()
	c.n.forget(c)
}

// frames returns nil after a good-bye.
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
			return &accusation{strings.ToValidUTF8(string(text), "\uFFFD")}
		case c.ended():
			if _, err := io.CopyN(io.Discard, &c.body, length); err != nil {
				return err
			}
		default:
			if err := c.side.handle(k, int(length)); err != nil {
				switch {
				case c.body.damaged != nil: // whatever was made of it
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

// ended reports whether this side has said good-bye, so that what comes is not heard.
func (c *conn) ended() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.leaving
}

// answer says good-bye because the other side did, and ends the connection when it
// is written.
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

// leave has the good-bye sent, after what is queued unless that is to be dropped.
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
	c.poke()
}

// drop gives up what is queued. Nobody misses the frames: their numbers are those of the
// next ones.
func (c *conn) drop() {
	c.number -= c.queued
	c.queued = 0
	for _, b := range c.queue {
		c.n.recycle(b)
	}
	c.queue, c.tail, c.counted = nil, nil, 0
}

// accuse ends the connection as what came was damaged, and says so to the other side,
// which would else find that this one was lost. It waits until that has been read.
func (c *conn) accuse(err error) {
	var theirs *accusation
	c.mu.Lock()
	if c.leaving || c.parted || c.over || errors.As(err, &theirs) {
		c.mu.Unlock()
		c.broken(err)
		return
	}
	c.drop()
	text := err.Error()
	c.small(frame(kindDamaged, c.body.summed, []byte(text[:min(len(text), maxReason)])))
	c.leaving = true // and say nothing more
	c.poke()
	c.mu.Unlock()
	c.n.fail(c.n.lost(c.worker, c.address, c.n.reason(err), err))
	c.nc.SetDeadline(time.Now().Add(accuseTimeout))
	io.Copy(io.Discard, c.nc)
	c.end()
}

// broken ends the connection for an error, which is the network's failure unless one
// of the two sides was leaving. Who hangs up before its first frame has left while it
// was still connecting: nothing that it sent is lost.
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

// poke wakes the writer.
func (c *conn) poke() {
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
	c.poke()
	c.mu.Unlock()
	if full {
		c.broken(fmt.Errorf("%d bytes of answers are not taken", maxBacklog))
	}
}

// small adds a frame to the queue, behind other small ones in the same buffer if
// there is room, under the lock.
func (c *conn) small(frame []byte) {
	c.count(frame)
	if c.tail == nil || len(*c.tail)+len(frame) > smallBuffer {
		c.tail = c.n.buffer(smallBuffer)
		c.queue = append(c.queue, c.tail)
	}
	*c.tail = append(*c.tail, frame...)
}

// count numbers the next frame of the queue, under the lock.
func (c *conn) count(frame []byte) {
	stamp(frame, c.number)
	c.number++
	c.queued++
}

// errParted says that there is nobody to send to any more.
var errParted = errors.New("the connection is over")

// push queues a message, which is in b behind the schema that it needs. The buffer is
// the connection's from then on, also if it fails.
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
	c.poke()
	return nil
}

// write writes what is queued until the good-bye is out or the connection is over.
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

// finish closes the writing half after the good-bye, or all if the other side has
// said its own.
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

// settle waits until nothing of the connection runs, and reports whether all that was
// queued is written.
func (c *conn) settle() error {
	c.done.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost {
		return fmt.Errorf("worker %d (%s) did not take all that was sent to it", c.worker, c.address)
	}
	return nil
}

// look is called at every tick of the network's watch: it says what the silence of the
// other side means.
func (c *conn) look(w *silence.Watch, now time.Time) silence.Verdict {
	if reads := c.reads.Load(); reads != c.seen {
		c.seen, c.heard = reads, now
		w.Heard(&c.ear)
	}
	verdict := w.Judge(&c.ear)
	if verdict != silence.Alive && peerlink.Unread(c.nc) {
		w.Heard(&c.ear)
		return silence.Alive
	}
	return verdict
}
