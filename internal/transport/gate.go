package transport

import (
	"context"
	"slices"
	"sync"
)

// Gate lets through who finds something free, in the order of arrival: the credits
// of an inbox, the room in the queue of a connection, the bytes of a run that may be
// on their way. Who enters takes its cost, and what is free may so become negative:
// one message always fits. Its methods may be called from any goroutine.
type Gate struct {
	mu    sync.Mutex
	free  int64
	queue []*Waiter
	err   error // of all who come after shut
}

// NewGate returns a gate behind which so much is free.
func NewGate(free int64) *Gate { return &Gate{free: free} }

// Waiter is someone before a gate. It is used from one goroutine, again and again.
type Waiter struct {
	woken chan struct{} // has room for one sign
	cost  int64
	in    bool
	err   error
}

// NewWaiter returns one who waits before gates.
func NewWaiter() *Waiter { return &Waiter{woken: make(chan struct{}, 1)} }

// Enter waits until something is free and takes cost of it. It fails with the cause
// of ctx, or with what the gate was shut for.
func (g *Gate) Enter(ctx context.Context, w *Waiter, cost int64) error {
	g.mu.Lock()
	switch {
	case g.err != nil:
		defer g.mu.Unlock()
		return g.err
	case g.free > 0 && len(g.queue) == 0:
		g.free -= cost
		g.mu.Unlock()
		return nil
	}
	w.cost, w.in, w.err = cost, false, nil
	g.queue = append(g.queue, w)
	g.mu.Unlock()

	select {
	case <-w.woken:
		return w.err
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.queue, w); i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
		return context.Cause(ctx)
	}
	<-w.woken // it was let in, or turned away, meanwhile
	if w.in {
		g.give(w.cost)
	}
	return context.Cause(ctx)
}

// Leave gives back, or grants.
func (g *Gate) Leave(cost int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.give(cost)
}

// give does it under the lock.
func (g *Gate) give(cost int64) {
	g.free += cost
	for len(g.queue) > 0 && g.free > 0 {
		w := g.queue[0]
		g.queue[0] = nil
		g.queue = g.queue[1:]
		g.free -= w.cost
		w.in = true
		w.woken <- struct{}{}
	}
}

// Shut turns away all who wait and all who come. The first error counts.
func (g *Gate) Shut(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return
	}
	g.err = err
	for _, w := range g.queue {
		w.err = err
		w.woken <- struct{}{}
	}
	g.queue = nil
}
