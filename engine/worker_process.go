package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/superstep-ml/superstep/engine/copies"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/engine/workerlife"
	"github.com/superstep-ml/superstep/internal/offheap"
	"github.com/superstep-ml/superstep/internal/wire"
)

// A worker process is kept for the next attempt of its job if its attempt has ended because of other
// processes. It then has aborted what it had begun, and closed its data plane and its part of the
// plan. What it has left is the rows of queues (task.Retained) and states of queues (copies.Store).

// workerProcess is what a worker process has in all attempts of its job.
type workerProcess struct {
	env      workerEnv
	sender   *workerSender
	heard    chan *wire.ToWorker
	unsent   chan error
	gone     chan struct{} // closed when the task manager has ended
	lost     sync.Once     // closes gone
	done     chan struct{} // closed when the last worker has ended
	ended    func()        // closes done
	attempts int           // number of attempts that were deployed here
	retained *task.Retained
	copies   *copies.Store

	filesRead bool // a worker was ready, and has read the states in files that earlier processes have left
}

// newWorkerProcess begins to send heartbeats.
func newWorkerProcess(environment workerEnv) *workerProcess {
	p := &workerProcess{
		env:   environment,
		heard: make(chan *wire.ToWorker), unsent: make(chan error, 1),
		gone: make(chan struct{}), done: make(chan struct{}), retained: task.NewRetained(), copies: &copies.Store{},
	}
	p.ended = sync.OnceFunc(func() { close(p.done) })
	frames := wire.NewWriter[wire.FromWorker](p.env.out)
	p.sender = newWorkerSender(frames, p.env.beat, func(err error) { p.taskManagerGone(fmt.Sprintf("cannot be written to (%v)", err)) }, func(err error) {
		select {
		case p.unsent <- err:
		default: // an earlier error already ends the worker
		}
	})
	return p
}

// newWorker returns the worker of the next attempt.
func (p *workerProcess) newWorker() *worker {
	w := &worker{workerProcess: p, work: make(chan workOutcome, 1)}
	w.context, w.cancel = context.WithCancelCause(context.Background())
	return w
}

// listen passes on the messages of the task manager. When the task manager has ended, listen ends
// the process at once, as its work is not needed any more and nobody could end it later.
func (p *workerProcess) listen(frames *wire.Reader[wire.ToWorker]) {
	for {
		m, err := frames.Next()
		if err != nil {
			if errors.Is(err, io.EOF) {
				p.taskManagerGone("has ended")
			} else {
				p.taskManagerGone(fmt.Sprintf("cannot be read (%v)", err))
			}
			return
		}
		select {
		case p.heard <- m:
		case <-p.done:
			return
		}
		if m.Exit != nil {
			return // the task manager may close the pipe now
		}
	}
}

// taskManagerGone ends the process because its task manager has ended, unless the last worker has
// already ended.
func (p *workerProcess) taskManagerGone(what string) {
	select {
	case <-p.done:
		return
	default:
	}
	fmt.Fprintf(p.env.stderr, "the pipe to the task manager %s: the worker exits\n", what)
	p.env.exit(exitFailed)
	p.lost.Do(func() { close(p.gone) }) // reached only in tests, in which exit returns
}

// closeKept releases what the process has kept, unless work that has not ended may be using it.
func (w *worker) closeKept() {
	if !w.busy {
		w.workerProcess.close()
	}
}

// close releases what the process has kept.
func (p *workerProcess) close() {
	if err := p.retained.Close(); err != nil {
		fmt.Fprintf(p.env.stderr, "release the rows that were kept: %v\n", err)
	}
}

// deployed is called when an attempt is deployed. The environment of the process has the limits of the
// first attempt, and later attempts may have others.
func (p *workerProcess) deployed(d *wire.Deployment) {
	if p.attempts++; p.attempts == 1 || checkDeployment(d) != nil || d.Mode == wire.ResolveMode {
		return
	}
	runtime.GOMAXPROCS(max(1, d.Taken()))
	offheap.SetLimit(d.Memory + heapMargin) // less the rows that the process has kept
}

// keeps reports whether the process is kept for another attempt when the worker has ended.
func (w *worker) keeps() bool {
	if w.job == nil {
		return false
	}
	return workerlife.End{
		Deployment: w.job.deployment, Cancelled: w.cancelled, Failure: w.failure,
		Committed: w.answer != nil && w.answer.Committed != nil, Unclean: w.busy || w.left || w.failed,
	}.Keeps()
}

// leave ends the attempt of a worker whose process is kept.
func (w *worker) leave() {
	w.cancel(errStopRequested)
	w.saves.sending.Wait()
	stop := w.exitIfHung()
	w.release()
	stop()
	w.sender.post(&wire.FromWorker{Kept: &wire.Kept{}})
}
