package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// runWorker does everything that a worker process does. It returns the exit code: 0 if the worker
// has done all that it was told to do, and 1 otherwise.
//
// The calling goroutine makes the transitions of workerState. One goroutine reads the messages of
// the task manager, and one writes the messages of the worker. Each piece of work has a goroutine
// of its own; only one is under way at a time.
func runWorker(environment workerEnv) int {
	w := &worker{
		env:    environment.withDefaults(),
		heard:  make(chan *wire.ToWorker),
		unsent: make(chan error, 1),
		gone:   make(chan struct{}),
		done:   make(chan struct{}),
		work:   make(chan workOutcome, 1),
	}
	w.context, w.cancel = context.WithCancelCause(context.Background())
	defer w.cancel(nil)
	w.ended = sync.OnceFunc(func() { close(w.done) })
	defer w.ended()
	frames := wire.NewWriter[wire.FromWorker](w.env.out)
	w.sender = newWorkerSender(frames, w.env.beat, func(err error) { w.taskManagerGone(fmt.Sprintf("cannot be written to (%v)", err)) }, func(err error) {
		select {
		case w.unsent <- err:
		default: // an earlier error already ends the worker
		}
	})
	if err := checkProtocol(environment.version); err != nil {
		w.fail(misused(err))
		w.end()
		return w.close()
	}
	go w.listen(wire.NewReader[wire.ToWorker](w.env.in))
	for w.state != workerEnded {
		select {
		case m := <-w.heard:
			w.hear(m)
		case o := <-w.work:
			w.workEnded(o)
		case <-w.late:
			w.fail(w.stopTimeoutError())
			w.step(workLate)
		case err := <-w.unsent:
			w.fail(fmt.Errorf("the worker's report cannot be sent: %w", err))
			w.step(workUnsent)
		case <-w.gone:
			w.abandon()
			return exitFailed
		}
	}
	return w.close()
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

// worker is the state of a worker process.
type worker struct {
	env     workerEnv
	sender  *workerSender
	state   workerState
	context context.Context // the context of all work; doStop ends it
	cancel  context.CancelCauseFunc

	heard  chan *wire.ToWorker
	work   chan workOutcome
	unsent chan error
	late   <-chan time.Time // fires when work that was told to end has not ended in time
	gone   chan struct{}    // closed when the task manager has ended
	lost   sync.Once        // closes gone
	done   chan struct{}    // closed when the worker has ended
	ended  func()           // closes done
	busy   bool             // a piece of work is under way
	doing  string           // name of the latest piece of work

	lastMessage string // name of the task manager's latest message
	saves       savesOfWorker
	job         *workerJob       // nil before the worker has received its deployment
	start       *wire.Start      // the message that doRun handles
	commit      *wire.Commit     // the message that doCommit handles
	answer      *wire.FromWorker // the outcome of the latest work
	failure     *wire.Failure    // why the worker fails
	cause       error            // the error from which failure was made
}

// workOutcome is the outcome of a piece of work.
type workOutcome struct {
	event  workerEvent
	answer *wire.FromWorker
	err    error
}

// listen passes on the messages of the task manager. When the task manager has ended, listen ends
// the process at once, as its work is not needed any more and nobody could end it later.
func (w *worker) listen(frames *wire.Reader[wire.ToWorker]) {
	for {
		m, err := frames.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				w.taskManagerGone("has ended")
			} else {
				w.taskManagerGone(fmt.Sprintf("cannot be read (%v)", err))
			}
			return
		}
		select {
		case w.heard <- m:
		case <-w.done:
			return
		}
		if m.Exit != nil {
			return // the task manager may close the pipe now
		}
	}
}

// taskManagerGone ends the process because its task manager has ended, unless the worker has already ended.
func (w *worker) taskManagerGone(what string) {
	select {
	case <-w.done:
		return
	default:
	}
	fmt.Fprintf(w.env.stderr, "the pipe to the task manager %s: the worker exits\n", what)
	w.env.exit(exitFailed)
	w.lost.Do(func() { close(w.gone) }) // reached only in tests, in which exit returns
}

