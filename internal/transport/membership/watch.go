package membership

import "time"

// watch judges silence by the clock of who listens. A process that was itself
// stopped or starved finds old times of hearing when it wakes, although the others
// may have spoken all the while; it notices that its own tick is late, and then
// gives them time to be heard before it judges.
//
// A stopped peer is declared dead within the detection time: up to a beat may have
// passed since it was last heard, and up to a period until the next tick.
type watch struct {
	period time.Duration // between ticks
	beat   time.Duration // between signs of life
	limit  time.Duration // of silence
	grace  time.Duration // after a sleep

	ticked time.Duration // last tick
	excuse time.Duration // silence before it is not counted
}

func newWatch(detection time.Duration) watch {
	period := detection / 32
	return watch{
		period: period,
		beat:   detection / 8,
		limit:  detection - 2*period,
		grace:  detection / 4,
	}
}

// tick notes the time and reports whether this process was asleep.
func (w *watch) tick(now time.Duration) (asleep bool) {
	asleep = now-w.ticked > w.beat
	if asleep {
		w.excuse = now + w.grace - w.limit
	}
	w.ticked = now
	return asleep
}

// judge says how long one who was last heard at a time has been silent, and whether
// that is too long. It is asked right after a tick.
func (w *watch) judge(now, heard time.Duration) (silent time.Duration, dead bool) {
	return now - heard, now-max(heard, w.excuse) >= w.limit
}
