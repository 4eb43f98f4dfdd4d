package taskmanager

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/silence"
	"github.com/superstep-ml/superstep/internal/wire"
	"github.com/superstep-ml/superstep/taskmanager/core"
)

// workerEnv has the configuration and the objects that all workers of a task manager share.
type workerEnv struct {
	Config
	own       programs.Program // executable of this process
	table     [core.States][core.Triggers]core.Move
	dir       *workDir
	client    *wire.Client
	artifacts *artifacts
	outbox    *core.Outbox
	launcher  Launcher
	kept      *pool
	rows      *leftRows
}

const (
	// progressEvery is the shortest time between two reports of a worker's progress.
	progressEvery = 100 * time.Millisecond
	// drainTime bounds the time for reading the rest of the output of a process that has ended.
	// Reading takes longer only if a child process that left the process group still has the
	// pipes open.
	drainTime = time.Second
)

// worker runs one worker process: it looks up triggers in the transition table and carries out
// the actions. The fields below "---" are used only by the goroutine of run.
type worker struct {
	*workerEnv
	ref        wire.WorkerRef
	silence    time.Duration // how long it may send no frame
	deployment wire.Deployment
	log        hclog.Logger
	orders     chan order
	over       chan struct{} // closed when the worker has ended and its Ended is in the outbox
	freed      atomic.Bool   // the worker has ended, and its Ended may be in the outbox

	// ---
	ctx    context.Context // context of the fetch and of the deliveries
	cancel context.CancelFunc
	work   sync.WaitGroup // goroutines of the fetch and of the deliveries

	state   core.State
	failure *wire.Failure // why the worker was killed or failed; nil if it ended after a command to end
	crashed bool          // the process ended before it was told to end or killed by the task manager

	got     chan gotArtifact
	path    string // directory of the worker; "" before it is made
	*child         // without a process before it is started
	mayStay bool   // the worker may keep its process for the next attempt
	exit    *ended // not nil once the process has ended

	delivery *deliverer
	broken   <-chan error // delivery.broken, which receives the error that rows or text were lost
	read     bool         // whether all frames were read
	held     *heldFrame

	progress     *wire.Progress // progress that waits until the next report is due
	progressTold time.Time
	progressDue  *time.Timer

	turns      silence.Clock
	inState    time.Duration // time in turns since the worker entered its state
	sinceFrame time.Duration // time since the last frame, counting only turns in which no frame was held
	sinceExit  time.Duration // time since the process ended, counting only turns in which no frame was held
}

// order is an instruction to the goroutine of a worker: a command of the job manager, or the
// failure with which the worker must be killed.
type order struct {
	command *wire.WorkerCommand
	stop    *wire.Failure
}

type gotArtifact struct {
	path    string
	release func()
	err     error
}

// payload is the data that a trigger passes to an action.
type payload struct {
	failure *wire.Failure     // for kill, giveUp and end
	command *wire.ToWorker    // for relay and drop
	event   *wire.WorkerEvent // for report
	piece   *wire.Delivery    // for deliver
	path    string            // for launch: path of the executable
}

// newWorker returns a worker for a deployment, which runs in the process of c, or in a new one if c is
// nil. It owns c.
func newWorker(w *workerEnv, d *wire.Deployment, c *child) *worker {
	if c == nil {
		c = &child{}
	}
	ctx, cancel := context.WithCancel(context.Background())
	return &worker{
		workerEnv: w, ref: d.WorkerRef, deployment: *d,
		log:    w.Logger.With("worker", d.WorkerRef.String()),
		orders: make(chan order, 16), over: make(chan struct{}),
		ctx: ctx, cancel: cancel,
		got: make(chan gotArtifact, 1), child: c, mayStay: d.Keep,
		silence: cmp.Or(w.Silence, d.Silence, defaultSilence),
	}
}

// give sends an order to the goroutine of the worker, unless the worker has ended.
func (w *worker) give(o order) {
	select {
	case w.orders <- o:
	case <-w.over:
	}
}