// abandon ends the work that is under way. It is only for tests, in which exit has returned.
func (w *worker) abandon() {
	w.cancel(errTaskManagerGone)
	if w.busy {
		<-w.work
		w.busy = false
	}
	w.release()
	_ = w.sender.close(0)
}

// hear handles a message of the task manager.
func (w *worker) hear(m *wire.ToWorker) {
	if m.Save != nil {
		w.save(m.Save)
		return
	}
	w.lastMessage = messageName(m)
	w.step(w.eventOf(m))
}

// eventOf returns the event of a message, which is hearInvalid if the message is not for this
// worker.
func (w *worker) eventOf(m *wire.ToWorker) workerEvent {
	first := w.job != nil && w.job.deployment.Worker == 0
	resumes := w.job != nil && w.job.deployment.Mode == wire.CommitMode
	switch {
	case m.Deployment != nil && w.job == nil:
		w.job = newWorkerJob(w, m.Deployment)
		return hearDeploy
	case m.Prepare != nil && first && !resumes:
		return hearPrepare
	case m.Start != nil && (w.state == workerPrepared) == first && !resumes:
		w.start = m.Start
		return hearStart
	case m.Commit != nil && first && (w.state == workerReady) == resumes:
		w.commit = m.Commit
		return hearCommit
	case m.Cancel != nil:
		if !w.state.ending() && w.state < workerCommitting {
			w.fail(cancelled(m.Cancel.Reason))
		}
		return hearCancel
	case m.Exit != nil:
		return hearExit
	}
	return hearInvalid
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
		w.failure, w.cause = f, err
		return
	}
	if adds(err) {
		w.failure.Message = clipMessage(w.failure.Message + "; " + f.Message)
	}
}

// step makes the transition for an event and does its action.
func (w *worker) step(e workerEvent) {
	step := w.state.step(e)
	if step.do == doRefuse && w.failure == nil {
		w.fail(clusterFault(fmt.Errorf("the task manager sent %s to a worker that is %v: their versions may differ", w.lastMessage, w.state)))
	}
	before := w.state
	w.state = step.to
	switch step.do {
	case doBuild:
		w.begin("building the job", w.job.build)
	case doPrepare:
		w.begin("the sinks' begin", w.job.prepare)
	case doRun:
		w.begin("the run", func(ctx context.Context) workOutcome { return w.job.run(ctx, w.start) })
	case doCommit:
		w.begin("the sinks' commit", func(context.Context) workOutcome { return w.job.commit(w.commit) })
	case doAnswer:
		w.tell()
	default:
		w.enterEnding(before)
	}
}

// enterEnding does what is needed when the worker enters one of the states in which it ends.
func (w *worker) enterEnding(before workerState) {
	if w.state == before {
		return
	}
	switch w.state {
	case workerStopping:
		w.cancel(cmp.Or(w.cause, errStopRequested))
		w.late = time.After(w.env.stopTimeout + time.Second) // later than the limit of the run, task.Env.AbandonAfter
	case workerAborting:
		w.cancel(cmp.Or(w.cause, errStopRequested))
		w.late = time.After(w.env.stopTimeout)
		w.begin("removing what was written", func(context.Context) workOutcome { return w.job.abort() })
	case workerEnded:
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

// end sends the last message of the worker.
func (w *worker) end() {
	w.ended()
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
	hung := time.AfterFunc(forcedExitAfter, func() {
		fmt.Fprintf(w.env.stderr, "the worker does not end within %v: it exits\n", forcedExitAfter)
		w.env.exit(exitFailed)
	})
	defer hung.Stop()
	w.release()
	if err := w.sender.close(drainGrace); err != nil {
		fmt.Fprintf(w.env.stderr, "%v: the worker exits\n", err)
		return exitFailed
	}
	if w.failure != nil {
		return exitFailed
	}
	return exitOK
}

// release releases what the job holds, unless work that has not ended may be using it.
func (w *worker) release() {
	if w.job != nil && !w.busy {
		w.job.close()
	}
}
