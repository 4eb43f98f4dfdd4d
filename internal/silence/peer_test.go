package silence

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A peer that begins long after the watch has as much time as any other.
func TestPeersThatComeLate(t *testing.T) {
	const detection = 4 * second
	w := NewWatch(detection, 0)
	now := time.Duration(0)
	tick := func() {
		now += w.Period
		w.Tick(now)
	}
	for now < time.Minute {
		tick()
	}
	var p Peer
	came := now
	for w.Judge(&p) != Dead {
		require.Less(t, now-came, detection)
		tick()
	}
	require.Greater(t, now-came, detection*7/8)
}
