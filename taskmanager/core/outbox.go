package core

import (
	"cmp"
	"slices"
	"sync"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Outbox holds the events for the job manager in order: events that must still be sent, and
// events that were sent but are not acknowledged. The acknowledgement of a heartbeat
// acknowledges all events that were sent before the heartbeat. On a new connection all events
// that were not acknowledged are sent again; the job manager ignores events that it has
// received already.
//
// It also has the list of workers: from its deployment until its Ended is sent, a worker is
// listed in every heartbeat. It keeps what workers have reported besides progress until their
// Ended is acknowledged, because a restarted job manager does not know what its predecessor has
// acknowledged. The memory of an outbox is bounded: a worker has few events that
// occur once, and of those that occur again and again, progress and checkpoints, only the last of a
// worker is kept.
type Outbox struct {
	mu             sync.Mutex
	next           uint64 // number of the last event that was put; events are numbered from 1
	waiting        []event
	unacknowledged []event // sent but not acknowledged
	running        map[wire.WorkerRef]bool
	said           map[wire.WorkerRef][]wire.WorkerEvent // reports of workers whose Ended is not acknowledged, except progress and Ended

	beatDue bool
	beats   uint64               // number of the last heartbeat
	marks   map[uint64]uint64    // number of an unacknowledged heartbeat -> number of the last event that was sent before it
	leaving func() *wire.Leaving // makes the announcement that the task manager leaves; nil unless it does
	told    bool                 // the announcement of that was sent on the current connection, or need not be
	leave   *wire.Leave
	left    bool
	More    chan struct{} // holds a token when there may be something to send
}

type event struct {
	number uint64
	wire.WorkerEvent
}

func NewOutbox() *Outbox {
	return &Outbox{running: map[wire.WorkerRef]bool{}, said: map[wire.WorkerRef][]wire.WorkerEvent{}, marks: map[uint64]uint64{}, More: make(chan struct{}, 1)}
}

// wake wakes the goroutine that sends. The caller holds the lock.
func (o *Outbox) wake() {
	select {
	case o.More <- struct{}{}:
	default:
	}
}

// Deployed records a new worker.
func (o *Outbox) Deployed(ref wire.WorkerRef) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.running[ref] = true
}

// recurs reports whether e is of a kind that occurs again and again, so that a later event of the
// kind has everything of an earlier one.
func recurs(e *wire.WorkerEvent) bool { return e.Progress != nil || e.Checkpointed != nil }

// replaces reports whether e has everything of an earlier event.
func replaces(e, earlier *wire.WorkerEvent) bool {
	return e.WorkerRef == earlier.WorkerRef && (e.Progress != nil && earlier.Progress != nil || e.Checkpointed != nil && earlier.Checkpointed != nil)
}

// Put appends an event. If e recurs, and only such events of the worker wait behind one that e
// replaces, e takes its place.
func (o *Outbox) Put(e wire.WorkerEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.wake()
	if e.Progress == nil && e.Ended == nil && o.running[e.WorkerRef] {
		said := slices.DeleteFunc(o.said[e.WorkerRef], func(s wire.WorkerEvent) bool { return replaces(&e, &s) })
		o.said[e.WorkerRef] = append(said, e)
	}
	for i := len(o.waiting) - 1; i >= 0 && recurs(&e); i-- {
		w := &o.waiting[i].WorkerEvent
		if replaces(&e, w) {
			*w = e
			return
		}
		if w.WorkerRef == e.WorkerRef && !recurs(w) {
			break
		}
	}
	o.append(e)
}

// append appends an event to those that must be sent. The caller holds the lock.
func (o *Outbox) append(e wire.WorkerEvent) {
	o.next++
	o.waiting = append(o.waiting, event{o.next, e})
}

// Repeat queues again everything that the listed workers have reported. It is called when the
// job manager was restarted, after reconnect and before anything is sent on the new connection.
func (o *Outbox) Repeat() {
	o.mu.Lock()
	defer o.mu.Unlock()
	waiting := o.waiting
	o.waiting = nil
	for _, ref := range o.refs() {
		for _, e := range o.said[ref] {
			o.append(e)
		}
	}
	for _, e := range waiting {
		if e.Progress != nil || e.Ended != nil || len(o.said[e.WorkerRef]) == 0 { // all others are in said
			o.append(e.WorkerEvent)
		}
	}
	o.wake()
}

