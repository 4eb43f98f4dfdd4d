package copies

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/superstep-ml/superstep/internal/cputime"
	"github.com/superstep-ml/superstep/internal/peerlink"
)

// link sends messages to another worker, over one connection after another. A message that was not
// acknowledged when a connection ended is sent again on the next.
type link struct {
	x       *Exchange
	to      int
	wake    chan struct{} // has an element if there may be something to send
	running bool          // guarded by Exchange.mu, as are the following

	queue        []Message // the first acknowledged of them are; then come those that are sent
	acknowledged int
	sent         int
}

// Channels of connections, in their hello.
const (
	channelLink  = iota // messages of a link; a new connection replaces the one before
	channelFetch        // a fetch
)

// run sends messages until the Exchange closes or the other worker refuses connections for good.
func (l *link) run() {
	ctx := l.x.ctx
	log := l.x.cfg.Logger.With("worker", l.to)
	for l.wait(ctx) {
		_, err := peerlink.Retry(ctx, func(ctx context.Context) (struct{}, error) {
			err := l.try(ctx)
			if errors.Is(err, peerlink.ErrDamaged) {
				log.Warn("copies were damaged on their way, and are sent again", "error", err)
			}
			return struct{}{}, err
		})
		if err != nil && ctx.Err() == nil {
			log.Warn("the worker takes no copies", "error", err)
			return
		}
	}
}

// wait waits until a message is to be sent. It returns false if ctx ends first.
func (l *link) wait(ctx context.Context) bool {
	for {
		l.x.mu.Lock()
		some := l.acknowledged < len(l.queue)
		l.x.mu.Unlock()
		if some {
			return ctx.Err() == nil
		}
		select {
		case <-l.wake:
		case <-ctx.Done():
			return false
		}
	}
}

// try connects to the worker and sends messages until the connection ends. It returns nil if the
// worker has acknowledged some. Only a refusal is final: bytes that are damaged in the handshake may
// look like another protocol.
func (l *link) try(ctx context.Context) error {
	nc, err := l.x.dial(ctx, l.to, channelLink)
	if err == nil {
		var some bool
		if some, err = l.converse(ctx, nc); some {
			err = nil
		}
	}
	if peerlink.IsFinal(err) && !errors.Is(err, peerlink.ErrRefused) {
		err = passing{err}
	}
	return err
}

// passing is an error after which another try may succeed. It hides whether the error is final.
type passing struct{ error }

func (p passing) Is(target error) bool { return errors.Is(p.error, target) }

// dial connects to another worker.
func (x *Exchange) dial(ctx context.Context, to int, channel uint32) (net.Conn, error) {
	nc, err := x.cfg.Port.Dial(ctx, x.cfg.Where(to), peerlink.Hello{
		Kind: peerlink.Copies, Epoch: x.cfg.Attempt, From: uint32(x.cfg.Worker), To: uint32(to),
		Size: uint32(x.cfg.Workers), Channel: channel, Sums: true,
	})
	if err != nil {
		if nc != nil { // the answer was damaged
			shut(nc)
		}
		return nil, err
	}
	keepAlive(nc)
	return nc, nil
}

// keepAlive makes the operating system notice that the other side of an idle connection is gone.
func keepAlive(nc net.Conn) {
	if tcp, ok := peerlink.Socket(nc).(*net.TCPConn); ok { // if it fails, the connection merely stays open longer
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second, Interval: 15 * time.Second, Count: 4})
	}
}

// converse sends messages over a connection until it ends, and closes it. some reports whether the
// worker has acknowledged messages.
func (l *link) converse(ctx context.Context, nc net.Conn) (some bool, err error) {
	stop := context.AfterFunc(ctx, func() { shut(nc) })
	defer stop()
	l.x.mu.Lock()
	l.sent = l.acknowledged
	l.x.mu.Unlock()
	over := make(chan struct{}) // closed when the reader has ended
	var reader sync.WaitGroup
	var readErr error
	reader.Go(func() {
		some, readErr = l.readAnswers(nc)
		shut(nc)
		close(over)
	})
	err = l.writeMessages(nc, over)
	shut(nc)
	reader.Wait()
	if err == nil || peerlink.IsClosed(err) { // the reader knows better
		err = readErr
	}
	return some, err
}

