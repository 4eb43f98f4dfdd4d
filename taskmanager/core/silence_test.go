package core

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestTurns requires that a turn is a sixteenth of the limit, but at least 1 ms.
func TestTurns(t *testing.T) {
	turns := NewTurns(16*time.Second, 5*time.Second)
	require.Equal(t, time.Second, turns.Tick(6*time.Second))
	require.Equal(t, 2*time.Second, turns.Tick(time.Hour))
	require.Positive(t, NewTurns(1, 0).Period)
}

func TestLease(t *testing.T) {
	const s = time.Second
	var l Lease
	l.Renew(10 * s)
	l.Beats(1)
	l.Tick(4 * s)
	l.Beats(2)
	l.Tick(4 * s)
	require.False(t, l.Lapsed())
	l.Acknowledged(1) // heartbeat 1 was sent 8 s ago
	l.Tick(1 * s)
	require.False(t, l.Lapsed())
	l.Acknowledged(2) // heartbeat 2 was sent 5 s ago
	l.Acknowledged(1) // a late acknowledgement must change nothing
	l.Acknowledged(7) // heartbeat 7 was never sent, so its acknowledgement must change nothing
	l.Tick(4 * s)
	require.False(t, l.Lapsed())
	l.Beats(3)
	l.Lost()
	l.Acknowledged(3)
	l.Tick(1 * s)
	require.True(t, l.Lapsed(), "the lease must lapse 10 s after the last acknowledged heartbeat was sent")
	l.Renew(10 * s)
	require.False(t, l.Lapsed())
	for i := range uint64(5000) {
		l.Beats(i)
	}
	require.Len(t, l.sent, maxBeats)
}

func TestBackoff(t *testing.T) {
	a, b := NewBackoff(7), NewBackoff(7)
	full := firstWait
	for range 20 {
		wait := a.Wait()
		require.Equal(t, wait, b.Wait(), "two backoffs with the same seed must have the same waits")
		require.GreaterOrEqual(t, wait, full/2)
		require.LessOrEqual(t, wait, full)
		full = min(2*full, lastWait)
	}
	require.Equal(t, lastWait, full)
	a.Reset()
	require.LessOrEqual(t, a.Wait(), firstWait)
}
