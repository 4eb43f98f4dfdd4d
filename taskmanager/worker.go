package taskmanager

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/internal/programs"
	"github.com/superstep-ml/superstep/internal/silence"
	"github.com/superstep-ml/superstep/internal/wire"
)

// workerEnv has what the workers of a task manager share.
type workerEnv struct {
	Config
	own       programs.Program // of this process
	table     [states][triggers]move
	dir       *workDir
	client    *wire.Client
	artifacts *artifacts
	outbox    *outbox
	launcher  Launcher
}

const (
	// progressEvery is the least time between two reports of a worker's progress.
	progressEvery = 100 * time.Millisecond
	// drainTime bounds the time to read the rest of a process's output once it is gone. Reading
	// takes longer only if a child process that left the group still has the pipes.
	drainTime = time.Second
)

// worker runs one worker process: it feeds triggers to the table and carries out the actions.
// Fields below the line belong to the goroutine of run.
type worker struct {
	*workerEnv
	ref        wire.WorkerRef
	deployment wire.Deployment
	log        hclog.Logger
	orders     chan order
	over       chan struct{} // closed when it is gone and its Ended is in the outbox

	// ---
	ctx    context.Context // context of its fetch and its deliveries
	cancel context.CancelFunc
	tasks  sync.WaitGroup // its goroutines

	state   state
	failure *wire.Failure // why it was killed; nil if it was told to end

	got     chan gotArtifact
	release func()  // of the artifact; nil before it is there
	path    string  // its directory; "" before it is made
	process Process // nil before it is started
	pipes   pipes   // our ends
	out     *output
	outEnd  chan struct{} // closed when all output was read; nil after that was noticed
	outgo   chan *wire.ToWorker
	unsent  chan error // error of a message that could not be sent although the worker is there
	exits   chan ended
	exit    *ended // set once the process is gone

	delivery *deliverer
	broken   <-chan error // of the delivery
	frames   chan frame
	read     bool // frames have ended
	held     *heldFrame

	progress     *wire.Progress // waits until the next report is due
	progressTold time.Time
	progressDue  *time.Timer

	turns      silence.Clock
	inState    time.Duration // turns since it entered its state
	sinceFrame time.Duration // turns since its last frame, while frames were read
	sinceExit  time.Duration // turns since it is gone, while frames were read
}

// order is an instruction to a worker: a command of the job manager, or the reason why it must
// end at once.
type order struct {
	command *wire.WorkerCommand
	stop    *wire.Failure
}

type gotArtifact struct {
	path    string
	release func()
	err     error
}

// ended is how a process ended, and the error of waiting for it.
type ended struct {
	Exit
	err error
}

// payload is the data of a trigger.
type payload struct {
	failure *wire.Failure     // for kill, giveUp and end
	command *wire.ToWorker    // for relay and drop
	event   *wire.WorkerEvent // for report
	piece   *wire.Delivery    // for deliver
	path    string            // for launch: path of the executable
}

func newWorker(w *workerEnv, d *wire.Deployment) *worker {
	ctx, cancel := context.WithCancel(context.Background())
	return &worker{
		workerEnv: w, ref: d.WorkerRef, deployment: *d,
		log:    w.Logger.With("worker", d.WorkerRef.String()),
		orders: make(chan order, 16), over: make(chan struct{}),
		ctx: ctx, cancel: cancel,
		got: make(chan gotArtifact, 1), out: newOutput(),
		outgo:  make(chan *wire.ToWorker, 8), // more than a worker ever gets
		unsent: make(chan error, 1), exits: make(chan ended, 1), frames: make(chan frame),
	}
}

// give gives the worker an order, unless it is gone.
func (w *worker) give(o order) {
	select {
	case w.orders <- o:
	case <-w.over:
	}
}

// run runs the worker. It returns when its process, files and goroutines are gone.
func (w *worker) run() {
	defer close(w.over)
	defer w.cancel()
	begin := time.Now()
	w.turns = newTurns(w.Silence, 0)
	ticks := time.NewTicker(w.turns.Period)
	defer ticks.Stop()
	w.progressDue = time.NewTimer(0)
	defer w.progressDue.Stop()
	w.fetch()
	for w.state != gone {
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
			w.step(undeliverable, payload{failure: &wire.Failure{Kind: wire.LostFailure, Message: err.Error()}})
		case err := <-w.unsent:
			w.step(stopped, payload{failure: &wire.Failure{Kind: wire.ClusterFailure, Message: err.Error()}})
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
			w.step(exited, payload{failure: w.causeOfExit()})
		}
	}
}

