package transport

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
)

// Gate is a weighted semaphore that serves callers in the order of arrival. It is used for the
// credits of an inbox, the free bytes in the queue of a connection, and the bytes of a run that
// may be in transit. A caller may enter if the free amount is greater than 0; its cost is then
// subtracted from the free amount. So the free amount may become negative, and a message that
// costs more than the gate's whole amount can still enter. The methods may be called from any
// goroutine.
//
// While no caller waits, Enter and Leave are one atomic operation each.
type Gate struct {
	free   atomic.Int64
	closed atomic.Bool // a caller waits, or Shut has been called; changes only under mu

	mu    sync.Mutex
	queue []*Waiter
	err   error // error that Enter returns after Shut
}

// NewGate returns a gate with the given free amount.
func NewGate(free int64) *Gate {
	g := &Gate{}
	g.free.Store(free)
	return g
}

// Waiter is the state of a goroutine that waits at a gate. Only one goroutine at a time may use
// a Waiter; it may be used again for later waits.
type Waiter struct {
	woken chan struct{} // has capacity 1, so that sending to it never blocks
	cost  int64
	in    bool
	err   error
}

// NewWaiter returns a waiter.
func NewWaiter() *Waiter { return &Waiter{woken: make(chan struct{}, 1)} }

// Enter waits until the free amount is greater than 0, and subtracts cost from it. If ctx ends
// before that, Enter returns the cause of ctx. After Shut, it returns the error that was passed
// to Shut.
func (g *Gate) Enter(ctx context.Context, w *Waiter, cost int64) error {
	if !g.closed.Load() && g.take(cost) {
		return nil
	}
	g.mu.Lock()
	if err := g.err; err != nil {
		g.mu.Unlock()
		return err
	}
	// A Leave that follows this store sees that closed is set and admits waiters. For a Leave
	// that precedes the store, admit is called below.
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
	<-w.woken // the caller was admitted or refused meanwhile
	if w.in {
		g.free.Add(w.cost)
		g.admit()
	}
	return context.Cause(ctx)
}

// Leave adds cost to the free amount. cost is the cost of an earlier Enter, or the amount by
// which the caller enlarges the gate.
func (g *Gate) Leave(cost int64) {
	g.free.Add(cost)
	if g.closed.Load() {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.admit()
	}
}

// take subtracts cost from the free amount if the free amount is greater than 0. It reports
// whether it has done so.
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

// admit admits waiters, in order, while the free amount is greater than 0. When no waiter is
// left, it clears closed. The caller holds mu.
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

// Shut makes all waiting and all later calls of Enter return err. Only the first call of Shut
// has an effect.
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
