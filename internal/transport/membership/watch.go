package membership

import "time"

// watch measures silence by the clock of who listens, and only while it listens. A
// process that was stopped, or that has more to run than its share of the machine,
// has not heard the others for as long, although they may have spoken all the while
// and their words may wait in its sockets, behind its other goroutines. Its ticks
// are starved as its ears are. So however much time passes between two ticks, no
// more than two periods of it count as silence: nobody is declared dead before this
// process has had as many turns to hear as the detection time has periods.
//
// To a process that gets its turns, a stopped peer is dead within the detection
// time. The first tick after a peer was heard counts a whole period of silence.
type watch struct {
	period time.Duration // between ticks
	beat   time.Duration // between signs of life
	limit  time.Duration // of silence

	ticked time.Duration // last tick
}

func newWatch(detection time.Duration) watch {
	period := detection / 32
	return watch{
		period: period,
		beat:   detection / 8,
		limit:  detection - period,
	}
}

// tick notes the time. It returns how much of what has passed counts as silence for
// those who were not heard, and whether this process has been asleep.
func (w *watch) tick(now time.Duration) (counts time.Duration, asleep bool) {
	passed := now - w.ticked
	w.ticked = now
	return min(passed, 2*w.period), passed > w.beat
}

// suspects reports whether a silence is long enough to look whether it is one: whose
// words have arrived, but wait for a goroutine of this process, is not silent.
func (w *watch) suspects(silent time.Duration) bool { return silent > 2*w.beat }
