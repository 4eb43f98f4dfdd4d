package taskmanager

import (
	"cmp"
	"slices"
	"sync"

	"github.com/superstep-ml/superstep/internal/wire"
)

// outbox holds what is to be told to the job manager, in order, and what was told but
// may have been lost with the connection: the acknowledgement of a heartbeat is that
// of everything before it. On a new connection what was not acknowledged is told
// again; the job manager takes what it has heard before for no news.
//
// It also knows the workers: one is there from its deployment until its Ended is on
// its way, so that a heartbeat never misses a worker whose end was not told. Memory is
// bounded by the life of the workers: each says few things once, and of its progress
// the last is kept alone.
type outbox struct {
	mu      sync.Mutex
	next    uint64 // numbers events, from 1
	waiting []event
	told    []event // but not acknowledged
	running map[wire.WorkerRef]bool

	beatDue bool
	beats   uint64            // number of the last heartbeat
	marks   map[uint64]uint64 // by heartbeat not acknowledged: the last event before it
	leave   *wire.Leave
	left    bool
	more    chan struct{} // holds a token when there may be something to tell
}

type event struct {
	number uint64
	wire.WorkerEvent
}

func newOutbox() *outbox {
	return &outbox{running: map[wire.WorkerRef]bool{}, marks: map[uint64]uint64{}, more: make(chan struct{}, 1)}
}

// wake lets the sender look; the lock is held.
func (o *outbox) wake() {
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// deployed notes that a worker is there.
func (o *outbox) deployed(ref wire.WorkerRef) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.running[ref] = true
}

// put appends an event. A worker's progress replaces one that waits.
func (o *outbox) put(e wire.WorkerEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.wake()
	if e.Progress != nil {
		for i := len(o.waiting) - 1; i >= 0; i-- {
			if w := &o.waiting[i]; w.WorkerRef == e.WorkerRef {
				if w.Progress == nil {
					break
				}
				w.Progress = e.Progress
				return
			}
		}
	}
	o.next++
	o.waiting = append(o.waiting, event{o.next, e})
}

// forget drops what is waiting but for the ends of workers, and why they failed: the
// job manager has given them up by now, but one that was merely stopped for a while
// has not, and hears the cause then.
func (o *outbox) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = slices.DeleteFunc(append(o.told, o.waiting...), func(e event) bool { return e.Ended == nil && e.Failed == nil })
	o.told = nil
	clear(o.marks)
}

// beat asks for a heartbeat to be sent.
func (o *outbox) beat() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.beatDue = true
	o.wake()
}

// farewell asks for a Leave after everything else.
func (o *outbox) farewell(reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leave = &wire.Leave{Reason: reason}
	o.wake()
}

// reconnect begins a new connection: it returns the workers, for Register, and has
// everything told again that was not acknowledged.
func (o *outbox) reconnect() []wire.WorkerRef {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.told {
		if e.Ended != nil {
			o.running[e.WorkerRef] = true // until it is told again
		}
	}
	o.waiting, o.told = append(o.told, o.waiting...), nil
	o.beatDue = false
	clear(o.marks)
	o.wake()
	return o.refs()
}

// refs returns the workers in order; the lock is held.
func (o *outbox) refs() []wire.WorkerRef {
	refs := make([]wire.WorkerRef, 0, len(o.running))
	for ref := range o.running {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, func(a, b wire.WorkerRef) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Worker, b.Worker))
	})
	return refs
}

// pop returns what is to be told next, nil if that is nothing. A heartbeat waits for
// nothing, a farewell for everything.
func (o *outbox) pop() *wire.FromTaskManager {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.beatDue:
		o.beatDue = false
		o.beats++
		if len(o.marks) < maxBeats {
			o.marks[o.beats] = o.lastTold()
		}
		return &wire.FromTaskManager{Heartbeat: &wire.Heartbeat{Number: o.beats, Running: o.refs()}}
	case len(o.waiting) > 0:
		e := o.waiting[0]
		o.waiting = slices.Delete(o.waiting, 0, 1)
		if e.Ended != nil {
			delete(o.running, e.WorkerRef)
		}
		if e.Progress == nil { // there will be another
			o.told = append(o.told, e)
		}
		return &wire.FromTaskManager{Worker: &e.WorkerEvent}
	case o.leave != nil && !o.left:
		o.left = true
		return &wire.FromTaskManager{Leave: o.leave}
	}
	return nil
}

// lastTold returns the number of the last event that was told and not acknowledged.
func (o *outbox) lastTold() uint64 {
	if len(o.told) == 0 {
		return 0
	}
	return o.told[len(o.told)-1].number
}

// acknowledged notes that the job manager has heard a heartbeat, and so everything
// before it.
func (o *outbox) acknowledged(number uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	mark, known := o.marks[number]
	if !known {
		return
	}
	for n := range o.marks {
		if n <= number {
			delete(o.marks, n)
		}
	}
	o.told = slices.DeleteFunc(o.told, func(e event) bool { return e.number <= mark })
}
