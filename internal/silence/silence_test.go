package silence

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const second = time.Second

// TestClockCountsTurns: of the time between two ticks, no more than two periods count. Time
// before the clock began does not count, and neither does time that runs backwards.
func TestClockCountsTurns(t *testing.T) {
	c := NewClock(second)
	require.Zero(t, c.Gap(time.Hour, 0), "before it has begun there is no gap")
	c.Begin(5 * second)
	c.Begin(50 * second)
	require.Equal(t, second, c.Tick(6*second))
	require.Equal(t, 500*time.Millisecond, c.Tick(6500*time.Millisecond))
	require.Zero(t, c.Gap(7*second, second))
	require.Equal(t, second, c.Gap(7500*time.Millisecond, second))
	require.Equal(t, 2*second, c.Tick(time.Hour), "a process that was stopped for an hour had one turn in it")
	require.Zero(t, c.Tick(time.Minute))
	require.Equal(t, second, c.Tick(time.Hour+second))
	require.Equal(t, 4500*time.Millisecond, c.Counted())
}

// TestClockBeginsWithItsFirstTick: the time before it does not count.
func TestClockBeginsWithItsFirstTick(t *testing.T) {
	c := NewClock(second)
	require.Zero(t, c.Tick(time.Hour))
	require.Equal(t, second, c.Tick(time.Hour+second))
}

// TestDeadWithinTheDetectionTime: if this process gets its turns, a peer is dead between seven
// eighths of the detection time and all of it, whenever in a period it was heard last. It is
// suspect from a quarter on.
func TestDeadWithinTheDetectionTime(t *testing.T) {
	const detection = 4 * second
	for phase := time.Duration(0); phase < detection/32; phase += detection / 320 {
		w := NewWatch(detection, 0)
		var p Peer
		w.Tick(w.Period)
		w.Heard(&p)
		spoke := w.Period + phase // the message comes between two ticks
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

// TestTurnsBeforeDeath: a peer is dead when this process has had one turn for each period of
// the detection time. If each turn came late, half as many are enough.
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

// TestSuspendedProcessReadsBeforeItSuspects: a process that wakes from a long sleep first reads what has
// arrived.
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
	require.NotEqual(t, Dead, w.Judge(&p), "it may have spoken meanwhile")
	for range 28 { // the sleep counted as two turns
		now += w.Period
		w.Tick(now)
		require.NotEqual(t, Dead, w.Judge(&p), "it may not have had time to be heard")
	}
	now += w.Period
	w.Tick(now)
	require.Equal(t, Dead, w.Judge(&p), "it had time to be heard")
}

// TestNobodyIsDeadWhoIsHeardInTime compares the watch, over random turns and messages, with the
// sum of all turns since the peer was heard.
func TestNobodyIsDeadWhoIsHeardInTime(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		w := NewWatch(3200*time.Millisecond, 0)
		var p Peer
		w.Heard(&p)
		var since []time.Duration // the turns since it was heard
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
