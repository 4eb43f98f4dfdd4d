package taskmanager

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/taskmanager/core"
)

// This file processes the commands for a worker and the frames from it.

// frame is one frame of a worker.
type frame struct {
	*wire.FromWorker
	err error // error of reading; if it is not nil, there is no frame, and no further frame follows
}

// heldFrame is a frame that cannot be passed on at once. The next frame is read only after the
// held frame was passed on, so a slow job manager makes the worker wait. Either piece or event
// is not nil.
type heldFrame struct {
	piece  *wire.Delivery    // to be passed to the deliverer
	event  *wire.WorkerEvent // to be reported when all earlier pieces are confirmed
	answer chan error        // the deliverer's answer to the flush
	asked  bool
}

// heldWait has the channels and values of the channel operation for which a held frame waits.
// All other channels are nil.
type heldWait struct {
	bulk     chan<- *wire.Delivery
	piece    *wire.Delivery
	flushes  chan<- chan error
	answer   chan error
	answered <-chan error
}

// next returns the channel operation for which the held frame waits.
func (h *heldFrame) next(d *deliverer) heldWait {
	switch {
	case h == nil:
		return heldWait{}
	case h.piece != nil:
		return heldWait{bulk: d.bulk, piece: h.piece}
	case h.asked:
		return heldWait{answered: h.answer}
	}
	return heldWait{flushes: d.flushes, answer: h.answer}
}

// releaseHeld forgets the held frame. The worker may have had to wait while its frame was held,
// so this time does not count as silence.
func (w *worker) releaseHeld() {
	w.held = nil
	w.sinceFrame = 0
}

// confirmed reports the held event after the deliverer answered its flush. If err is not nil,
// rows or text before the event were lost, and the worker is killed.
func (w *worker) confirmed(err error) {
	event := w.held.event
	w.releaseHeld()
	if err != nil {
		w.step(core.Undeliverable, payload{failure: &wire.Failure{Kind: wire.LostFailure, Message: err.Error()}})
	}
	if w.state != core.Killed {
		w.tell(*event)
	}
}

// execute carries out an order.
func (w *worker) execute(o order) {
	c := o.command
	switch {
	case o.stop != nil:
		w.step(core.Stopped, payload{failure: o.stop})
	case c.Prepare != nil:
		w.step(core.ToldPrepare, payload{command: &wire.ToWorker{Prepare: c.Prepare}})
	case c.Start != nil:
		w.step(core.ToldStart, payload{command: &wire.ToWorker{Start: c.Start}})
	case c.Commit != nil:
		w.step(core.ToldCommit, payload{command: &wire.ToWorker{Commit: c.Commit}})
	case c.Save != nil:
		w.step(core.ToldSave, payload{command: &wire.ToWorker{Save: c.Save}})
	case c.Unwritten != nil:
		w.step(core.ToldSave, payload{command: &wire.ToWorker{Unwritten: c.Unwritten}})
	case c.Cancel != nil:
		w.step(core.ToldCancel, payload{command: &wire.ToWorker{Cancel: c.Cancel}})
	case c.Exit != nil:
		w.step(core.ToldExit, payload{command: &wire.ToWorker{Exit: c.Exit}})
	case c.Kill != nil:
		w.step(core.ToldKill, payload{})
	default:
		w.log.Warn("the job manager sent a command that this version does not know")
	}
}

// hear processes a frame, or an error of reading frames.
func (w *worker) hear(f frame) {
	w.sinceFrame = 0
	if f.err != nil {
		w.read = true
		// EOF, even within a frame, only means that the process is ending, which w.exits
		// reports. If the process continues, it counts as silent from now on.
		if f.err != io.EOF && !errors.Is(f.err, io.ErrUnexpectedEOF) && !errors.Is(f.err, os.ErrDeadlineExceeded) && !errors.Is(f.err, os.ErrClosed) {
			w.step(core.SaidGarbage, w.protocolFailure("%v", f.err))
		}
		return
	}
	w.step(w.understand(f.FromWorker))
}

