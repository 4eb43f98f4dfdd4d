package cputime

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestOf requires of a call that computes that it takes as much processor time as the clock of its thread
// says, and of one that waits for another goroutine, which computes as long, that it takes much less.
func TestOf(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells the time of a thread")
	}
	const work = 20 * time.Millisecond
	compute := func() {
		for began := thread(); thread()-began < work; {
		}
	}
	var inner time.Duration
	outer := Of(func() { inner = Of(compute) })
	require.GreaterOrEqual(t, inner, work)
	require.GreaterOrEqual(t, outer, inner)
	waited := Of(func() {
		done := make(chan time.Duration)
		go func() { done <- Of(compute) }()
		require.GreaterOrEqual(t, <-done, work)
	})
	require.Less(t, waited, work/2)
}
