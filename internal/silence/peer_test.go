package silence

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestPeersThatComeLate requires that a peer that is first judged long after the watch started
// is dead only after the detection time.
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