// protocolFailure returns the payload of the trigger saidGarbage.
func (w *worker) protocolFailure(format string, args ...any) payload {
	return payload{failure: &wire.Failure{
		Kind:    wire.MisuseFailure,
		Message: "the worker sent a message that is not valid: " + fmt.Sprintf(format, args...) + ": " + otherVersion,
	}}
}

// understand returns the trigger that a frame causes, and the payload of the trigger.
func (w *worker) understand(f *wire.FromWorker) (core.Trigger, payload) {
	event := wire.WorkerEvent{WorkerRef: w.ref}
	var meanings []core.Trigger
	var p payload
	note := func(set bool, h core.Trigger) {
		if set {
			meanings = append(meanings, h)
		}
	}
	note(f.Beat != nil, core.SaidBeat)
	note(f.Ready != nil, core.SaidReady)
	note(f.Resolved != nil, core.SaidResolved)
	note(f.Prepared != nil, core.SaidPrepared)
	note(f.Progress != nil, core.SaidProgress)
	note(f.Checkpointed != nil, core.SaidCheckpointed)
	note(f.Saved != nil, core.SaidSaved)
	note(f.Collected != nil, core.SaidBulk)
	note(f.Output != nil, core.SaidBulk)
	note(f.Finished != nil, core.SaidFinished)
	note(f.Committed != nil, core.SaidCommitted)
	note(f.Failed != nil, core.SaidFailed)
	note(f.Kept != nil, core.SaidKept)
	if len(meanings) != 1 {
		return core.SaidGarbage, w.protocolFailure("a frame has %d messages, not one", len(meanings))
	}
	event.Ready, event.Resolved, event.Prepared, event.Progress = f.Ready, f.Resolved, f.Prepared, f.Progress
	event.Finished, event.Committed, event.Failed, event.Checkpointed = f.Finished, f.Committed, f.Failed, f.Checkpointed
	event.Saved = f.Saved
	p.event = &event
	if resolves := w.deployment.Mode == wire.ResolveMode; resolves && f.Ready != nil || !resolves && f.Resolved != nil {
		return core.SaidGarbage, w.protocolFailure("it sent %q, which it was not asked for", meanings[0])
	}
	switch {
	case f.Kept != nil && !w.mayStay:
		return core.SaidGarbage, w.protocolFailure("it sent %q, which it may not do now", meanings[0])
	case f.Kept != nil && w.exit != nil: // the process cannot be kept
		return core.SaidBeat, p
	}
	if meanings[0] == core.SaidBulk {
		p = payload{piece: &wire.Delivery{Collected: f.Collected, Output: f.Output}}
	}
	return meanings[0], p
}

// report sends an event of the worker to the job manager. The event arrives after all messages
// that it must not overtake.
func (w *worker) report(e *wire.WorkerEvent) {
	switch {
	case e.Progress != nil:
		w.progress = e.Progress
		if wait := progressEvery - time.Since(w.progressTold); wait > 0 {
			w.progressDue.Reset(wait)
			return
		}
		w.tellProgress()
	case e.Finished != nil || e.Committed != nil || e.Resolved != nil:
		w.held = &heldFrame{event: e, answer: make(chan error, 1)}
	case e.Failed != nil:
		w.pipes.settle(w.out)
		f := w.withOrigin(e.Failed)
		w.tell(wire.WorkerEvent{WorkerRef: w.ref, Failed: f})
	default:
		w.tell(*e)
	}
}

// tellProgress reports the last progress of the worker if it was not reported yet.
func (w *worker) tellProgress() {
	if w.progress == nil {
		return
	}
	w.outbox.Put(wire.WorkerEvent{WorkerRef: w.ref, Progress: w.progress})
	w.progress, w.progressTold = nil, time.Now()
}

// tell appends an event to the outbox. If progress waits to be reported, it appends the
// progress first.
func (w *worker) tell(e wire.WorkerEvent) {
	w.tellProgress()
	w.outbox.Put(e)
}
