package jobmanager

import (
	"context"
	"errors"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/jobmanager/core"
)

// A task manager has a port that is open as long as its process runs (taskmanager/presence.go). If
// its connection breaks, the job manager connects to this port. If that is refused, the process has
// ended, and the core does not wait for it as long as for one that may come back. An answer, or
// none, says nothing: the process may have been stopped.
//
// A refusal counts only if the job manager has reached the port while the task manager was
// connected, and has got its key. Otherwise a firewall may refuse it, or the address may be that of
// another machine.

const (
	presenceDial  = time.Second           // bounds one attempt to reach the port
	presencePause = 50 * time.Millisecond // between two attempts after the end of the connection
	presenceAgain = time.Second           // between two attempts while the task manager is connected
	presenceFirst = 10 * time.Second      // bounds those attempts
)

// verifyPresence finds out whether the port of the task manager at the other end of connection c can
// be reached.
func (c *conn) verifyPresence(ctx context.Context, r *wire.Register) {
	ctx, cancel := context.WithTimeout(ctx, presenceFirst)
	defer cancel()
	for ctx.Err() == nil {
		if there, _ := askPresence(ctx, r); there {
			c.mu.Lock()
			c.reached = true
			c.mu.Unlock()
			return
		}
		pause(ctx, presenceAgain)
	}
}

// awaitRefusal tries to reach the port of a task manager whose connection has ended. If that is
// refused within the given time, it tells the core that the process has ended.
func (m *Manager) awaitRefusal(ctx context.Context, r wire.Register, within time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for ctx.Err() == nil {
		if _, refused := askPresence(ctx, &r); refused {
			m.step(core.ProcessEnded{ID: r.ID, Incarnation: r.Incarnation})
			return
		}
		pause(ctx, presencePause)
	}
}

// askPresence connects to the port of a task manager once. there says that it has sent its key, and
// refused that nobody listens at the address.
func askPresence(ctx context.Context, r *wire.Register) (there, refused bool) {
	dialer := net.Dialer{Timeout: presenceDial}
	peer, err := dialer.DialContext(ctx, "tcp", r.Presence)
	if err != nil {
		return false, errors.Is(err, syscall.ECONNREFUSED)
	}
	defer peer.Close()
	defer context.AfterFunc(ctx, func() { peer.Close() })()
	_ = peer.SetReadDeadline(time.Now().Add(presenceDial))
	key := make([]byte, len(r.PresenceKey))
	_, err = io.ReadFull(peer, key)
	return err == nil && string(key) == r.PresenceKey, false
}

// pause waits for a time, or until the context is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
