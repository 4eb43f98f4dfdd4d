package execute

import (
	"sync/atomic"

	"github.com/superstep-ml/superstep/collective/program"
)

// half is one half of a lane: a sequence of parts, which one goroutine runs.
//
// A half that depends on a step reads the counters of that step. If it must wait, it marks
// itself as parked, reads the counters again, and sleeps on its channel. A half that advances a
// counter then checks for parked halves. Since atomic operations have a single total order,
// either the waiting half sees the new counter, or the advancing half sees that the other half
// is parked.
type half struct {
	executor
	lane   *lane
	sends  bool
	parked atomic.Bool
	wake   chan struct{} // has capacity 1
}

// run runs all parts of the half in order.
func (h *half) run() {
	for j := range h.lane.steps {
		s := &h.lane.steps[j]
		if h.sends && !s.op.Sends() || !h.sends && s.op == program.DoSend {
			continue
		}
		if err := h.do(s, h.sends); err != nil {
			if err != errStopped {
				h.r.fail(err)
			}
			return
		}
	}
}

// recoverPanic makes the run fail because of a panic with value v or, if v is nil, because an
// operator ended the goroutine. It reports whether the goroutine continues.
func (h *half) recoverPanic(v any) (alive bool) {
	h.giveBack()
	h.r.fail(h.r.broken(v))
	return v != nil
}

// signal wakes the half if it sleeps or is about to sleep.
func (h *half) signal() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// await returns when the dependencies of segment k of a part are met, or the run
// has failed.
func (h *half) await(s *step, k int) error {
	if h.sends && s.op != program.DoSend {
		// A step that receives and sends must receive each segment before it sends the segment.
		for int(s.received.Load()) <= k {
			h.parked.Store(true)
			if int(s.received.Load()) <= k && !h.r.failed.Load() {
				<-h.wake
			}
			h.parked.Store(false)
			if h.r.failed.Load() {
				return errStopped
			}
		}
		return nil
	}
	for _, d := range s.deps {
		for !d.met(k) {
			h.parked.Store(true)
			if !d.met(k) && !h.r.failed.Load() {
				<-h.wake
			}
			h.parked.Store(false)
			if h.r.failed.Load() {
				return errStopped
			}
		}
	}
	return nil
}

// publish records that this half has done n segments of its part of step s, and wakes the
// halves that wait for these segments. n is whole if the part is done.
func (h *half) publish(s *step, n uint32) {
	if h.sends {
		s.sent.Store(n)
	} else {
		s.received.Store(n)
	}
	for _, w := range s.wakes {
		if w.parked.Load() {
			w.signal()
		}
	}
}
