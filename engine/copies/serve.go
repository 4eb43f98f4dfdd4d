package copies

import (
	"encoding/binary"
	"errors"
	"net"
	"time"

	"github.com/superstep-ml/superstep/internal/peerlink"
)

// accept says from whom an accepted connection is.
type accept struct {
	from    int
	channel uint32
}

// serve takes an accepted connection.
func (x *Exchange) serve(c *peerlink.Caller) error {
	h := c.Hello
	switch {
	case int(h.To) != x.cfg.Worker:
		return peerlink.Refuse("this is worker %d, not %d", x.cfg.Worker, h.To)
	case int(h.Size) != x.cfg.Workers || int(h.From) >= x.cfg.Workers || int(h.From) == x.cfg.Worker:
		return peerlink.Refuse("worker %d of %d has nothing to do with worker %d of %d", h.From, h.Size, x.cfg.Worker, x.cfg.Workers)
	case h.Channel > channelFetch:
		return peerlink.Refuse("channel %d of a connection for copies has no meaning", h.Channel)
	}
	if err := c.Welcome(); err != nil {
		return err
	}
	keepAlive(c.Conn)
	from := accept{int(h.From), h.Channel}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.closed {
		return errClosed
	}
	if from.channel == channelLink { // the dialer has given up the one before
		for nc, other := range x.accepts {
			if other == from {
				shut(nc)
			}
		}
	}
	x.accepts[c.Conn] = from
	x.work.Go(func() { x.answerAll(c.Conn, from) })
	return nil
}

// answerAll answers the frames of a connection until it ends.
func (x *Exchange) answerAll(nc net.Conn, from accept) {
	a := &answerer{x: x, nc: nc, accept: from}
	a.r = newFrameReader(nc, func() { nc.SetReadDeadline(time.Now().Add(x.cfg.Patience)) })
	a.w = newFrameWriter(nc, func() { nc.SetWriteDeadline(time.Now().Add(x.cfg.Patience)) })
	err := a.answerNext()
	for err == nil {
		err = a.answerNext()
	}
	shut(nc)
	x.mu.Lock()
	delete(x.accepts, nc)
	x.mu.Unlock()
	switch log := x.cfg.Logger.With("worker", from.from); {
	case errors.Is(err, peerlink.ErrDamaged):
		log.Warn("copies were damaged on their way, and the connection is made anew", "error", err)
	case errors.Is(err, peerlink.ErrProtocol):
		log.Warn("a connection for copies is closed", "error", err)
	default:
		log.Debug("a connection for copies has ended", "error", err)
	}
}

// answerer answers the frames of a connection.
type answerer struct {
	x  *Exchange
	nc net.Conn
	accept
	r *frameReader
	w *frameWriter
}

// answerNext answers the next frame.
func (a *answerer) answerNext() error {
	idle := time.Time{}
	if a.channel == channelFetch { // which is not idle for long
		idle = time.Now().Add(a.x.cfg.Patience)
	}
	a.nc.SetReadDeadline(idle)
	h, err := a.r.next()
	if err != nil {
		return err
	}
	switch h.kind {
	case kindPiece:
		err = a.take(h)
	case kindReport, kindOutcome, kindGather, kindGathered, kindNarrow:
		to0 := h.kind == kindReport || h.kind == kindGathered
		if to0 && a.x.cfg.Worker != 0 || !to0 && a.from != 0 {
			return peerlink.Violation("%v from worker %d to worker %d", h.kind, a.from, a.x.cfg.Worker)
		}
		a.x.mu.Lock()
		a.x.core.Received(a.from, h.Message)
		wake(a.x.wake) // a state may have waited for this
		a.x.mu.Unlock()
	case kindFetch:
		return a.give(h)
	default:
		return peerlink.Violation("%v, which answers nothing", h.kind)
	}
	if err == nil {
		err = a.w.write(Message{kind: kindReceived}, nil, 0)
	}
	if err == nil && !a.r.more() { // the dialer does not wait for one acknowledgement after another
		err = a.w.flush()
	}
	return err
}

// take reads a piece into the Store. A piece that comes once more takes no memory.
func (a *answerer) take(h head) (err error) {
	store := a.x.cfg.Store
	if !store.wants(h.State, h.piece) {
		return a.r.skip(h.length)
	}
	p := store.take(h.Queue, int(h.length))
	a.x.metered(h.Queue, int(h.length), func() { p.data, p.sum, err = a.r.body(p.data, h.length) })
	if err != nil {
		store.release(p)
		return err
	}
	store.put(h.State, h.piece, p)
	return nil
}

// give sends the pieces that a fetch asks for.
func (a *answerer) give(h head) error {
	list, _, err := a.r.body(nil, h.length)
	if err != nil {
		return err
	}
	for len(list) > 0 {
		number, n := binary.Uvarint(list)
		if n <= 0 || number >= uint64(h.Of) {
			return peerlink.Violation("a fetch of %s, of no piece", h.State)
		}
		list = list[n:]
		if err := a.givePiece(h.State, int(number)); err != nil {
			return err
		}
	}
	return a.w.flush()
}

// givePiece sends a piece, or says that it is not here.
func (a *answerer) givePiece(s State, number int) error {
	p := a.x.cfg.Store.acquire(s, number)
	if p == nil {
		return a.w.write(Message{kind: kindMissing, State: s, piece: number}, nil, 0)
	}
	defer a.x.cfg.Store.release(p)
	return a.w.write(Message{kind: kindPiece, State: s, piece: number}, p.data, p.sum)
}
