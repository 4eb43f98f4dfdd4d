package taskmanager

import (
	"time"

	"github.com/superstep-ml/superstep/internal/silence"
)

// parts is the number of turns in a limit.
const parts = 16

// newTurns returns a clock for limits of at least limit. It begins at now.
func newTurns(limit, now time.Duration) silence.Clock {
	c := silence.NewClock(max(limit/parts, time.Millisecond))
	c.Begin(now)
	return c
}

// lease measures how long a task manager has gone on without its job manager. It runs from the
// sending of the last acknowledged heartbeat: that is the latest moment at which the job manager
// knows this task manager to be alive.
type lease struct {
	limit time.Duration // in turns
	age   time.Duration // turns since the acknowledged heartbeat was sent
	sent  []beat        // heartbeats not acknowledged yet, oldest first
}

// beat is a heartbeat that was sent.
type beat struct {
	number uint64
	age    time.Duration // turns since it was sent
}

// maxBeats bounds the heartbeats that are remembered. Later ones are not, and their
// acknowledgements are ignored. By then the lease is long over.
const maxBeats = 1024

// renew begins the lease anew, as upon a registration.
func (l *lease) renew(limit time.Duration) { *l = lease{limit: limit} }

// beats records that a heartbeat was sent.
func (l *lease) beats(number uint64) {
	if len(l.sent) < maxBeats {
		l.sent = append(l.sent, beat{number: number})
	}
}

// acknowledged records that the job manager has received a heartbeat, and so all before it.
func (l *lease) acknowledged(number uint64) {
	for i := len(l.sent) - 1; i >= 0; i-- {
		if l.sent[i].number == number {
			l.age = l.sent[i].age
			l.sent = append(l.sent[:0], l.sent[i+1:]...)
			return
		}
	}
}

// lost forgets the heartbeats of a connection that broke, as they will not be acknowledged any
// more.
func (l *lease) lost() { l.sent = nil }

// tick lets time pass.
func (l *lease) tick(passed time.Duration) {
	l.age += passed
	for i := range l.sent {
		l.sent[i].age += passed
	}
}

// lapsed reports whether no message of the job manager came for too long.
func (l *lease) lapsed() bool { return l.age >= l.limit }