// readAnswers reads acknowledgements until the connection ends.
func (l *link) readAnswers(nc net.Conn) (some bool, err error) {
	r := newFrameReader(nc, nil)
	for {
		h, err := r.next()
		if err == nil && h.kind != kindReceived {
			err = peerlink.Violation("%v, where an acknowledgement is due", h.kind)
		}
		if err == nil && !l.acknowledge(nc) {
			err = peerlink.Violation("an acknowledgement of nothing")
		}
		if err != nil {
			return some, fmt.Errorf("from worker %d: %w", l.to, err)
		}
		some = true
	}
}

// acknowledge notes that the oldest message that was sent is acknowledged. It returns false if there
// is none.
func (l *link) acknowledge(nc net.Conn) bool {
	l.x.mu.Lock()
	defer l.x.mu.Unlock()
	if l.acknowledged == l.sent {
		return false
	}
	m := l.queue[l.acknowledged]
	l.acknowledged++
	if l.acknowledged == len(l.queue) {
		clear(l.queue)
		l.queue, l.acknowledged, l.sent = l.queue[:0], 0, 0
	}
	l.limit(nc)
	l.x.core.Acknowledged(m)
	wake(l.x.wake) // a state may have waited for this
	return true
}

// limit limits the time until the next acknowledgement, if one is due. mu is held.
func (l *link) limit(nc net.Conn) {
	var until time.Time
	if l.acknowledged < l.sent {
		until = time.Now().Add(l.x.cfg.Patience)
	}
	nc.SetReadDeadline(until)
}

// writeMessages writes messages until the connection ends.
func (l *link) writeMessages(nc net.Conn, over <-chan struct{}) error {
	w := newFrameWriter(nc, func() {
		nc.SetWriteDeadline(time.Now().Add(l.x.cfg.Patience))
		l.x.mu.Lock()
		l.limit(nc)
		l.x.mu.Unlock()
	})
	for {
		m, p, ok := l.next()
		if ok {
			if err := l.write(w, m, p); err != nil {
				return err
			}
			continue
		}
		if err := w.flush(); err != nil {
			return err
		}
		select {
		case <-l.wake:
		case <-over:
			return nil
		}
	}
}

// next returns the next message to be sent, and its piece. The caller releases the piece. A piece
// that the Store has dropped, because a newer state is complete, counts as acknowledged.
func (l *link) next() (m Message, p *piece, ok bool) {
	l.x.mu.Lock()
	defer l.x.mu.Unlock()
	for l.sent < len(l.queue) {
		m = l.queue[l.sent]
		if m.kind != kindPiece {
			l.sent++
			return m, nil, true
		}
		if p = l.x.cfg.Store.acquire(m.State, m.piece); p != nil {
			l.sent++
			return m, p, true
		}
		l.queue = slices.Delete(l.queue, l.sent, l.sent+1)
		l.x.core.Acknowledged(m)
	}
	return Message{}, nil, false
}

// write writes a message.
func (l *link) write(w *frameWriter, m Message, p *piece) (err error) {
	if p == nil {
		return w.write(m, nil, 0)
	}
	defer l.x.cfg.Store.release(p)
	l.x.metered(m.Queue, len(p.data), func() { err = w.write(m, p.data, p.sum) })
	return err
}

// meteredBytes is the least length of a piece whose transfer is metered. To measure costs a wait about as
// much as the transfer of so many bytes.
const meteredBytes = 64 << 10

// metered calls f, which sends or receives so many bytes of a piece of a queue, and tells Config.Spent what
// that takes.
func (x *Exchange) metered(queue string, length int, f func()) {
	if length < meteredBytes {
		f()
		return
	}
	x.cfg.Spent(queue, cputime.Of(f))
}
