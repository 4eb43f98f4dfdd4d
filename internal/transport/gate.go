package transport

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Gate is a semaphore with costs, first come first served: for the credits of an inbox, the
// room in the queue of a connection, the bytes of a run that may be under way. A caller enters
// if anything is free, and takes its cost. So the free amount may become negative, and one
// message always fits. The methods may be called from any goroutine.
//
// While no caller waits, entering and leaving are one atomic addition each.
type Gate struct {
	free   atomic.Int64
	closed atomic.Bool // a caller waits, or it is shut; changes under mu

	mu    sync.Mutex
	queue []*Waiter
	err   error // error for all callers after Shut
}

// NewGate returns a gate with the given free amount.
func NewGate(free int64) *Gate {
	g := &Gate{}
	g.free.Store(free)
	return g
}

// Waiter is what a goroutine needs to wait at gates. It is used from one goroutine, again and
// again.
type Waiter struct {
	woken chan struct{} // has room for one sign
	cost  int64
	in    bool
	err   error
}

// NewWaiter returns a waiter.
func NewWaiter() *Waiter { return &Waiter{woken: make(chan struct{}, 1)} }

// Enter waits until anything is free and takes cost of it. It fails with the cause of ctx, or
// with the error of Shut.
func (g *Gate) Enter(ctx context.Context, w *Waiter, cost int64) error {
	if !g.closed.Load() && g.take(cost) {
		return nil
	}
	g.mu.Lock()
	if err := g.err; err != nil {
		g.mu.Unlock()
		return err
	}
	// A Leave after this admits the waiters; an earlier one is noticed here.
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
	<-w.woken // it was admitted or refused meanwhile
	if w.in {
		g.free.Add(w.cost)
		g.admit()
	}
	return context.Cause(ctx)
}

// Leave gives cost back, or grants more.
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

// admit admits waiters while anything is free, and reopens the gate when none is left. The
// caller holds the lock.
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

// Shut fails all waiters and all later callers. The first error counts.
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
