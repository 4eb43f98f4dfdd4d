package transport

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Gate lets through who finds something free, in the order of arrival: the credits
// of an inbox, the room in the queue of a connection, the bytes of a run that may be
// on their way. Who enters takes its cost, and what is free may so become negative:
// one message always fits. Its methods may be called from any goroutine.
//
// While nobody waits, entering and leaving are one atomic addition each.
type Gate struct {
	free   atomic.Int64
	closed atomic.Bool // someone waits, or it is shut; changes under mu

	mu    sync.Mutex
	queue []*Waiter
	err   error // of all who come after shut
}

// NewGate returns a gate behind which so much is free.
func NewGate(free int64) *Gate {
	g := &Gate{}
	g.free.Store(free)
	return g
}

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
	if !g.closed.Load() && g.take(cost) {
		return nil
	}
	g.mu.Lock()
	if err := g.err; err != nil {
		g.mu.Unlock()
		return err
	}
	// Who leaves after this admits those who wait; who left before is seen here.
	g.closed.Store(true)
	w.cost, w.in, w.err = cost, false, nil
	g.queue = append(g.queue, w)
	g.admit()
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
		g.admit()
		return context.Cause(ctx)
	}
	<-w.woken // it was let in, or turned away, meanwhile
	if w.in {
		g.free.Add(w.cost)
		g.admit()
	}
	return context.Cause(ctx)
}

// Leave gives back, or grants.
func (g *Gate) Leave(cost int64) {
	g.free.Add(cost)
	if g.closed.Load() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.admit()
	}
}

// take takes cost if anything is free.
func (g *Gate) take(cost int64) bool {
	for {
		free := g.free.Load()
		if free <= 0 {
			return false
		}
		if g.free.CompareAndSwap(free, free-cost) {
			return true
		}
	}
}

// admit lets in who waits, as far as something is free, and opens the gate when nobody
// waits any more. The caller holds the lock.
func (g *Gate) admit() {
	for len(g.queue) > 0 && g.take(g.queue[0].cost) {
		w := g.queue[0]
		g.queue[0] = nil
		g.queue = g.queue[1:]
		w.in = true
		w.woken <- struct{}{}
	}
	g.closed.Store(len(g.queue) > 0 || g.err != nil)
}

// Shut turns away all who wait and all who come. The first error counts.
func (g *Gate) Shut(err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.err != nil {
		return
	}
	g.err = err
	g.closed.Store(true)
	for _, w := range g.queue {
		w.err = err
		w.woken <- struct{}{}
	}
	g.queue = nil
}
