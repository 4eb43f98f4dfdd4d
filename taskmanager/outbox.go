package taskmanager

import (
	"cmp"
	"slices"
	"sync"

	"github.com/superstep-ml/superstep/internal/wire"
)

// outbox holds the events for the job manager, in order: those to be sent, and those that were
// sent but are not acknowledged. The acknowledgement of a heartbeat covers everything before
// it. On a new connection the events that were not acknowledged are sent again; the job manager
// ignores those that it knows.
//
// It also lists the workers: from its deployment until its Ended is sent, a worker is in every
// heartbeat. Memory is bounded: a worker has few events, each once, and only its last progress
// is kept.
type outbox struct {
	mu             sync.Mutex
	next           uint64 // numbers events, from 1
	waiting        []event
	unacknowledged []event // sent but not acknowledged
	running        map[wire.WorkerRef]bool

	beatDue bool
	beats   uint64            // number of the last heartbeat
	marks   map[uint64]uint64 // by unacknowledged heartbeat: the last event before it
	leave   *wire.Leave
	left    bool
	more    chan struct{} // holds a token when there may be something to send
}

type event struct {
	number uint64
	wire.WorkerEvent
}

func newOutbox() *outbox {
	return &outbox{running: map[wire.WorkerRef]bool{}, marks: map[uint64]uint64{}, more: make(chan struct{}, 1)}
}

// wake wakes the sender; the lock is held.
func (o *outbox) wake() {
	select {
	case o.more <- struct{}{}:
	default:
	}
}

// deployed records a new worker.
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

// forget drops the waiting events except for the ends of workers and their failures. By now the
// job manager takes the workers for lost. But a job manager that was only stopped for a while
// does not, and must learn the cause.
func (o *outbox) forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = slices.DeleteFunc(append(o.unacknowledged, o.waiting...), func(e event) bool { return e.Ended == nil && e.Failed == nil })
	o.unacknowledged = nil
	clear(o.marks)
}

// beat asks for a heartbeat to be sent.
func (o *outbox) beat() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.beatDue = true
	o.wake()
}

// requestLeave asks for a Leave after everything else.
func (o *outbox) requestLeave(reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leave = &wire.Leave{Reason: reason}
	o.wake()
}

// reconnect begins a new connection: it returns the workers, for Register, and queues all
// unacknowledged events again.
func (o *outbox) reconnect() []wire.WorkerRef {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.unacknowledged {
		if e.Ended != nil {
			o.running[e.WorkerRef] = true // until its Ended is sent again
		}
	}
	o.waiting, o.unacknowledged = append(o.unacknowledged, o.waiting...), nil
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

// pop returns the next message to send, nil if there is none. A heartbeat goes before
// everything else, a Leave after it.
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
		if e.Progress == nil { // of progress, a newer one will follow
			o.unacknowledged = append(o.unacknowledged, e)
		}
		return &wire.FromTaskManager{Worker: &e.WorkerEvent}
	case o.leave != nil && !o.left:
		o.left = true
		return &wire.FromTaskManager{Leave: o.leave}
	}
	return nil
}

// lastTold returns the number of the last event that was sent and not acknowledged.
func (o *outbox) lastTold() uint64 {
	if len(o.unacknowledged) == 0 {
		return 0
	}
	return o.unacknowledged[len(o.unacknowledged)-1].number
}

// acknowledged records that the job manager has received a heartbeat, and so everything before
// it.
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
	o.unacknowledged = slices.DeleteFunc(o.unacknowledged, func(e event) bool { return e.number <= mark })
}