// step looks up a trigger in the table, and carries out the action.
func (w *worker) step(h trigger, p payload) {
	from, m := w.state, w.table[w.state][h]
	if m.to != from {
		w.state, w.inState = m.to, 0
		w.log.Debug("worker", "was", from, "is", m.to, "for", h)
	}
	switch m.do {
	case launch:
		w.launch(p.path)
	case relay:
		w.outgo <- p.command
	case drop:
		w.outgo <- p.command
		w.delivery.discard()
		if w.held != nil && w.held.piece != nil {
			w.releaseHeld()
		}
	case report:
		w.report(p.event)
	case deliver:
		w.held = &heldFrame{piece: p.piece}
	case giveUp:
		w.failure = w.reason(h, from, p.failure)
		w.cancel()
	case kill:
		w.kill(w.reason(h, from, p.failure))
	case end:
		if from != killed {
			w.failure = p.failure
		}
		w.finish()
	}
}

// kill ends the process. Frames of it that were not processed yet are dropped.
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

// reason says why a worker is killed if the trigger itself is the reason.
func (w *worker) reason(h trigger, in state, given *wire.Failure) *wire.Failure {
	if given != nil {
		return given
	}
	because := func(kind wire.FailureKind, format string, args ...any) *wire.Failure {
		return &wire.Failure{Kind: kind, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case h >= saidBeat && h <= saidGarbage:
		return because(wire.MisuseFailure, "the worker sent %q while it was %s: %s", h, in, otherVersion)
	case h == toldPrepare || h == toldStart || h == toldCommit:
		return because(wire.ClusterFailure, "the job manager told the worker to %s while it was %s", h, in)
	case h == silentTooLong:
		return because(wire.LostFailure, "the worker was silent for %.1fs, as if it were stopped, and was killed", w.sinceFrame.Seconds())
	case h == ranOut && in == starting && w.runsOwnExecutable():
		return because(wire.ClusterFailure, "the task manager's own executable runs, but sent nothing as a worker within %s", w.Startup)
	case h == ranOut && in == starting:
		return because(wire.MisuseFailure, "the executable runs, but sent nothing as a worker within %s: %s", w.Startup, notOurs)
	case h == ranOut:
		w.log.Warn("the worker did not end as it was told, and is killed", "after", w.Grace)
	}
	return nil // it was told to end, and does
}

// otherVersion asks for the cause of a breach of the protocol.
const otherVersion = "is it built with another version of Superstep than the cluster, or does user code write to file descriptor 4?"

// causeOfExit says why a process ended by itself, nil if it was told to end.
func (w *worker) causeOfExit() *wire.Failure {
	if w.exit.err != nil {
		w.log.Error("the end of the worker's process", "pid", w.process.PID(), "error", w.exit.err)
	}
	return ending{exit: w.exit.Exit, in: w.state, crash: w.out.crashed(), own: w.runsOwnExecutable()}.failure()
}

// tick lets time pass.
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
	case starting:
		switch {
		case w.inState >= w.Startup && w.unheard():
			w.step(ranOut, payload{})
		case w.inState >= w.Silence-w.turns.Period && w.process.Stopped() && w.unheard():
			// The first frame may take long, but not because the process is stopped.
			w.step(silentTooLong, payload{})
		}
		return
	case cancelling, finishingCommit, leaving:
		if w.inState >= w.Grace {
			w.step(ranOut, payload{})
			return
		}
	}
	if w.sinceFrame >= w.Silence-w.turns.Period && w.unheard() {
		w.step(silentTooLong, payload{})
	}
}

// unheard reports whether a worker has really sent nothing, rather than something that this
// process had no time to read.
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

// finish removes what is left of a worker, and reports its end as its last event.
func (w *worker) finish() {
	w.pipes.close()
	close(w.outgo)
	if w.delivery != nil {
		w.delivery.finish()
	}
	w.cancel()
	w.tasks.Wait()
	if w.path != "" {
		if err := os.RemoveAll(w.path); err != nil {
			w.log.Error("cannot remove the worker's directory", "error", err)
		}
	}
	if w.release != nil {
		w.release()
	}
	f := w.failure
	if f != nil {
		f = w.withOrigin(f)
		if w.exit != nil {
			f.ExitCode, f.Signal = w.exit.Code, w.exit.Signal
		}
		w.log.Info("worker ended", "failure", f.Message)
	} else {
		w.log.Info("worker ended")
	}
	w.outbox.put(wire.WorkerEvent{WorkerRef: w.ref, Ended: &wire.Ended{Failure: f}})
}

// withOrigin returns a failure with its worker and task manager, and the last lines of output.
func (w *worker) withOrigin(f *wire.Failure) *wire.Failure {
	signed := *f
	signed.Worker, signed.TaskManager = w.ref.Worker, w.Name
	signed.ExitCode, signed.Signal = -1, ""
	if len(signed.LastLines) == 0 {
		signed.LastLines = w.out.lastLines()
	}
	return &signed
}
