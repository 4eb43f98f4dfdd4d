package core

import (
	"math/rand/v2"
	"time"
)

// Bounds of the nominal waits between attempts to reach the job manager.
const (
	firstWait = 100 * time.Millisecond
	lastWait  = 3 * time.Second
)

// Backoff computes how long to wait before the next attempt. The nominal wait doubles each
// time, up to a limit. The actual wait is random between half of the nominal wait and the
// nominal wait, so that the task managers of a cluster do not all reconnect at the same moment.
type Backoff struct {
	first, last time.Duration // bounds of the nominal wait
	next        time.Duration
	random      *rand.Rand
}

// NewBackoff returns a backoff for attempts to reach the job manager, whose random waits are
// determined by seed.
func NewBackoff(seed uint64) *Backoff { return NewBackoffBetween(firstWait, lastWait, seed) }

// NewBackoffBetween returns a backoff with the given bounds of its nominal waits.
func NewBackoffBetween(first, last time.Duration, seed uint64) *Backoff {
	return &Backoff{first: first, last: last, next: first, random: rand.New(rand.NewPCG(seed, seed))}
}

// Wait returns how long to wait before the next attempt.
func (b *Backoff) Wait() time.Duration {
	full := b.next
	b.next = min(2*b.next, b.last)
	return full/2 + time.Duration(b.random.Int64N(int64(full/2)+1))
}

// Reset sets the next nominal wait to the shortest. It is called after an attempt that
// succeeded.
func (b *Backoff) Reset() { b.next = b.first }
