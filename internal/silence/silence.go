// Package silence distinguishes a silent peer from one whose messages this process had no time
// to read. It has no goroutine, clock, socket or lock: the caller reports ticks and messages
// with their times, and gets a verdict. A process that listens has one [Watch], and a [Peer]
// for each of its peers:
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
// A process that was stopped, or that is overloaded, has read nothing during that time,
// although its peers may have sent messages all the while: these wait in its sockets, behind
// its other goroutines. Its ticks are delayed just as its reads are. So of the time between two
// ticks, no more than two periods count. A peer is dead, or a message too late, only after this
// process has had one turn to read for each period of the limit, or for each two periods if
// every turn came late. If this process gets its turns, a stopped peer is dead within the
// detection time. The limit is a period less than the detection time, as the first tick after a
// message counts a whole period of silence.
package silence

import "time"

// Clock counts the time in which this process ran. Times are measured from any fixed moment.
// The zero value has no period, and counts nothing.
type Clock struct {
	Period time.Duration // between ticks

	begun   bool
	ticked  time.Duration // last tick
	counted time.Duration
}

// NewClock returns a clock for ticks of the given period. It begins with its first event.
func NewClock(period time.Duration) Clock { return Clock{Period: period} }

// Begin starts the clock now, if it has not started.
func (c *Clock) Begin(now time.Duration) {
	if !c.begun {
		c.begun, c.ticked = true, now
	}
}

// Tick records a turn of this process, and returns how much of the time since the last one
// counts. If now is earlier than the last tick, nothing counts.
func (c *Clock) Tick(now time.Duration) time.Duration {
	c.Begin(now)
	passed := min(max(0, now-c.ticked), 2*c.Period)
	c.ticked = max(c.ticked, now)
	c.counted += passed
	return passed
}

// Counted returns the total time that has counted.
func (c *Clock) Counted() time.Duration { return c.counted }

// Gap returns the time since the last tick if that is at least least, and else 0. During a gap
// this process was stopped, or got no processor.
func (c *Clock) Gap(now, least time.Duration) time.Duration {
	if gap := now - c.ticked; c.begun && gap >= least {
		return gap
	}
	return 0
}

// Watch has the clock and the limits for listening to peers that send signs of life all the
// time.
type Watch struct {
	Clock
	Beat  time.Duration // between signs of life
	Limit time.Duration // of silence
}

// The numbers of ticks and of signs of life in a detection time.
const (
	ticks = 32
	beats = 8
)

// NewWatch returns a watch that finds a silent peer within the detection time. It begins at
// now.
func NewWatch(detection, now time.Duration) Watch {
	period := detection / ticks
	w := Watch{Clock: NewClock(period), Beat: detection / beats, Limit: detection - period}
	w.Begin(now)
	return w
}

// Peer is a process that is listened to. The zero value begins with the first Judge or Heard,
// however long the watch has been running by then.
type Peer struct {
	begun bool
	heard time.Duration
}

// Heard records that something of a peer has arrived.
func (w *Watch) Heard(p *Peer) { p.begun, p.heard = true, w.counted }

// Verdict is what a silence means.
type Verdict uint8

const (
	// Alive: it was heard of late.
	Alive Verdict = iota

	// Suspect: it was not heard for some time, so the caller checks whether unread bytes of it
	// wait for a goroutine of this process. If so, the caller calls Heard.
	Suspect

	// Dead: it was silent for the limit. A caller that has not checked for unread bytes since
	// the peer was suspect does so first.
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
