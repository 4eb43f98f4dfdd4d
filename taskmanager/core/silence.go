package core

import (
	"time"

	"github.com/superstep-ml/superstep/internal/silence"
)

// parts is the number of turns into which a time limit is divided.
const parts = 16

// NewTurns returns a clock that starts at now and counts time in turns. A turn lasts a
// sixteenth of limit, but at least 1 ms. The clock can measure time limits of limit or more.
func NewTurns(limit, now time.Duration) silence.Clock {
	c := silence.NewClock(max(limit/parts, time.Millisecond))
	c.Begin(now)
	return c
}

// Lease measures how long ago the last acknowledged heartbeat was sent. The job manager
// certainly knows that this task manager was alive when it sent that heartbeat, but not that it
// was alive later.
type Lease struct {
	Limit time.Duration // age at which the lease lapses
	age   time.Duration // time in turns since the last acknowledged heartbeat was sent
	sent  []beat        // heartbeats not acknowledged yet, oldest first
}

// beat is a heartbeat that was sent.
type beat struct {
	number uint64
	age    time.Duration // time in turns since the heartbeat was sent
}

// maxBeats bounds the unacknowledged heartbeats that are recorded. Acknowledgements of later
// heartbeats are ignored. The lease lapses long before so many heartbeats are unacknowledged.
const maxBeats = 1024

// Renew starts the lease again with age 0, after a registration.
func (l *Lease) Renew(limit time.Duration) { *l = Lease{Limit: limit} }

// Beats records that a heartbeat was sent.
func (l *Lease) Beats(number uint64) {
	if len(l.sent) < maxBeats {
		l.sent = append(l.sent, beat{number: number})
	}
}

// Acknowledged records that the job manager has received the heartbeat with this number, and
// therefore all earlier heartbeats.
func (l *Lease) Acknowledged(number uint64) {
	for i := len(l.sent) - 1; i >= 0; i-- {
		if l.sent[i].number == number {
			l.age = l.sent[i].age
			l.sent = append(l.sent[:0], l.sent[i+1:]...)
			return
		}
	}
}

// Lost forgets the unacknowledged heartbeats when their connection has broken, because they
// will not be acknowledged any more.
func (l *Lease) Lost() { l.sent = nil }

// Tick advances the lease by the duration passed.
func (l *Lease) Tick(passed time.Duration) {
	l.age += passed
	for i := range l.sent {
		l.sent[i].age += passed
	}
}

// Lapsed reports whether the age of the lease has reached its limit.
func (l *Lease) Lapsed() bool { return l.age >= l.Limit }
