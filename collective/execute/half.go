package execute

import (
	"sync/atomic"

	"github.com/superstep-ml/superstep/collective/program"
)

// half is one half of a lane: a sequence of parts, which one goroutine does.
//
// A half waits for others by reading the counters of their steps. To wait, it marks itself as
// parked, reads again, and sleeps on its channel. A half that advances a counter then checks
// for parked halves. Since atomic operations have a single total order, either the first half
// sees the new counter, or the second half sees that the first is parked.
type half struct {
	executor
	lane   *lane
	sends  bool
	parked atomic.Bool
	wake   chan struct{} // holds one token
}

// run does all parts of the half in order.
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

// broke fails the run because of a panic v or, if v is nil, because the goroutine ended. It
// returns whether the goroutine continues.
func (h *half) broke(v any) (alive bool) {
	h.giveBack()
	h.r.fail(h.r.broken(v))
	return v != nil
}

// signal wakes the half if it sleeps or is about to.
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
		// A step that receives and sends receives each segment first.
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
	for _, d := range s.after {
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
// halves that wait for them. n is whole if the part is done.
func (h *half) publish(s *step, n uint32) {
	if h.sends {
		s.sent.Store(n)
	} else {
		s.received.Store(n)
	}
	for _, w := range s.wake {
		if w.parked.Load() {
			w.signal()
		}
	}
}
