package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/wire"
)

// TestRestartStrategies passes losses to restarts, and compares the delays and refusals.
func TestRestartStrategies(t *testing.T) {
	const never = -1
	type step struct {
		ran   time.Duration // time for which the attempt ran
		delay time.Duration // wanted delay, or never
	}
	for name, c := range map[string]struct {
		settings wire.Restart
		steps    []step
		why      string // why the last step is refused
	}{
		"none": {wire.Restart{Strategy: wire.RestartNone}, []step{{0, never}}, "--restart is none"},
		"exponential": {wire.Restart{Delay: time.Second}, []step{
			{0, 1}, {5, 2}, {0, 4}, {0, 8}, {0, 16}, {0, 32}, {599, 60}, {0, 60}, {600, 1}, {0, 2}, {1000, 1},
		}, ""},
		"exponential, settings": {wire.Restart{Attempts: 4, Delay: 40 * time.Second, Window: 10 * time.Second}, []step{
			{0, 40}, {9, 60}, {10, 40}, {0, 60}, {100, never},
		}, "--restart exponential-delay allows 4 restarts"},
		"exponential, a delay above the largest": {wire.Restart{Delay: 90 * time.Second}, []step{{0, 90}, {0, 90}}, ""},
		"fixed": {wire.Restart{Strategy: wire.RestartFixedDelay}, []step{
			{0, 1}, {10000, 1}, {0, 1}, {10000, never},
		}, "--restart fixed-delay allows 3 restarts"},
		"fixed, settings": {wire.Restart{Strategy: wire.RestartFixedDelay, Attempts: 1, Delay: 5 * time.Second}, []step{
			{0, 5}, {0, never},
		}, "--restart fixed-delay allows 1 restart"},
		"rate": {wire.Restart{Strategy: wire.RestartFailureRate, Attempts: 2, Delay: 3 * time.Second, Window: time.Minute}, []step{
			{0, 3}, {30, 3}, {30, 3}, {30, 3}, {29, never},
		}, "--restart failure-rate allows 2 restarts within 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			r := restarts{settings: c.settings.WithDefaults()}
			now := time.Duration(0)
			for i, s := range c.steps {
				ran := s.ran * time.Second
				now += ran
				delay, why := r.lost(loss{now: now, ran: ran})
				if s.delay == never {
					require.Equal(t, c.why, why, "loss %d", i)
					require.Equal(t, len(c.steps)-1, i)
					continue
				}
				require.Empty(t, why, "loss %d", i)
				require.Equal(t, s.delay*time.Second, delay, "loss %d", i)
				require.Equal(t, i+1, r.count)
			}
		})
	}
}

// TestDefaultDelays requires that the first restart follows soon, and that the delays then double.
func TestDefaultDelays(t *testing.T) {
	r := restarts{settings: wire.Restart{}.WithDefaults()}
	for _, want := range []time.Duration{100, 200, 400, 800} {
		delay, why := r.lost(loss{})
		require.Empty(t, why)
		require.Equal(t, want*time.Millisecond, delay)
	}
}

// TestCrashesInTheSameWay requires that the third crash in the same way is refused whatever the
// strategy. Crashes whose cause may be outside the program count only if no attempt between them
// ran for long.
func TestCrashesInTheSameWay(t *testing.T) {
	const long = time.Hour
	r := restarts{settings: wire.Restart{}.WithDefaults()}
	crashes := func(text string, outside bool, ran time.Duration) string {
		_, why := r.lost(loss{ran: ran, crash: text, outside: outside})
		return why
	}
	require.Empty(t, crashes("panic", false, 0))
	require.Empty(t, crashes("killed", true, long))
	require.Empty(t, crashes("killed", true, long))
	require.Empty(t, crashes("killed", true, long))
	require.Empty(t, crashes("panic", false, long))
	require.Empty(t, crashes("another panic", false, long))
	require.Equal(t, "workers crashed in this way in 3 attempts", crashes("panic", false, long))
	require.Empty(t, crashes("killed", true, 0))
	require.Empty(t, crashes("killed", true, 0))
	require.NotEmpty(t, crashes("killed", true, 0))
}

// TestLostAttemptsAreBounded requires that a job that is restarted for ever does not grow.
func TestLostAttemptsAreBounded(t *testing.T) {
	c := New(Config{})
	c.Step(0, Registered{Conn: 1, Register: wire.Register{Version: wire.Version, ID: "a", Incarnation: "1", Slots: 1, Executable: anyHash}})
	c.Step(0, Submitted{ID: "j", Slots: 1})
	now := time.Duration(0)
	for attempt := 1; attempt <= 2*wire.MaxLost; attempt++ {
		for {
			info, _ := c.Job("j")
			if info.State == wire.JobDeploying && info.Attempt == attempt {
				break
			}
			now += TickEvery
			c.Step(now, Heartbeat{Conn: 1})
			c.Step(now, Tick{})
		}
		c.Step(now, Reported{Conn: 1, WorkerEvent: wire.WorkerEvent{WorkerRef: wire.WorkerRef{Job: "j", Attempt: attempt}, Ended: &wire.Ended{Failure: lostFailure("gone")}}})
	}
	info, _ := c.Job("j")
	require.Equal(t, 2*wire.MaxLost, info.Restarts)
	require.Len(t, info.Lost, wire.MaxLost)
	require.Equal(t, 2*wire.MaxLost, info.Lost[wire.MaxLost-1].Number)
}
