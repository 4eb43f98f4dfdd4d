package taskmanager

import (
	"math/rand/v2"
	"time"
)

// Waits between attempts to reach the job manager.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 3 * time.Second
)

// backoff says how long to wait before the next attempt. The wait doubles each time, up to a
// limit. Its actual length is random between half of that and all of it, so that the task
// managers of a cluster do not all come back at one moment.
type backoff struct {
	next   time.Duration
	random *rand.Rand
}

// newBackoff returns a backoff whose waits are a function of the seed.
func newBackoff(seed uint64) *backoff {
	return &backoff{next: firstWait, random: rand.New(rand.NewPCG(seed, seed))}
}

// wait returns the time to wait now.
func (b *backoff) wait() time.Duration {
	full := b.next
	b.next = min(2*b.next, lastWait)
	return full/2 + time.Duration(b.random.Int64N(int64(full/2)+1))
}

// reset starts anew, after an attempt that succeeded.
func (b *backoff) reset() { b.next = firstWait }