// Forget drops all events that are not acknowledged, except for Ended and Failed. It is called
// when the job manager normally considers the workers lost. But if the job manager's process
// was stopped for a while, the job manager does not consider them lost, and must learn why they
// ended.
func (o *Outbox) Forget() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = slices.DeleteFunc(append(o.unacknowledged, o.waiting...), func(e event) bool { return e.Ended == nil && e.Failed == nil })
	o.unacknowledged = nil
	for ref, events := range o.said {
		o.said[ref] = slices.DeleteFunc(events, func(e wire.WorkerEvent) bool { return e.Failed == nil })
	}
	clear(o.marks)
}

// Beat asks for a heartbeat to be sent.
func (o *Outbox) Beat() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.beatDue = true
	o.wake()
}

// Announce asks for an announcement to be sent, now and on every later connection. message is called
// each time.
func (o *Outbox) Announce(message func() *wire.Leaving) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leaving = message
	o.wake()
}

// Announcement returns the announcement that the task manager leaves, or nil if it does not.
func (o *Outbox) Announcement() *wire.Leaving {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.leaving == nil {
		return nil
	}
	return o.leaving()
}

// Empty reports whether the job manager has acknowledged everything.
func (o *Outbox) Empty() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return len(o.waiting) == 0 && len(o.unacknowledged) == 0
}

// RequestLeave asks for a Leave to be sent after everything else.
func (o *Outbox) RequestLeave(reason string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.leave = &wire.Leave{Reason: reason}
	o.wake()
}

// Reconnect prepares for a new connection. It queues all unacknowledged events again, and
// returns the workers to be listed in Register, which also has the announcement.
func (o *Outbox) Reconnect() []wire.WorkerRef {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.unacknowledged {
		if e.Ended != nil {
			o.running[e.WorkerRef] = true // list the worker until its Ended is sent again
		}
	}
	o.waiting, o.unacknowledged = append(o.unacknowledged, o.waiting...), nil
	o.beatDue, o.told = false, o.leaving != nil
	clear(o.marks)
	o.wake()
	return o.refs()
}

// refs returns the sorted list of workers. The caller holds the lock.
func (o *Outbox) refs() []wire.WorkerRef {
	refs := make([]wire.WorkerRef, 0, len(o.running))
	for ref := range o.running {
		refs = append(refs, ref)
	}
	slices.SortFunc(refs, func(a, b wire.WorkerRef) int {
		return cmp.Or(cmp.Compare(a.Job, b.Job), cmp.Compare(a.Attempt, b.Attempt), cmp.Compare(a.Worker, b.Worker))
	})
	return refs
}

// Pop removes and returns the next message to send, or nil if there is none. A heartbeat and the
// announcement are sent before all other messages. A Leave is sent after all other messages.
func (o *Outbox) Pop() *wire.FromTaskManager {
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
	case o.leaving != nil && !o.told:
		o.told = true
		return &wire.FromTaskManager{Leaving: o.leaving()}
	case len(o.waiting) > 0:
		e := o.waiting[0]
		o.waiting = slices.Delete(o.waiting, 0, 1)
		if e.Ended != nil {
			delete(o.running, e.WorkerRef)
		}
		if e.Checkpointed != nil {
			o.unacknowledged = slices.DeleteFunc(o.unacknowledged, func(u event) bool { return replaces(&e.WorkerEvent, &u.WorkerEvent) })
		}
		if e.Progress == nil { // Lost progress need not be sent again, because newer progress will follow
			o.unacknowledged = append(o.unacknowledged, e)
		}
		return &wire.FromTaskManager{Worker: &e.WorkerEvent}
	case o.leave != nil && !o.left:
		o.left = true
		return &wire.FromTaskManager{Leave: o.leave}
	}
	return nil
}

// lastTold returns the number of the last event that was sent and not acknowledged, or 0 if
// there is no such event.
func (o *Outbox) lastTold() uint64 {
	if len(o.unacknowledged) == 0 {
		return 0
	}
	return o.unacknowledged[len(o.unacknowledged)-1].number
}

// Acknowledged records that the job manager has received the heartbeat with this number, and
// therefore everything that was sent before it.
func (o *Outbox) Acknowledged(number uint64) {
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
	o.unacknowledged = slices.DeleteFunc(o.unacknowledged, func(e event) bool {
		if e.number <= mark && e.Ended != nil {
			delete(o.said, e.WorkerRef)
		}
		return e.number <= mark
	})
}
