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
// The last rank to arrive may read and write what the other ranks have posted until it calls
// release or discard. Until then the other ranks wait, even if the group fails meanwhile. For
// this reason, arrived is reset only under mu, together with the increment of done: a waiting
// rank that holds mu sees either that all ranks have arrived or that the phase is complete, and
// never a state in between.
type barrier struct {
	n int32
	_ [60]byte

	// arrived and first share a cache line, since a rank that arrives needs both.
	arrived atomic.Int32
	first   atomic.Uint64 // signature of the first rank to arrive, 0 if none has arrived
	_       [48]byte

	completed atomic.Uint64 // completed phases
	_         [56]byte

	mu       sync.Mutex
	cond     sync.Cond
	parked   int // number of ranks that are in park or settle
	leftRank int // index of the first rank that has left, −1 if none
}

// maxSpin and minSpin bound the number of tries before parking. A try takes about a nanosecond.
// maxSpin tries take about as long as parking a goroutine and waking it from another processor.
const (
	maxSpin = 8192
	minSpin = 64
)

func (b *barrier) init(n int) {
	b.n = int32(n)
	b.leftRank = -1
	b.cond.L = &b.mu
}

// announce stores s if no rank of this phase has stored its signature before. It returns the
// stored signature.
func (b *barrier) announce(s signature) signature {
	if f := b.first.Load(); f != 0 {
		return signature(f)
	}
	if b.first.CompareAndSwap(0, uint64(s)) {
		return s
	}
	return signature(b.first.Load())
}

// arrive counts the calling rank as arrived. It returns true for the last rank to arrive, which
// must then call release or discard.
func (b *barrier) arrive() bool { return b.arrived.Add(1) == b.n }

// release completes the phase.
func (b *barrier) release() {
	b.mu.Lock()
	b.first.Store(0)
	b.arrived.Store(0)
	b.completed.Add(1)
	wake := b.parked > 0
	b.mu.Unlock()
	if wake {
		b.cond.Broadcast()
	}
}

// discard ends the current phase without completing it: waiting ranks may return, since no rank
// uses what they have posted any more. After that, no phase completes.
func (b *barrier) discard() {
	b.mu.Lock()
	b.arrived.Store(math.MinInt32 / 2)
	b.mu.Unlock()
	b.cond.Broadcast()
}

// spin checks up to tries times whether phase is complete, and reports whether it is.
func (b *barrier) spin(phase uint64, tries int) bool {
	for ; tries > 0; tries-- {
		if b.completed.Load() >= phase {
			return true
		}
	}
	return false
}

type outcome uint8

const (
	pending  outcome = iota
	met              // the phase is complete
	failed           // the group has failed, and no rank uses what other ranks have posted
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

// outcomeSoFar returns the outcome of phase so far. The caller holds mu.
func (b *barrier) outcomeSoFar(phase uint64, failure *atomic.Pointer[cause]) outcome {
	switch {
	case b.completed.Load() >= phase:
		return met
	case b.arrived.Load() == b.n:
		return pending // the last rank to arrive still uses what this rank has posted
	case failure.Load() != nil:
		return failed
	case b.leftRank >= 0:
		return rankLeft
	default:
		return pending
	}
}

// settle blocks until phase is complete, even if the group fails. It is only for phases in
// which every rank does its own work, without waiting for other ranks, and then arrives in any
// case.
func (b *barrier) settle(phase uint64) {
	b.mu.Lock()
	b.parked++
	for b.completed.Load() < phase {
		b.cond.Wait()
	}
	b.parked--
	b.mu.Unlock()
}

// wakeAll wakes the ranks in park, so that they call outcomeSoFar again.
func (b *barrier) wakeAll() {
	b.mu.Lock() // so that a rank that called outcomeSoFar before the failure was set is in Wait by now
	defer b.mu.Unlock()
	b.cond.Broadcast()
}

// leave records that a rank will not arrive any more. rank is its index in this process.
func (b *barrier) leave(rank int) {
	b.mu.Lock()
	if b.leftRank < 0 {
		b.leftRank = rank
	}
	b.mu.Unlock()
	b.cond.Broadcast()
}

func (b *barrier) whoLeft() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.leftRank
}
