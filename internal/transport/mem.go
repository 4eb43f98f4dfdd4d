package transport

import (
	"context"
	"fmt"
	"sync"
)

// DefaultCredits is the number of messages that may be in transit to one inbox if credits is 0
// in NewMem. Few credits are enough to keep sender and receiver busy at the same time. More
// credits would only take memory for which the receiver does not account.
const DefaultCredits = 8

// Mem is the Network within one process. It has a bounded queue and a receiving goroutine for
// each inbox. Batches are passed by reference.
type Mem struct {
	credits int
	done    chan struct{}
	running sync.WaitGroup

	mu      sync.Mutex
	closed  bool
	inboxes map[Address]*memInbox
}

var _ Network = (*Mem)(nil)

// NewMem returns a network in which at most credits messages are in transit to each inbox; 0
// means DefaultCredits. The caller closes the network.
func NewMem(credits int) *Mem {
	if credits <= 0 {
		credits = DefaultCredits
	}
	return &Mem{credits: credits, done: make(chan struct{}), inboxes: make(map[Address]*memInbox)}
}

// memInbox is the queue of an inbox. A free slot of the queue is a credit.
type memInbox struct {
	queue chan Message
	done  chan struct{} // closed when the network closes
}

// Listen starts the goroutine that passes the messages sent to addr to r.
func (n *Mem) Listen(addr Address, r Receiver) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return fmt.Errorf("listen on %v: %w", addr, ErrClosed)
	}
	if n.inboxes[addr] != nil {
		return fmt.Errorf("listen on %v: it has a receiver already", addr)
	}
	in := &memInbox{queue: make(chan Message, n.credits), done: n.done}
	n.inboxes[addr] = in
	n.running.Go(func() { in.receive(r) })
	return nil
}

// receive passes messages to r until the network is closed.
func (in *memInbox) receive(r Receiver) {
	for {
		select {
		case m := <-in.queue:
			r.Receive(m)
		case <-in.done:
			return
		}
	}
}

// Dial returns a sender to addr.
func (n *Mem) Dial(addr Address) (Sender, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, fmt.Errorf("dial %v: %w", addr, ErrClosed)
	}
	in := n.inboxes[addr]
	if in == nil {
		return nil, fmt.Errorf("dial %v: nobody listens there", addr)
	}
	return in, nil
}

// Send puts the message into the queue of the inbox.
func (in *memInbox) Send(ctx context.Context, m Message) error {
	// This check comes first because a select chooses any case that is ready: it could put the
	// message into the queue of a closed network.
	select {
	case <-in.done:
		m.Release()
		return ErrClosed
	default:
	}
	select {
	case in.queue <- m: // the usual case; this select is cheaper than the select below
		return nil
	default:
	}
	select {
	case in.queue <- m:
		return nil
	case <-ctx.Done():
		m.Release()
		return context.Cause(ctx)
	case <-in.done:
		m.Release()
		return ErrClosed
	}
}

// Close stops the receiving goroutines and releases the messages in the queues. Calls of Send
// that are still waiting return ErrClosed.
func (n *Mem) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil
	}
	n.closed = true
	close(n.done)
	n.running.Wait()
	for _, in := range n.inboxes {
		in.drain()
	}
	return nil
}

// drain releases the messages left in the queue.
func (in *memInbox) drain() {
	for {
		select {
		case m := <-in.queue:
			m.Release()
		default:
			return
		}
	}
}
