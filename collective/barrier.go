package collective

import (
	"math"
	"sync"
	"sync/atomic"
)

// barrier counts ranks in and lets them go together, again and again. A phase is
// one such meeting; phases are numbered from 1, and a rank that has arrived at
// phase k waits for the number of completed phases to reach k.
//
// The last to arrive has the group to itself until it calls release: the others
// wait, even when the group fails meanwhile, so that it may read and write what
// they posted. That is why arrived is only reset under mu, together with the
// phase: a waiting rank that holds mu sees either "all are here, and someone is at
// work", or the completed phase, and never leaves in between.
type barrier struct {
	n int32
	_ [60]byte

	// arrived and first share a cache line: who arrives needs both.
	arrived atomic.Int32
	first   atomic.Uint64 // signature of the first to arrive, 0 if none
	_       [48]byte

	done atomic.Uint64 // completed phases
	_    [56]byte

	mu     sync.Mutex
	cond   sync.Cond
	parked int // ranks in park, or about to be
	left   int // rank that has left, −1 if none
}

// maxSpin and minSpin bound the tries before parking, about a nanosecond each:
// what a park and a wake-up across processors cost.
const (
	maxSpin = 8192
	minSpin = 64
)

func (b *barrier) init(n int) {
	b.n = int32(n)
	b.left = -1
	b.cond.L = &b.mu
}

// announce notes the signature of the first rank to come, and returns the first's.
func (b *barrier) announce(s signature) signature {
	if f := b.first.Load(); f != 0 {
		return signature(f)
	}
	if b.first.CompareAndSwap(0, uint64(s)) {
		return s
	}
	return signature(b.first.Load())
}

// arrive counts the caller in; true for the last, who then must call release or
// discard.
func (b *barrier) arrive() bool { return b.arrived.Add(1) == b.n }

// release completes the phase.
func (b *barrier) release() {
	b.mu.Lock()
	b.first.Store(0)
	b.arrived.Store(0)
	b.done.Add(1)
	wake := b.parked > 0
	b.mu.Unlock()
	if wake {
		b.cond.Broadcast()
	}
}

// discard says that the phase will never complete, and that nobody is at work any
// more. No later arrival is the last one.
func (b *barrier) discard() {
	b.mu.Lock()
	b.arrived.Store(math.MinInt32 / 2)
	b.mu.Unlock()
	b.cond.Broadcast()
}

// spin tries for a while whether phase is complete.
func (b *barrier) spin(phase uint64, tries int) bool {
	for ; tries > 0; tries-- {
		if b.done.Load() >= phase {
			return true
		}
	}
	return false
}

type outcome uint8

const (
	pending  outcome = iota
	met              // the phase is complete
	failed           // the group has a cause of failure, and nobody is at work
	rankLeft         // a rank has left
)

// park blocks until there is something to say about the phase.
func (b *barrier) park(phase uint64, failure *atomic.Pointer[cause]) outcome {
	b.mu.Lock()
	b.parked++
	o := b.look(phase, failure)
	for ; o == pending; o = b.look(phase, failure) {
		b.cond.Wait()
	}
	b.parked--
	b.mu.Unlock()
	return o
}

// look says how things stand; mu is held.
func (b *barrier) look(phase uint64, failure *atomic.Pointer[cause]) outcome {
	switch {
	case b.done.Load() >= phase:
		return met
	case b.arrived.Load() == b.n:
		return pending // the last rank is at work on what we posted
	case failure.Load() != nil:
		return failed
	case b.left >= 0:
		return rankLeft
	default:
		return pending
	}
}

// settle blocks until phase is complete, whatever befalls the group. It is for
// phases that complete in any case, because nobody stands between a rank and its
// arrival but its own work.
func (b *barrier) settle(phase uint64) {
	b.mu.Lock()
	b.parked++
	for b.done.Load() < phase {
		b.cond.Wait()
	}
	b.parked--
	b.mu.Unlock()
}

// wakeAll makes those who wait look again.
func (b *barrier) wakeAll() {
	b.mu.Lock() // whoever looked before the news is in Wait by now
	defer b.mu.Unlock()
	b.cond.Broadcast()
}

// leave notes that a rank will not come again.
func (b *barrier) leave(rank int) {
	b.mu.Lock()
	if b.left < 0 {
		b.left = rank
	}
	b.mu.Unlock()
	b.cond.Broadcast()
}

func (b *barrier) whoLeft() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left
}
