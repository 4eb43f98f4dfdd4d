package remote

import "time"

// watch measures silence by the clock of who listens, and only while it listens. A
// process that was stopped, or that has more to run than its share of the machine,
// has heard nobody for as long, although they may have spoken all the while. Its
// ticks are starved as its ears are, so however much time passes between two ticks,
// no more than two periods of it count as silence.
type watch struct {
	period time.Duration // between ticks
	beat   time.Duration // between signs of life
	limit  time.Duration // of silence
	ticked time.Time     // last tick
}

func newWatch(detection time.Duration, now time.Time) watch {
	period := detection / 32
	return watch{period: period, beat: detection / 8, limit: detection - period, ticked: now}
}

// tick notes the time and returns how much of what has passed counts as silence of
// those who were not heard.
func (w *watch) tick(now time.Time) time.Duration {
	passed := now.Sub(w.ticked)
	w.ticked = now
	return min(passed, 2*w.period)
}

// suspects reports whether a silence is long enough to look whether it is one: whose
// bytes have arrived, but wait for a goroutine of this process, is not silent.
func (w *watch) suspects(silent time.Duration) bool { return silent > 2*w.beat }
