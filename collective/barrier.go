package collective

import (
	"math"
	"sync"
	"sync/atomic"
)

// barrier is a reusable barrier: each meeting of all ranks is a phase. Phases are
// numbered from 1. A rank that has arrived at phase k waits until the number of
// completed phases reaches k.
//
// The last rank to arrive may read and write what the others have posted until it
// calls release. The others wait so long even if the group fails meanwhile. That is
// why arrived is only reset under mu, together with the phase: a waiting rank that
// holds mu sees either that all have arrived or that the phase is complete, and never
// leaves in between.
type barrier struct {
	n int32
	_ [60]byte

	// arrived and first share a cache line, since a rank that arrives needs both.
	arrived atomic.Int32
	first   atomic.Uint64 // signature of the first to arrive, 0 if none
	_       [48]byte

	done atomic.Uint64 // completed phases
	_    [56]byte

	mu     sync.Mutex
	cond   sync.Cond
	parked int // ranks in park, or about to be
	left   int // first rank that has left, −1 if none
}

// maxSpin and minSpin bound the number of tries before parking. A try takes about a
// nanosecond, and maxSpin tries about as long as a park and a wake-up across processors.
const (
	maxSpin = 8192
	minSpin = 64
)

func (b *barrier) init(n int) {
	b.n = int32(n)
	b.left = -1
	b.cond.L = &b.mu
}

// announce stores the signature of the first rank to arrive and returns the stored one.
func (b *barrier) announce(s signature) signature {
	if f := b.first.Load(); f != 0 {
		return signature(f)
	}
	if b.first.CompareAndSwap(0, uint64(s)) {
		return s
	}
	return signature(b.first.Load())
}

// arrive counts the caller. It returns true for the last rank, which must then call
// release or discard.
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

// discard says that the phase will never complete, and that no rank works for the
// others any more. No later arrival is the last one.
func (b *barrier) discard() {
	b.mu.Lock()
	b.arrived.Store(math.MinInt32 / 2)
	b.mu.Unlock()
	b.cond.Broadcast()
}

// spin checks for a while whether phase is complete.
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
	failed           // the group has a cause of failure, and no rank works for the others
	rankLeft         // a rank has left
)

// park blocks until the outcome of the phase is known.
func (b *barrier) park(phase uint64, failure *atomic.Pointer[cause]) outcome {
	b.mu.Lock()
	b.parked++
	o := b.outcomeSoFar(phase, failure)
	for ; o == pending; o = b.outcomeSoFar(phase, failure) {
		b.cond.Wait()
	}
	b.parked--
	b.mu.Unlock()
	return o
}

// outcomeSoFar returns the outcome so far. The caller holds mu.
func (b *barrier) outcomeSoFar(phase uint64, failure *atomic.Pointer[cause]) outcome {
	switch {
	case b.done.Load() >= phase:
		return met
	case b.arrived.Load() == b.n:
		return pending // the last rank uses what this rank has posted
	case failure.Load() != nil:
		return failed
	case b.left >= 0:
		return rankLeft
	default:
		return pending
	}
}

// settle blocks until phase is complete, even if the group fails. It is for phases
// that complete in any case, because each rank only has its own work to do before it
// arrives.
func (b *barrier) settle(phase uint64) {
	b.mu.Lock()
	b.parked++
	for b.done.Load() < phase {
		b.cond.Wait()
	}
	b.parked--
	b.mu.Unlock()
}

// wakeAll makes waiting ranks look again.
func (b *barrier) wakeAll() {
	b.mu.Lock() // a rank that looked before the change is in Wait by now
	defer b.mu.Unlock()
	b.cond.Broadcast()
}

// leave records that a rank will not arrive any more.
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