// run runs the worker. It returns when the worker's process and goroutines have ended and its
// files are removed.
func (w *worker) run() {
	defer close(w.over)
	defer w.cancel()
	begin := time.Now()
	w.turns = core.NewTurns(w.silence, 0)
	ticks := time.NewTicker(w.turns.Period)
	defer ticks.Stop()
	w.progressDue = time.NewTimer(0)
	defer w.progressDue.Stop()
	if w.process != nil {
		w.step(core.Handed, payload{})
	} else {
		w.fetch()
	}
	for w.state != core.Gone {
		var frames <-chan frame
		if w.held == nil && !w.read {
			frames = w.frames
		}
		h := w.held.next(w.delivery)
		select {
		case g := <-w.got:
			w.haveArtifact(g)
		case o := <-w.orders:
			w.execute(o)
		case f := <-frames:
			w.hear(f)
		case h.bulk <- h.piece:
			w.releaseHeld()
		case h.flushes <- h.answer:
			w.held.asked = true
		case err := <-h.answered:
			w.confirmed(err)
		case err := <-w.broken:
			w.step(core.Undeliverable, payload{failure: &wire.Failure{Kind: wire.LostFailure, Message: err.Error()}})
		case err := <-w.unsent:
			w.step(core.Stopped, payload{failure: &wire.Failure{Kind: wire.ClusterFailure, Message: err.Error()}})
		case e := <-w.exits:
			w.exit = &e
			w.pipes.boundDrain()
		case <-w.outEnd:
			w.outEnd = nil
		case <-w.progressDue.C:
			w.tellProgress()
		case <-ticks.C:
			w.tick(time.Since(begin))
		}
		if w.exit != nil && w.read && w.outEnd == nil && w.held == nil {
			w.step(core.Exited, payload{failure: w.causeOfExit()})
		}
	}
}

// step looks up a trigger in the transition table, changes the state, and carries out the
// action.
func (w *worker) step(h core.Trigger, p payload) {
	from, m := w.state, w.table[w.state][h]
	if m.To != from {
		w.state, w.inState = m.To, 0
		w.log.Debug("worker", "was", from, "is", m.To, "for", h)
	}
	switch m.Do {
	case core.Launch:
		w.launch(p.path)
	case core.Redeploy:
		w.redeploy()
	case core.Relay:
		w.outgo <- p.command
	case core.Ask:
		w.ask(p.command)
	case core.Drop:
		w.mayStay = p.command.Cancel.Keep
		w.outgo <- p.command
		w.delivery.discard()
		if w.held != nil && w.held.piece != nil {
			w.releaseHeld()
		}
	case core.Report:
		w.report(p.event)
	case core.Deliver:
		w.held = &heldFrame{piece: p.piece}
	case core.GiveUp:
		w.failure = w.reason(h, from, p.failure)
		w.cancel()
	case core.Kill:
		w.kill(w.reason(h, from, p.failure))
	case core.Keep:
		w.keep()
	case core.End:
		if from != core.Killed {
			w.failure, w.crashed = p.failure, p.failure != nil && w.exit != nil
		}
		w.end()
	}
}

// kill kills the process and stores why, the reason. A frame that is held is dropped.
func (w *worker) kill(why *wire.Failure) {
	w.failure = why
	if why != nil {
		w.log.Warn("killing the worker", "pid", w.process.PID(), "why", why.Message)
	}
	if err := w.process.Kill(); err != nil {
		w.log.Error("cannot kill the worker", "pid", w.process.PID(), "error", err)
	}
	w.delivery.discard()
	w.held = nil
}

// ask passes a request for a checkpoint, or what one waits for, on to the worker. The queue keeps room for
// other commands.
func (w *worker) ask(m *wire.ToWorker) {
	if len(w.outgo) < cap(w.outgo)/2 {
		w.outgo <- m
		return
	}
	if m.Save == nil {
		return // it is said again with the next failure
	}
	w.tell(wire.WorkerEvent{WorkerRef: w.ref, Saved: &wire.Saved{Request: m.Save.Request, Failure: "too many requests wait for the worker"}})
}

