package engine

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/superstep-ml/superstep/engine/workerlife"
	"github.com/superstep-ml/superstep/internal/wire"
)

// runWorker does everything that a worker process does: it is the worker of one attempt of a job after
// the other, until it is not kept for another attempt. It returns the exit code: 0 if the last worker
// has done all that it was told to do, and 1 otherwise.
func runWorker(environment workerEnv) int {
	p := newWorkerProcess(environment.withDefaults())
	w := p.newWorker()
	defer w.cancel(nil)
	defer p.ended()
	if err := checkProtocol(environment.version); err != nil {
		w.fail(misused(err))
		w.end()
		return w.close()
	}
	go p.listen(wire.NewReader[wire.ToWorker](p.env.in))
	for {
		if !w.live() {
			return exitFailed
		}
		if !w.keeps() {
			return w.close()
		}
		w.leave()
		w = p.newWorker()
	}
}

// live is the life of a worker in one attempt. It returns false if the task manager has ended.
//
// The calling goroutine makes the transitions of workerState. One goroutine reads the messages of
// the task manager, and one writes the messages of the worker. Each piece of work has a goroutine
// of its own; only one is under way at a time.
func (w *worker) live() bool {
	for w.state != workerlife.Ended {
		select {
		case m := <-w.heard:
			w.hear(m)
		case o := <-w.work:
			w.workEnded(o)
		case <-w.late:
			w.fail(w.stopTimeoutError())
			w.step(workerlife.WorkLate)
		case err := <-w.unsent:
			w.fail(fmt.Errorf("the worker's report cannot be sent: %w", err))
			w.step(workerlife.WorkUnsent)
		case <-w.gone:
			w.abandon()
			return false
		}
	}
	return true
}

// withDefaults returns the environment with defaults for times that are not set.
func (environment workerEnv) withDefaults() workerEnv {
	if environment.beat == 0 {
		environment.beat = beatEvery
	}
	if environment.stopTimeout == 0 {
		environment.stopTimeout = stopTimeout
	}
	return environment
}

// checkProtocol compares the version of the task manager's protocol with the version of
// this program.
func checkProtocol(text string) error {
	version, err := strconv.Atoi(text)
	if err != nil {
		return fmt.Errorf("the environment's %s is %q: want the version of the protocol, a number", wire.WorkerEnv, text)
	}
	return wire.CheckVersions(version, "the task manager", "the job's program")
}

// worker is the state of a worker process in one attempt of its job.
type worker struct {
	*workerProcess
	state   workerlife.State
	context context.Context // the context of all work; doStop ends it
	cancel  context.CancelCauseFunc

	work  chan workOutcome
	late  <-chan time.Time // fires when work that was told to end has not ended in time
	busy  bool             // a piece of work is under way
	doing string           // name of the latest piece of work

	lastMessage string // name of the task manager's latest message
	saves       savesOfWorker
	job         *workerJob       // nil before the worker has received its deployment
	prepare     *wire.Prepare    // the message that doPrepare handles
	start       *wire.Start      // the message that doRun handles
	commit      *wire.Commit     // the message that doCommit handles
	cancelled   *wire.Cancel     // the message that told the worker to stop; nil if there was none
	answer      *wire.FromWorker // the outcome of the latest work
	failure     *wire.Failure    // why the worker fails
	cause       error            // the error from which failure was made
	left        bool             // functions of the job may still run, or output could not be removed
	failed      bool             // code of the job has failed after the worker had another failure
}

// workOutcome is the outcome of a piece of work.
type workOutcome struct {
	event  workerlife.Event
	answer *wire.FromWorker
	err    error
}

// abandon ends the work that is under way. It is only for tests, in which exit has returned.
func (w *worker) abandon() {
	w.cancel(errTaskManagerGone)
	w.saves.sending.Wait()
	if w.busy {
		<-w.work
		w.busy = false
	}
	w.release()
	w.closeKept()
	_ = w.sender.close(0)
}

// hear handles a message of the task manager.
func (w *worker) hear(m *wire.ToWorker) {
	if w.job == nil && w.attempts > 0 && m.Deployment == nil && m.Exit == nil {
		return // it was sent to the attempt before
	}
	if m.Save != nil {
		w.save(m.Save)
		return
	}
	if m.Unwritten != nil {
		w.unwritten(m.Unwritten)
		return
	}
	w.lastMessage = messageName(m)
	w.step(w.eventOf(m))
}

// eventOf returns the event of a message, and keeps what the message says.
func (w *worker) eventOf(m *wire.ToWorker) workerlife.Event {
	var d *wire.Deployment
	if w.job != nil {
		d = w.job.deployment
	}
	event := workerlife.EventOf(w.state, m, d)
	switch event {
	case workerlife.HearDeploy:
		w.deployed(m.Deployment)
		w.job = newWorkerJob(w, m.Deployment)
	case workerlife.HearPrepare:
		w.prepare = m.Prepare
	case workerlife.HearStart:
		w.start = m.Start
	case workerlife.HearCommit:
		w.commit = m.Commit
	case workerlife.HearCancel:
		w.cancelled = m.Cancel
		if !w.state.Ending() && w.state < workerlife.Committing {
			w.fail(cancelled(m.Cancel.Reason))
		}
	}
	return event
}

