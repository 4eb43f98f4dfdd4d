package taskmanager

import (
	"time"

	"github.com/superstep-ml/superstep/internal/silence"
)

// parts is how many turns a limit has.
const parts = 16

// newTurns returns a clock for limits of at least limit, that begins now.
func newTurns(limit, now time.Duration) silence.Clock {
	c := silence.NewClock(max(limit/parts, time.Millisecond))
	c.Begin(now)
	return c
}

// lease is how long a task manager goes on without its job manager. It runs from when
// the last heartbeat that was acknowledged was sent: whoever acknowledged it has known
// since then that this task manager lives, and not for longer.
type lease struct {
	limit time.Duration // of turns
	age   time.Duration // of what is acknowledged
	sent  []beat        // not acknowledged yet, oldest first
}

// beat is a heartbeat on its way.
type beat struct {
	number uint64
	age    time.Duration // turns since it was sent
}

// maxBeats bounds the heartbeats that are remembered; what comes after is not, so that
// its acknowledgement counts for nothing. By then the lease is long over.
const maxBeats = 1024

// renew says that the job manager has spoken for good, as when it registers.
func (l *lease) renew(limit time.Duration) { *l = lease{limit: limit} }

// beats notes that a heartbeat was sent.
func (l *lease) beats(number uint64) {
	if len(l.sent) < maxBeats {
		l.sent = append(l.sent, beat{number: number})
	}
}

// acknowledged notes that the job manager has heard a heartbeat, and so all before it.
func (l *lease) acknowledged(number uint64) {
	for i := len(l.sent) - 1; i >= 0; i-- {
		if l.sent[i].number == number {
			l.age = l.sent[i].age
			l.sent = append(l.sent[:0], l.sent[i+1:]...)
			return
		}
	}
}

// lost forgets the heartbeats of a connection that broke; what they would have renewed
// will not be acknowledged.
func (l *lease) lost() { l.sent = nil }

// tick lets time pass.
func (l *lease) tick(passed time.Duration) {
	l.age += passed
	for i := range l.sent {
		l.sent[i].age += passed
	}
}

// lapsed reports whether the job manager was not heard for too long.
func (l *lease) lapsed() bool { return l.age >= l.limit }
