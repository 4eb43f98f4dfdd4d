// Package silence detects silent peers. It distinguishes a silent peer from a peer whose
// messages this process had no time to read. It has no goroutine, clock, socket or lock: the
// caller reports ticks, with their times, and messages, and gets a verdict. A process that
// monitors peers has one [Watch], and for each peer a [Peer]:
//
//	w := silence.NewWatch(4*time.Second, now)
//	w.Tick(now)                       // every w.Period
//	w.Heard(&peer)                    // when bytes of the peer have arrived
//	switch w.Judge(&peer) {
//	case silence.Suspect:             // are there unread bytes of the peer?
//	case silence.Dead:
//	}
//
// # Which time counts
//
// If a process was stopped or is overloaded, it has read nothing for some time, although
// messages of its peers may be waiting in its sockets. Its ticks are then delayed as much as
// its reads. So of the time between two ticks, at most two periods count as silence. This
// process has a chance to read at every tick. A peer is dead, or a message overdue, only after
// one tick for every period of the limit, or one tick for every two periods if every tick was
// late. If the ticks of this process are not late, a stopped peer is dead within the detection
// time. The limit is one period less than the detection time, because a message counts as heard
// at the last tick before its arrival.
package silence

import "time"

// Clock counts the time in which this process ran. Times are measured from any fixed moment.
// The zero value has the period 0, and counts nothing.
type Clock struct {
	Period time.Duration // time between two ticks

	begun   bool
	ticked  time.Duration // time of the last tick
	counted time.Duration
}

// NewClock returns a clock for ticks of the given period. It starts with the first call of
// Begin or Tick.
func NewClock(period time.Duration) Clock { return Clock{Period: period} }

// Begin starts the clock at now, unless it has started.
func (c *Clock) Begin(now time.Duration) {
	if !c.begun {
		c.begun, c.ticked = true, now
	}
}

// Tick records a tick at now. It returns the part of the time since the last tick that counts:
// at most two periods, and 0 if now is before the last tick.
func (c *Clock) Tick(now time.Duration) time.Duration {
	c.Begin(now)
	passed := min(max(0, now-c.ticked), 2*c.Period)
	c.ticked = max(c.ticked, now)
	c.counted += passed
	return passed
}

// Counted returns the total of the times that Tick has returned.
func (c *Clock) Counted() time.Duration { return c.counted }

// Gap returns the time since the last tick if it is at least least, and 0 otherwise. During a
// long gap this process was stopped, or got no processor.
func (c *Clock) Gap(now, least time.Duration) time.Duration {
	if gap := now - c.ticked; c.begun && gap >= least {
		return gap
	}
	return 0
}

// Watch has the clock and the limits for the detection of silent peers. The peers must send
// heartbeats all the time.
type Watch struct {
	Clock
	Beat  time.Duration // time between two heartbeats
	Limit time.Duration // silence after which a peer is dead
}

// The numbers of ticks and of heartbeats in a detection time.
const (
	ticks = 32
	beats = 8
)

// NewWatch returns a watch that detects a silent peer within the detection time. Its clock
// starts at now.
func NewWatch(detection, now time.Duration) Watch {
	period := detection / ticks
	w := Watch{Clock: NewClock(period), Beat: detection / beats, Limit: detection - period}
	w.Begin(now)
	return w
}

// Peer is the state of a monitored process. For the zero value, silence is measured from the
// first call of Judge or Heard, however long the watch has been running by then.
type Peer struct {
	begun bool
	heard time.Duration
}

// Heard records that bytes of the peer have arrived.
func (w *Watch) Heard(p *Peer) { p.begun, p.heard = true, w.counted }

// Verdict is the state of a peer, as judged by its silence.
type Verdict uint8

const (
	// Alive means that the peer was heard lately.
	Alive Verdict = iota

	// Suspect means that the peer was silent for more than two heartbeats. The caller should
	// check whether there are unread bytes of the peer, and call Heard if there are.
	Suspect

	// Dead means that the peer was silent for the limit. The caller must still check for unread
	// bytes of the peer, unless it has done so while the peer was Suspect.
	Dead
)

// Judge returns the verdict on a peer.
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
