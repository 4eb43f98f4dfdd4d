// Package silence tells those who are silent from those who were not heard. It knows no
// goroutine, clock, socket or lock: it is told of turns, times and words, and answers with
// a verdict. A process that listens has one [Watch], and a [Peer] for each that it listens
// to:
//
//	w := silence.NewWatch(4*time.Second, now)
//	w.Tick(now)                       // every w.Period
//	w.Heard(&peer)                    // when something of it has come
//	switch w.Judge(&peer) {
//	case silence.Suspect:             // does something of it wait to be read?
//	case silence.Dead:
//	}
//
// # Whose silence it is
//
// A process that was stopped, or that has more to run than its share of the machine, has
// heard nobody for as long, although they may have spoken all the while: their words wait
// in its sockets, behind its other goroutines. Its ticks are starved as its ears are. So
// however much time passes between two ticks, no more than two periods of it count: nobody
// is dead, and nothing too late, before this process has had a turn to hear for each period
// of the limit, or for each two where every turn came late. To one that gets its turns a stopped peer is dead within the
// detection time: the limit is a period less than that, as the first tick after a word
// counts a whole period of silence.
package silence

import "time"

// Clock counts the time in which this process got its turns. Times are counted from any
// moment that stays the same. The zero value has no period, and counts nothing.
type Clock struct {
	Period time.Duration // between ticks

	begun   bool
	ticked  time.Duration // last tick
	counted time.Duration
}

// NewClock returns a clock for ticks of a period, which begins with its first event.
func NewClock(period time.Duration) Clock { return Clock{Period: period} }

// Begin has the clock begin now, if it has not begun.
func (c *Clock) Begin(now time.Duration) {
	if !c.begun {
		c.begun, c.ticked = true, now
	}
}

// Tick notes that this process has a turn, and returns how much counts of the time since
// the one before, none of time that falls.
func (c *Clock) Tick(now time.Duration) time.Duration {
	c.Begin(now)
	passed := min(max(0, now-c.ticked), 2*c.Period)
	c.ticked = max(c.ticked, now)
	c.counted += passed
	return passed
}

// Counted is all the time that has counted.
func (c *Clock) Counted() time.Duration { return c.counted }

// Gap returns how long ago the last tick was, if that is at least so long, and else 0.
// This process was stopped meanwhile, or had no part of its machine.
func (c *Clock) Gap(now, least time.Duration) time.Duration {
	if gap := now - c.ticked; c.begun && gap >= least {
		return gap
	}
	return 0
}

// Watch is the clock and the limits of who listens for those that are to speak all the
// time.
type Watch struct {
	Clock
	Beat  time.Duration // between signs of life
	Limit time.Duration // of silence
}

// Parts of a detection time: how many ticks and beats it has.
const (
	ticks = 32
	beats = 8
)

// NewWatch returns a watch that finds who is silent within a detection time, and begins
// now.
func NewWatch(detection, now time.Duration) Watch {
	period := detection / ticks
	w := Watch{Clock: NewClock(period), Beat: detection / beats, Limit: detection - period}
	w.Begin(now)
	return w
}

// Peer is one that is listened to. The zero value begins to be with the first Judge or Heard,
// however long the watch has gone on by then.
type Peer struct {
	begun bool
	heard time.Duration
}

// Heard notes that something of a peer has come.
func (w *Watch) Heard(p *Peer) { p.begun, p.heard = true, w.counted }

// Verdict is what a silence means.
type Verdict uint8

const (
	// Alive: it was heard of late.
	Alive Verdict = iota

	// Suspect: it was not heard for so long that it is to be looked whether something of
	// it has come and waits for a goroutine of this process. Then it was heard.
	Suspect

	// Dead: it was silent for the limit. Who has not looked since it was suspect looks
	// before believing it.
	Dead
)

// Judge says what a peer's silence means.
func (w *Watch) Judge(p *Peer) Verdict {
	if !p.begun {
		w.Heard(p)
	}
	switch silent := w.counted - p.heard; {
	case silent >= w.Limit:
		return Dead
	case silent > 2*w.Beat:
		return Suspect
	}
	return Alive
}