// messageName returns the name of a message.
func messageName(m *wire.ToWorker) string {
	switch {
	case m.Deployment != nil:
		return "Deployment"
	case m.Prepare != nil:
		return "Prepare"
	case m.Start != nil:
		return "Start"
	case m.Commit != nil:
		return "Commit"
	}
	return "something unknown"
}

// workEnded handles the end of a piece of work.
func (w *worker) workEnded(o workOutcome) {
	w.busy = false
	if o.err != nil {
		w.fail(o.err)
	}
	w.answer = o.answer
	w.step(o.event)
}

// fail records the failure of the worker. The first failure is kept. Later errors about functions
// that still run, or output that could not be removed, are added to it. Damage in transit replaces
// a failure that only follows from other workers: they may fail because of the same damage first,
// so that this worker is told to end before its own work fails.
func (w *worker) fail(err error) {
	f := w.failureOf(err)
	if w.failure == nil || w.failure.Kind == wire.PeerFailure && damaged(err) {
		w.failure, w.cause, w.left = f, err, w.left || adds(err)
		return
	}
	if f.Kind == wire.UserFailure && w.job != nil {
		w.failed = true
		w.job.logger.Info("code of the job has failed after the attempt had ended, so the process is not kept for the next one", "error", err)
	}
	if adds(err) {
		w.left = true
		w.failure.Message = clipMessage(w.failure.Message + "; " + f.Message)
	}
}

// step makes the transition for an event and does its action.
func (w *worker) step(e workerlife.Event) {
	step := w.state.Step(e)
	if step.Do == workerlife.DoRefuse && w.failure == nil {
		w.fail(clusterFault(fmt.Errorf("the task manager sent %s to a worker that is %v: their versions may differ", w.lastMessage, w.state)))
	}
	before := w.state
	w.state = step.To
	switch step.Do {
	case workerlife.DoBuild:
		w.begin("building the job", w.job.build)
	case workerlife.DoPrepare:
		w.begin("the sinks' begin", w.job.prepare)
	case workerlife.DoRun:
		w.begin("the run", func(ctx context.Context) workOutcome { return w.job.run(ctx, w.start) })
	case workerlife.DoCommit:
		w.begin("the sinks' commit", func(context.Context) workOutcome { return w.job.commit(w.commit) })
	case workerlife.DoAnswer:
		w.tell()
	default:
		w.enterEnding(before)
	}
}

// enterEnding does what is needed when the worker enters one of the states in which it ends.
func (w *worker) enterEnding(before workerlife.State) {
	if w.state == before {
		return
	}
	switch w.state {
	case workerlife.Stopping:
		w.cancel(cmp.Or(w.cause, errStopRequested))
		w.late = time.After(w.env.stopTimeout + time.Second) // later than the limit of the run, task.Env.AbandonAfter
	case workerlife.Aborting:
		w.cancel(cmp.Or(w.cause, errStopRequested))
		w.late = time.After(w.env.stopTimeout)
		w.begin("removing what was written", func(context.Context) workOutcome { return w.job.abort() })
	case workerlife.Ended:
		w.end()
	}
}

// begin starts a piece of work on a goroutine of its own. When it has ended, its outcome is
// sent to w.work.
func (w *worker) begin(what string, f func(ctx context.Context) workOutcome) {
	w.busy, w.doing = true, what
	go func() { w.work <- f(w.context) }()
}

// tell sends the outcome of the latest work.
func (w *worker) tell() {
	w.sender.post(w.answer)
	w.answer = nil
}

// end sends the last message of the worker, except for Kept.
func (w *worker) end() {
	if w.keeps() {
		w.saves.end() // nothing of the attempt is sent after Failed
	} else {
		w.ended()
	}
	switch {
	case w.answer != nil && w.answer.Committed != nil: // nothing undoes a commit
		w.tell()
	case w.failure != nil:
		w.sender.post(&wire.FromWorker{Failed: w.failure})
	case w.answer != nil:
		w.tell()
	}
}

// close releases what the worker holds and returns the exit code.
func (w *worker) close() int {
	w.cancel(errStopRequested)
	w.saves.sending.Wait()
	defer w.exitIfHung()()
	w.release()
	w.closeKept()
	if err := w.sender.close(drainGrace); err != nil {
		fmt.Fprintf(w.env.stderr, "%v: the worker exits\n", err)
		return exitFailed
	}
	if w.failure != nil {
		return exitFailed
	}
	return exitOK
}

// exitIfHung ends the process unless stop is called in time.
func (w *worker) exitIfHung() (stop func() bool) {
	return time.AfterFunc(forcedExitAfter, func() {
		fmt.Fprintf(w.env.stderr, "the worker does not end within %v: it exits\n", forcedExitAfter)
		w.env.exit(exitFailed)
	}).Stop
}

// release releases what the job holds, unless work that has not ended may be using it.
func (w *worker) release() {
	if w.job != nil && !w.busy {
		w.job.close()
	}
}
