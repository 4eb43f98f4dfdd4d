package mesh

import (
	"fmt"
	"sync"
)

// Small messages are copied into the pipe, so that the sender need not wait, unless the pipe
// already holds more than eagerBacklog bytes. The receiver copies larger messages from the
// sender's memory. So they are copied once instead of twice, and the memory of the pipe is
// bounded.
const (
	eagerBytes   = 2 << 10  // length of the largest message that Send copies
	eagerBacklog = 64 << 10 // number of queued bytes above which Send does not copy
)

// pipe carries messages from one rank of this process to another, in one direction. At any
// time, at most one goroutine sends and at most one goroutine receives.
//
// A message is either queued or offered. A queued message is a copy in a block. An offered
// message, or offer, is in the sender's memory, and the sender waits until the receiver has
// taken its bytes. So an offer is always behind all queued messages.
type pipe struct {
	pool *pool

	mu       sync.Mutex
	received sync.Cond // wakes the receiver when there is a message or the pipe has ended
	taken    sync.Cond // wakes the sender when the offer has been taken or the pipe has ended

	err  error // the group's cause, set when the group has ended
	left error // error of calls after the queued messages; set when one of the two ranks has left

	queue   fifo[queuedMessage]
	backlog int // number of bytes in the queue

	offered    bool
	offer      Header
	offerBytes []byte

	// The following fields describe the message that is being received.
	open           bool
	receivingOffer bool   // the message that is being received is the offer
	rest           []byte // unread bytes of the message
	block          *block // the block with the message; nil for an offer
	lent           bool   // the receiver uses rest without holding mu
}

// queuedMessage is a message in the queue of a pipe.
type queuedMessage struct {
	header Header
	block  *block // nil if the message has no bytes
}

func (p *pipe) init(pool *pool) {
	p.pool = pool
	p.received.L, p.taken.L = &p.mu, &p.mu
}

// fail ends both sides of the pipe with err, the group's cause.
func (p *pipe) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err == nil {
		p.err = err
	}
	p.received.Signal()
	p.taken.Signal()
}

// leave records that one of the two ranks has left. Queued messages can still be received.
func (p *pipe) leave(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == nil {
		p.left = err
	}
	p.received.Signal()
	p.taken.Signal()
}

// ended returns the reason why no message can be sent any more, or nil if messages can be sent.
// The caller holds mu.
func (p *pipe) ended() error {
	if p.err != nil {
		return p.err
	}
	return p.left
}

// send implements Conn.Send.
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
	p.offer, p.offerBytes, p.offered = *h, payload, true
	p.received.Signal()
	// If the receiver is using the payload when the group ends, send returns only when the
	// receiver has finished, as the caller may overwrite the payload after send has returned.
	for p.offered && (p.ended() == nil || p.lent) {
		p.taken.Wait()
	}
	if !p.offered {
		return nil
	}
	p.offered, p.offerBytes = false, nil
	return p.ended()
}

// post implements Conn.Post.
func (p *pipe) post(h *Header, payload []byte) error {
	b := p.copied(payload) // without holding mu, as the copy may take a long time
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

// enqueue queues a message. The caller holds mu.
func (p *pipe) enqueue(h *Header, b *block) {
	p.queue.push(queuedMessage{*h, b})
	p.backlog += int(h.Length)
	p.received.Signal()
}

// next implements Conn.Next.
func (p *pipe) next(h *Header) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.err == nil && p.queue.n == 0 && !p.offered && p.left == nil && !p.open {
		p.received.Wait()
	}
	switch {
	case p.err != nil:
		return p.err
	case p.open:
		return fmt.Errorf("mesh: Next was called while %d bytes of the previous message were unread", len(p.rest))
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
		*h, p.rest, p.receivingOffer = p.offer, p.offerBytes, true
	}
	p.open = true
	if len(p.rest) == 0 {
		p.finish()
	}
	return nil
}

// finish ends the message that is being received. The caller holds mu.
func (p *pipe) finish() {
	if p.receivingOffer {
		p.offered, p.offerBytes = false, nil
		p.taken.Signal()
	}
	p.pool.put(p.block)
	p.open, p.receivingOffer, p.rest, p.block = false, false, nil, nil
}

// read implements Conn.Read.
func (p *pipe) read(dst []byte) error {
	rest, err := p.lend(len(dst))
	if err != nil || len(dst) == 0 {
		return err
	}
	copy(dst, rest)
	p.giveBack(len(dst))
	return nil
}

// lend returns the next n bytes of the message without copying them. The bytes stay valid until
// giveBack is called, even if the group ends.
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
	case p.receivingOffer && !p.offered:
		return nil, p.ended() // the sender has withdrawn the offer
	case p.lent:
		return nil, fmt.Errorf("mesh: Read while bytes of the message are borrowed")
	}
	p.lent = true
	return p.rest[:n], nil
}

// giveBack ends the receiver's use of the n bytes that lend returned.
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