// reason returns the failure of a worker that is killed upon trigger h in state in. If given is
// not nil, reason returns given. If the worker got the command to end, reason returns nil.
func (w *worker) reason(h core.Trigger, in core.State, given *wire.Failure) *wire.Failure {
	if given != nil {
		return given
	}
	because := func(kind wire.FailureKind, format string, args ...any) *wire.Failure {
		return &wire.Failure{Kind: kind, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case h >= core.SaidBeat && h <= core.SaidGarbage:
		return because(wire.MisuseFailure, "the worker sent %q while it was %s: %s", h, in, otherVersion)
	case h == core.ToldPrepare || h == core.ToldStart || h == core.ToldCommit:
		return because(wire.ClusterFailure, "the job manager told the worker to %s while it was %s", h, in)
	case h == core.SilentTooLong:
		return because(wire.LostFailure, "the worker was silent for %.1fs, as if it were stopped, and was killed", w.sinceFrame.Seconds())
	case h == core.RanOut && in == core.Starting && w.runsOwnExecutable():
		return because(wire.ClusterFailure, "the task manager's own executable runs, but sent nothing as a worker within %s", w.Startup)
	case h == core.RanOut && in == core.Starting:
		return because(wire.MisuseFailure, "the executable runs, but sent nothing as a worker within %s: %s", w.Startup, notOurs)
	case h == core.RanOut:
		w.log.Warn("the worker did not end as it was told, and is killed", "after", w.Grace)
	}
	return nil // the worker got the command to end, so its end is not a failure
}

// otherVersion is the last part of a message about a breach of the protocol. It names the
// possible causes.
const otherVersion = "is it built with another version of Superstep than the cluster, or does user code write to file descriptor 4?"

// causeOfExit returns why the process ended without being killed by the task manager, or nil if
// it ended as expected.
func (w *worker) causeOfExit() *wire.Failure {
	if w.exit.err != nil {
		w.log.Error("the end of the worker's process", "pid", w.process.PID(), "error", w.exit.err)
	}
	return ending{exit: w.exit.Exit, in: w.state, crash: w.out.crashed(), own: w.runsOwnExecutable()}.failure()
}

// tick advances the worker's timers to now. If a time limit has passed, it calls step with the
// trigger.
func (w *worker) tick(now time.Duration) {
	passed := w.turns.Tick(now)
	w.inState += passed
	if w.held == nil {
		w.sinceFrame += passed
	}
	if w.exit != nil {
		if w.held == nil {
			w.sinceExit += passed
		}
		if w.sinceExit > drainTime && !w.read {
			w.pipes.stopReading()
		}
		return
	}
	switch w.state {
	case core.Starting:
		switch {
		case w.inState >= w.Startup && w.unheard():
			w.step(core.RanOut, payload{})
		case w.inState >= w.silence-w.turns.Period && w.process.Stopped() && w.unheard():
			// The first frame may take up to Startup, but a stopped process is killed earlier.
			w.step(core.SilentTooLong, payload{})
		}
		return
	case core.Cancelling, core.FinishingCommit, core.Failed, core.Leaving:
		if w.inState >= w.Grace {
			w.step(core.RanOut, payload{})
			return
		}
	}
	if w.sinceFrame >= w.silence-w.turns.Period && w.unheard() {
		w.step(core.SilentTooLong, payload{})
	}
}

// unheard reports whether no frame of the worker waits to be read or passed on. If it finds a
// frame, it processes the frame.
func (w *worker) unheard() bool {
	if w.held != nil {
		return false
	}
	select {
	case f := <-w.frames:
		w.hear(f)
		return false
	default:
		return w.read || !readable(w.pipes.from)
	}
}

// keep ends a worker whose process waits for the next attempt of the job.
func (w *worker) keep() {
	w.pipes.settle(w.out)
	c := w.child
	w.child = &child{}
	w.finish()
	c.out.forget()
	w.log.Info("worker ended, and keeps its process", "pid", c.process.PID())
	w.kept.put(c, w.ref, w.deployment.Spec.Artifact, w.slots())
	w.freed.Store(true)
	w.outbox.Put(wire.WorkerEvent{WorkerRef: w.ref, Ended: &wire.Ended{Kept: true}})
}

// end reports why a worker whose process has ended or was not started is gone.
func (w *worker) end() {
	w.finish()
	if !w.mayStay {
		w.rows.end(w.ref.Job)
	}
	f, how := w.failure, []any(nil)
	if w.exit != nil {
		how = append(how, "exit code", w.exit.Code)
		if w.exit.Signal != "" {
			how = append(how, "signal", w.exit.Signal)
		}
	}
	if f != nil {
		f = w.withOrigin(f)
		if w.exit != nil {
			f.ExitCode, f.Signal = w.exit.Code, w.exit.Signal
		}
		how = append(how, "failure", f.Message)
	}
	w.log.Info("worker ended", how...)
	w.freed.Store(true)
	w.outbox.Put(wire.WorkerEvent{WorkerRef: w.ref, Ended: &wire.Ended{Failure: f, Crashed: w.crashed}})
}

// finish releases the resources of a worker.
func (w *worker) finish() {
	w.child.close()
	if w.delivery != nil {
		w.delivery.finish()
	}
	w.cancel()
	w.work.Wait()
	if w.path != "" {
		if err := os.RemoveAll(w.path); err != nil {
			w.log.Error("cannot remove the worker's directory", "error", err)
		}
	}
}

// slots returns the number of slots that the worker has, or holds for the next attempt.
func (w *worker) slots() int {
	return w.deployment.Taken()
}

// withOrigin returns a copy of f with the number of the worker, the name of the task manager,
// and the last lines of the worker's output.
func (w *worker) withOrigin(f *wire.Failure) *wire.Failure {
	signed := *f
	signed.Worker, signed.TaskManager = w.ref.Worker, w.Name
	signed.ExitCode, signed.Signal = -1, ""
	if len(signed.LastLines) == 0 && w.out != nil {
		signed.LastLines = w.out.lastLines()
	}
	return &signed
}
