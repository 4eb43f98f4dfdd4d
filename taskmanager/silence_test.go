package taskmanager

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTurns requires that a turn is a sixteenth of the limit, but at least 1 ms.
func TestTurns(t *testing.T) {
	turns := newTurns(16*time.Second, 5*time.Second)
	require.Equal(t, time.Second, turns.Tick(6*time.Second))
	require.Equal(t, 2*time.Second, turns.Tick(time.Hour))
	require.Positive(t, newTurns(1, 0).Period)
}

func TestLease(t *testing.T) {
	const s = time.Second
	var l lease
	l.renew(10 * s)
	l.beats(1)
	l.tick(4 * s)
	l.beats(2)
	l.tick(4 * s)
	require.False(t, l.lapsed())
	l.acknowledged(1) // heartbeat 1 was sent 8 s ago
	l.tick(1 * s)
	require.False(t, l.lapsed())
	l.acknowledged(2) // heartbeat 2 was sent 5 s ago
	l.acknowledged(1) // a late acknowledgement must change nothing
	l.acknowledged(7) // heartbeat 7 was never sent, so its acknowledgement must change nothing
	l.tick(4 * s)
	require.False(t, l.lapsed())
	l.beats(3)
	l.lost()
	l.acknowledged(3)
	l.tick(1 * s)
	require.True(t, l.lapsed(), "the lease must lapse 10 s after the last acknowledged heartbeat was sent")
	l.renew(10 * s)
	require.False(t, l.lapsed())
	for i := range uint64(5000) {
		l.beats(i)
	}
	require.Len(t, l.sent, maxBeats)
}

func TestBackoff(t *testing.T) {
	a, b := newBackoff(7), newBackoff(7)
	full := firstWait
	for range 20 {
		wait := a.wait()
		require.Equal(t, wait, b.wait(), "two backoffs with the same seed must have the same waits")
		require.GreaterOrEqual(t, wait, full/2)
		require.LessOrEqual(t, wait, full)
		full = min(2*full, lastWait)
	}
	require.Equal(t, lastWait, full)
	a.reset()
	require.LessOrEqual(t, a.wait(), firstWait)
}
