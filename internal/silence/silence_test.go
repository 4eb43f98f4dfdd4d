package silence

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const second = time.Second

// TestClockCountsTurns requires that at most two periods between two ticks count, and that time
// before Begin and time that runs backwards do not count.
func TestClockCountsTurns(t *testing.T) {
	c := NewClock(second)
	require.Zero(t, c.Gap(time.Hour, 0), "Gap must return 0 before Begin")
	c.Begin(5 * second)
	c.Begin(50 * second)
	require.Equal(t, second, c.Tick(6*second))
	require.Equal(t, 500*time.Millisecond, c.Tick(6500*time.Millisecond))
	require.Zero(t, c.Gap(7*second, second))
	require.Equal(t, second, c.Gap(7500*time.Millisecond, second))
	require.Equal(t, 2*second, c.Tick(time.Hour), "only two periods of an hour between two ticks must count")
	require.Zero(t, c.Tick(time.Minute))
	require.Equal(t, second, c.Tick(time.Hour+second))
	require.Equal(t, 4500*time.Millisecond, c.Counted())
}

// TestClockBeginsWithItsFirstTick requires that the time before the first tick does not count.
func TestClockBeginsWithItsFirstTick(t *testing.T) {
	c := NewClock(second)
	require.Zero(t, c.Tick(time.Hour))
	require.Equal(t, second, c.Tick(time.Hour+second))
}

// TestDeadWithinTheDetectionTime requires that, if no tick is late, a silent peer is suspect
// after about 1/4 of the detection time, and dead after 7/8 to 8/8 of it. This must not depend
// on when between two ticks the last message arrived.
func TestDeadWithinTheDetectionTime(t *testing.T) {
	const detection = 4 * second
	for phase := time.Duration(0); phase < detection/32; phase += detection / 320 {
		w := NewWatch(detection, 0)
		var p Peer
		w.Tick(w.Period)
		w.Heard(&p)
		spoke := w.Period + phase // the message came between two ticks
		var suspect time.Duration
		for now := 2 * w.Period; ; now += w.Period {
			w.Tick(now)
			verdict := w.Judge(&p)
			if verdict == Suspect && suspect == 0 {
				suspect = now - spoke
			}
			if verdict != Dead {
				require.Less(t, now-spoke, detection)
				continue
			}
			require.LessOrEqual(t, now-spoke, detection)
			require.Greater(t, now-spoke, detection*7/8)
			require.InDelta(t, float64(detection/4), float64(suspect), float64(2*w.Period))
			break
		}
	}
}

// TestTurnsBeforeDeath requires that a silent peer is dead after as many ticks as there are
// periods in the limit. If each tick is late, the peer must be dead after half as many ticks.
func TestTurnsBeforeDeath(t *testing.T) {
	for passed, want := range map[time.Duration]int{4 * second / 32: 31, time.Hour: 16} {
		w := NewWatch(4*second, 0)
		var p Peer
		turns := 0
		for now := passed; w.Judge(&p) != Dead; now += passed {
			w.Tick(now)
			turns++
		}
		require.Equal(t, want, turns)
	}
}

// TestSuspendedProcessReadsBeforeItSuspects requires that, after this process was stopped for
// an hour, a peer is dead only when this process has had enough ticks to read messages that
// arrived meanwhile.
func TestSuspendedProcessReadsBeforeItSuspects(t *testing.T) {
	w := NewWatch(4*second, 0)
	var p Peer
	now := time.Duration(0)
	for range 100 {
		now += w.Period
		require.Zero(t, w.Gap(now, w.Beat+1))
		w.Tick(now)
	}
	w.Heard(&p)
	now += time.Hour
	require.Equal(t, time.Hour, w.Gap(now, w.Beat+1))
	w.Tick(now)
	require.NotEqual(t, Dead, w.Judge(&p), "the peer must not be dead: its messages may have arrived while the process was stopped")
	for range 28 { // the hour counted as two periods
		now += w.Period
		w.Tick(now)
		require.NotEqual(t, Dead, w.Judge(&p), "the peer must not be dead: the process may not have had time to read its messages")
	}
	now += w.Period
	w.Tick(now)
	require.Equal(t, Dead, w.Judge(&p), "the peer must be dead: the process had time to read its messages")
}

// TestNobodyIsDeadWhoIsHeardInTime draws random ticks and messages. It compares the verdicts
// with verdicts derived from the sum of the counted times since the last message.
func TestNobodyIsDeadWhoIsHeardInTime(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		w := NewWatch(3200*time.Millisecond, 0)
		var p Peer
		w.Heard(&p)
		var since []time.Duration // the counted times since the peer was heard
		now, dead := time.Duration(0), false
		for range 500 {
			if r.IntN(20) == 0 {
				w.Heard(&p)
				since = nil
			}
			passed := time.Duration(r.ExpFloat64() * float64(w.Period))
			now += passed
			w.Tick(now)
			since = append(since, min(passed, 200*time.Millisecond))
			var silent time.Duration
			for _, d := range since {
				silent += d
			}
			want := Alive
			if silent >= 3100*time.Millisecond {
				want = Dead
			} else if silent > 800*time.Millisecond {
				want = Suspect
			}
			dead = dead || want == Dead
			require.Equal(t, want, w.Judge(&p))
		}
	}
}
