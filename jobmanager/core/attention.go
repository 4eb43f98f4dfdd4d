package core

import "time"

// attention is the clock by which the core waits: for a task manager to be heard, for
// workers to be ready, for slots. It counts only time in which the process got its
// ticks. One that was stopped, or that has more to run than its share of the machine,
// has not heard the others for as long, although they may have spoken all the while
// and their words may wait to be read behind the tick. So however much time passes
// between two ticks, no more than two periods of it count: nobody is lost, and nothing
// too late, before this process has had as many turns to hear as the wait has periods.
type attention struct {
	begun  bool
	ticked time.Duration // last tick
	paid   time.Duration // attended in all
}

// begin starts the clock with the first event.
func (a *attention) begin(now time.Duration) {
	if !a.begun {
		a.begun, a.ticked = true, now
	}
}

// missed returns how long ago the last tick was, if that is so long that this process
// was stopped meanwhile, or had no part of its machine; else 0.
func (a *attention) missed(now, least time.Duration) time.Duration {
	if gap := now - a.ticked; a.begun && gap >= least {
		return gap
	}
	return 0
}

// tick notes that the process had a turn.
func (a *attention) tick(now time.Duration) {
	passed := min(max(0, now-a.ticked), 2*TickEvery)
	a.ticked = max(a.ticked, now)
	a.paid += passed
}
