package client

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"

	"github.com/superstep-ml/superstep/internal/wire"
)

// stoppableManager is a job manager that can be stopped, with its watchdog.
type stoppableManager struct {
	stopped  atomic.Bool
	asked    atomic.Int32
	text     bytes.Buffer // log; read only when the watchdog has ended or is durably blocked
	watchdog *watchdog
}

func watchOver(t *testing.T, ask func(h *stoppableManager, ctx context.Context) error) *stoppableManager {
	h := &stoppableManager{}
	log := hclog.New(&hclog.LoggerOptions{Output: &h.text, DisableTime: true})
	h.watchdog = newWatchdog(t.Context(), log, func(ctx context.Context) error {
		h.asked.Add(1)
		return ask(h, ctx)
	})
	return h
}

func answers(h *stoppableManager, ctx context.Context) error {
	if h.stopped.Load() {
		<-ctx.Done()
		return wire.Error(codes.DeadlineExceeded, "%v", ctx.Err())
	}
	return nil
}

// lines returns the lines that were logged so far.
func (h *stoppableManager) lines() []string {
	synctest.Wait()
	return strings.Split(strings.TrimSpace(h.text.String()), "\n")
}

// TestVigil requires that the watchdog sends requests only if there are no events, that it logs
// once, within seconds, if there is no answer, and that it logs once more when there is an
// answer again.
func TestVigil(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := watchOver(t, answers)
		for range 20 { // there are many events
			time.Sleep(900 * time.Millisecond)
			h.watchdog.observe()
		}
		require.Zero(t, h.asked.Load())
		time.Sleep(time.Minute) // there are no events, but answers
		require.NotZero(t, h.asked.Load())
		require.Equal(t, []string{""}, h.lines())

		h.stopped.Store(true)
		time.Sleep(9 * time.Second)
		require.Equal(t, []string{"[WARN]  the job manager has not answered for 3s; it may be stopped or overloaded, waiting for it"}, h.lines())
		time.Sleep(time.Minute)
		require.Len(t, h.lines(), 1)
		h.stopped.Store(false)
		time.Sleep(5 * time.Second)
		require.Len(t, h.lines(), 2)
		require.Contains(t, h.lines()[1], "[INFO]  the job manager answers again: after=1m")
		h.stopped.Store(true)
		time.Sleep(9 * time.Second)
		h.watchdog.observe() // an event counts as an answer
		time.Sleep(2 * time.Second)
		require.Len(t, h.lines(), 4)
		require.Zero(t, h.watchdog.suspended())
		h.watchdog.end()
	})
}

// TestVigilOfOneThatStoodStill requires that nothing is logged if this process itself did not
// run, or if the job manager refuses the request.
func TestVigilOfOneThatStoodStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := watchOver(t, func(h *stoppableManager, ctx context.Context) error {
			if h.stopped.Load() {
				time.Sleep(40 * time.Second) // beyond the deadline, as if this process was stopped
				return wire.Error(codes.DeadlineExceeded, "%v", ctx.Err())
			}
			return wire.Error(codes.ResourceExhausted, "not now")
		})
		time.Sleep(time.Minute)
		require.NotZero(t, h.asked.Load())
		h.stopped.Store(true)
		time.Sleep(42 * time.Second)
		require.Greater(t, h.watchdog.suspended(), 35*time.Second)
		h.stopped.Store(false)
		time.Sleep(45 * time.Second)
		require.Equal(t, []string{""}, h.lines())
		require.Zero(t, h.watchdog.suspended())
		h.watchdog.end()
	})
}

// TestAbsenceOfOneThatStoodStill requires that a job manager is not given up because this
// process did not run for a long time.
func TestAbsenceOfOneThatStoodStill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := watchOver(t, func(h *stoppableManager, ctx context.Context) error {
			if h.stopped.Load() {
				time.Sleep(40 * time.Second) // beyond the deadline, as if this process was stopped
			}
			return wire.Error(codes.Unavailable, "not there")
		})
		time.Sleep(10 * time.Second)
		away := absence{watchdog: h.watchdog}
		away.begin()
		time.Sleep(20 * time.Second)
		require.Equal(t, 20*time.Second, away.lasted())
		h.stopped.Store(true)
		time.Sleep(42 * time.Second)
		require.Less(t, away.lasted(), 25*time.Second, "before the next tick")
		h.stopped.Store(false)
		time.Sleep(50 * time.Second) // of which a second request takes 40 s
		require.InDelta(t, 32*time.Second, away.lasted(), float64(5*time.Second))
		h.watchdog.end()
	})
}
