package mesh

import (
	"fmt"
	"sync"
)

// Small messages are copied into the pipe so that the sender goes on at once, as long as not
// too much waits there. The receiver takes larger ones from the sender's memory, which costs
// one copy instead of two and bounds the memory.
const (
	eagerBytes   = 2 << 10  // largest message that Send copies
	eagerBacklog = 64 << 10 // waiting bytes above which Send does not copy
)

// pipe carries messages from one rank of this process to another, in one
// direction. One goroutine at a time sends, and one receives.
//
// A message is either queued, as a copy in a block, or offered: then the sender
// waits until the receiver has taken the bytes out of its memory. An offer comes
// after everything queued, since its sender waits.
type pipe struct {
	pool *pool

	mu    sync.Mutex
	news  sync.Cond // for the receiver: a message or the end
	taken sync.Cond // for the sender: the offer is taken, or the end

	err  error // the group's cause, once it has ended
	left error // why no more messages will come or be received

	queue   fifo[queuedMessage]
	backlog int // bytes in the queue

	offered bool
	offer   Header
	offerOf []byte

	// The message that is being received.
	open   bool
	taking bool   // the message is the offer
	rest   []byte // its unread bytes
	block  *block // the block that holds it, or nil
	lent   bool   // the receiver uses rest without holding mu
}

// queuedMessage is a queued message.
type queuedMessage struct {
	header Header
	block  *block // nil for a message of no bytes
}

func (p *pipe) init(pool *pool) {
	p.pool = pool
	p.news.L, p.taken.L = &p.mu, &p.mu
}

// fail ends both sides with the group's cause.
func (p *pipe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.news.Signal()
	p.taken.Signal()
}

// leave records that one side is gone. Queued messages can still be received.
func (p *pipe) leave(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == nil {
		p.left = err
	}
	p.news.Signal()
	p.taken.Signal()
}

// ended returns why nothing can be sent, or nil. mu is held.
func (p *pipe) ended() error {
	if p.err != nil {
		return p.err
	}
	return p.left
}

// send is Conn.Send.
func (p *pipe) send(h *Header, payload []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ended(); err != nil {
		return err
	}
	if len(payload) <= eagerBytes && p.backlog <= eagerBacklog {
		p.enqueue(h, p.copied(payload))
		return nil
	}
	p.offer, p.offerOf, p.offered = *h, payload, true
	p.news.Signal()
	// The receiver may be copying when the group ends: the sender gets its memory back only
	// after that.
	for p.offered && (p.ended() == nil || p.lent) {
		p.taken.Wait()
	}
	if !p.offered {
		return nil
	}
	p.offered, p.offerOf = false, nil
	return p.ended()
}

// post is Conn.Post.
func (p *pipe) post(h *Header, payload []byte) error {
	b := p.copied(payload) // outside the lock: it may take long
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.ended(); err != nil {
		p.pool.put(b)
		return err
	}
	p.enqueue(h, b)
	return nil
}

func (p *pipe) copied(payload []byte) *block {
	if len(payload) == 0 {
		return nil
	}
	b := p.pool.get(len(payload))
	copy(b.data, payload)
	return b
}

// enqueue queues a message. mu is held.
func (p *pipe) enqueue(h *Header, b *block) {
	p.queue.push(queuedMessage{*h, b})
	p.backlog += int(h.Length)
	p.news.Signal()
}

// next is Conn.Next.
func (p *pipe) next(h *Header) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.err == nil && p.queue.n == 0 && !p.offered && p.left == nil && !p.open {
		p.news.Wait()
	}
	switch {
	case p.err != nil:
		return p.err
	case p.open:
		return fmt.Errorf("mesh: Next is called with %d bytes of the message before it unread", len(p.rest))
	case p.queue.n > 0:
		m := p.queue.pop()
		p.backlog -= int(m.header.Length)
		*h, p.block = m.header, m.block
		if p.block != nil {
			p.rest = p.block.data
		}
	case p.left != nil:
		return p.left
	default:
		*h, p.rest, p.taking = p.offer, p.offerOf, true
	}
	p.open = true
	if len(p.rest) == 0 {
		p.finish()
	}
	return nil
}

// finish ends the message that is being received. mu is held.
func (p *pipe) finish() {
	if p.taking {
		p.offered, p.offerOf = false, nil
		p.taken.Signal()
	}
	p.pool.put(p.block)
	p.open, p.taking, p.rest, p.block = false, false, nil, nil
}

// read is Conn.Read.
func (p *pipe) read(dst []byte) error {
	rest, err := p.lend(len(dst))
	if err != nil || len(dst) == 0 {
		return err
	}
	copy(dst, rest)
	p.giveBack(len(dst))
	return nil
}

// lend returns the next n bytes in place. They stay valid until giveBack, whatever happens.
func (p *pipe) lend(n int) ([]byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.err != nil:
		return nil, p.err
	case n > len(p.rest):
		return nil, fmt.Errorf("mesh: Read of %d bytes where %d are left of the message", n, len(p.rest))
	case n == 0:
		return nil, nil
	case p.taking && !p.offered:
		return nil, p.ended() // its sender withdrew the offer
	case p.lent:
		return nil, fmt.Errorf("mesh: Read while bytes of the message are borrowed")
	}
	p.lent = true
	return p.rest[:n], nil
}

// giveBack ends the receiver's use of the first n bytes of the rest.
func (p *pipe) giveBack(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lent = false
	p.rest = p.rest[n:]
	if len(p.rest) == 0 {
		p.finish()
	} else if p.ended() != nil {
		p.taken.Signal()
	}
}
