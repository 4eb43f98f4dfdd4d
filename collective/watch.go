package collective

import (
	"context"
	"sync"
)

// watcher aborts the group when the context of a rank's operation ends between start and stop,
// while the rank is parked or runs messages. Registering with a context allocates, so a
// registration is kept as long as operations have the same context. After stop, the
// cancellation of a context has no effect.
type watcher struct {
	mu     sync.Mutex
	done   <-chan struct{} // Done channel of the context that the watcher is registered with
	active bool            // start was called with that context, and stop was not
	cancel func() bool     // removes the registration
}

// start begins to watch ctx. It is called before the rank parks or runs messages.
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
	// The context may have ended before active was set.
	select {
	case <-done:
		c.cancelled(ctx)
	default:
	}
}

// register removes the present registration and registers with ctx. The caller holds mu.
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

// stop ends the watch. It is called after the rank has parked or run messages.
func (w *watcher) stop() {
	if !w.active { // only this goroutine writes active
		return
	}
	w.mu.Lock()
	w.active = false
	w.mu.Unlock()
}

// end removes the registration. The rank does not call start any more.
func (w *watcher) end() {
	w.mu.Lock()
	if w.cancel != nil {
		w.cancel()
	}
	w.done, w.cancel, w.active = nil, nil, false
	w.mu.Unlock()
}
