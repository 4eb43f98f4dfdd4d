package taskmanager

import "time"

// turns measures time by the ticks of this process, and only while it gets its turns.
// A process that was stopped, or that has more to run than its share of the machine,
// hears nobody for as long, although they may have spoken all the while. However much
// time passes between two ticks, no more than two periods of it count: nobody is taken
// for dead before this process had as many turns to hear as the limit has periods.
type turns struct {
	period time.Duration
	ticked time.Duration
}

// parts is how many ticks a limit has.
const parts = 16

// newTurns returns a measure for limits of at least limit, that starts now.
func newTurns(limit, now time.Duration) turns {
	return turns{period: max(limit/parts, time.Millisecond), ticked: now}
}

// tick notes the time, and returns how much of what has passed counts.
func (t *turns) tick(now time.Duration) time.Duration {
	passed := now - t.ticked
	t.ticked = now
	return min(passed, 2*t.period)
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
