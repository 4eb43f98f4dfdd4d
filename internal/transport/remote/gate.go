package remote

import (
	"context"
	"slices"
	"sync"
)

// gate lets through who finds something free, in the order of arrival: the credits
// of an inbox, or the room in the queue of a connection. Who enters takes its cost,
// and what is free may so become negative: one message always fits.
type gate struct {
	mu    sync.Mutex
	free  int64
	queue []*waiter
	err   error // of all who come after shut
}

// waiter is someone before a gate. It is used from one goroutine, again and again.
type waiter struct {
	woken chan struct{} // has room for one sign
	cost  int64
	in    bool
	err   error
}

func newWaiter() *waiter { return &waiter{woken: make(chan struct{}, 1)} }

// enter waits until something is free and takes cost of it. It fails with the cause
// of ctx, or with what the gate was shut for.
func (g *gate) enter(ctx context.Context, w *waiter, cost int64) error {
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

// leave gives back, or grants.
func (g *gate) leave(cost int64) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.give(cost)
}

// give does it under the lock.
func (g *gate) give(cost int64) {
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

// shut turns away all who wait and all who come. The first error counts.
func (g *gate) shut(err error) {
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
