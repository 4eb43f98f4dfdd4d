package collective

import (
	"context"
	"sync"
)

// watcher aborts the group when the context of a rank's operation ends while the rank is
// parked. Registering with a context allocates, so a registration is kept as long as
// operations have the same context. It does nothing outside of operations: a context that
// is cancelled after its operation has no effect.
type watcher struct {
	mu     sync.Mutex
	done   <-chan struct{} // of the context registered with
	active bool            // the rank is parked with that context
	cancel func() bool     // takes the registration back
}

// start is called before parking.
func (w *watcher) start(c *Comm, ctx context.Context) {
	if ctx == nil {
		return
	}
	done := ctx.Done()
	if done == nil {
		return
	}
	w.mu.Lock()
	w.active = true
	if done != w.done {
		w.register(c, ctx, done)
	}
	w.mu.Unlock()
	// The registration may have fired before active was set.
	select {
	case <-done:
		c.cancelled(ctx)
	default:
	}
}

// register replaces the registration; mu is held.
func (w *watcher) register(c *Comm, ctx context.Context, done <-chan struct{}) {
	if w.cancel != nil {
		w.cancel()
	}
	w.done = done
	w.cancel = context.AfterFunc(ctx, func() {
		w.mu.Lock()
		hit := w.active && w.done == done
		w.mu.Unlock()
		if hit {
			c.cancelled(ctx)
		}
	})
}

// stop is called after parking.
func (w *watcher) stop() {
	if !w.active { // written by this goroutine alone
		return
	}
	w.mu.Lock()
	w.active = false
	w.mu.Unlock()
}

// end takes the registration back for good.
func (w *watcher) end() {
	w.mu.Lock()
	if w.cancel != nil {
		w.cancel()
	}
	w.done, w.cancel, w.active = nil, nil, false
	w.mu.Unlock()
}
