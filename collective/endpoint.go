package collective

import (
	"context"
	"fmt"
	"sync"
)

// Endpoint carries the messages of one rank. Between two ranks, the messages of
// one channel come in the order sent; those of different channels do not wait for
// each other. An executor uses it from several goroutines, at most one at a time
// for each direction of each (peer, channel).
type Endpoint interface {
	// Send returns when buf may be overwritten. It may wait for the peer.
	Send(ctx context.Context, peer, channel int, buf []byte) error

	// Recv fills buf with the next message, which must have its length.
	Recv(ctx context.Context, peer, channel int, buf []byte) error
}

// Rendezvous connects ranks of one process without any buffering: a message
// passes from the sender's memory to the receiver's when both are there. It is the
// tightest endpoint there is: a program that ends here ends on every other.
type Rendezvous struct {
	p      int
	mu     sync.Mutex
	routes map[route]*handover
}

// handover is where two ranks meet on a channel.
type handover struct {
	offer chan []byte
	taken chan error
}

// NewRendezvous connects p ranks.
func NewRendezvous(p int) *Rendezvous {
	return &Rendezvous{p: p, routes: map[route]*handover{}}
}

// Rank returns the endpoint of a rank.
func (r *Rendezvous) Rank(rank int) Endpoint { return rendezvousEnd{r, rank} }

func (r *Rendezvous) at(from, to, channel int) (*handover, error) {
	if min(from, to) < 0 || max(from, to) >= r.p || from == to {
		return nil, fmt.Errorf("collective: no route from rank %d to rank %d of %d", from, to, r.p)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	key := route{from, to, channel}
	h := r.routes[key]
	if h == nil {
		h = &handover{offer: make(chan []byte), taken: make(chan error)}
		r.routes[key] = h
	}
	return h, nil
}

type rendezvousEnd struct {
	group *Rendezvous
	rank  int
}

// Send waits until the peer has copied buf.
func (e rendezvousEnd) Send(ctx context.Context, peer, channel int, buf []byte) error {
	h, err := e.group.at(e.rank, peer, channel)
	if err != nil {
		return err
	}
	select {
	case h.offer <- buf:
		return <-h.taken // the receiver is copying: it does not wait for anything
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Recv waits for the peer and copies its buffer.
func (e rendezvousEnd) Recv(ctx context.Context, peer, channel int, buf []byte) error {
	h, err := e.group.at(peer, e.rank, channel)
	if err != nil {
		return err
	}
	select {
	case sent := <-h.offer:
		if len(sent) != len(buf) {
			err = fmt.Errorf("collective: rank %d sends %d bytes on channel %d where rank %d expects %d",
				peer, len(sent), channel, e.rank, len(buf))
		} else {
			copy(buf, sent)
		}
		h.taken <- err
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
