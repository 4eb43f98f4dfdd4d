package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/superstep-ml/superstep/engine/task"
)

// errInterrupted is the cause with which a signal cancels a run.
var errInterrupted = errors.New("cancelled")

// listen returns a channel of the signals SIGINT and SIGTERM, and a function that stops their
// delivery.
func listen() (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return signals, func() { signal.Stop(signals) }
}

// sameSignal is how long, after a signal has cancelled the run, another signal is ignored as a
// duplicate: a terminal, a shell or timeout(1) may signal both a process and its process group.
// Nobody presses a key twice that fast on purpose.
const sameSignal = 250 * time.Millisecond

// interrupts handles the signals of a program. While the job runs, the first signal cancels it;
// otherwise a signal ends the process.
type interrupts struct {
	program *program
	stop    func() // stops handling signals; further calls do nothing

	mu        sync.Mutex              // held while the process exits, so that no run begins
	cancel    context.CancelCauseFunc // cancels the run; nil after a signal
	signalled bool                    // a signal has cancelled the run
	at        time.Time               // time of the signal that cancelled the run
}

// interrupts begins to handle signals.
func (p *program) interrupts() *interrupts {
	signals, stop := p.listen()
	done := make(chan struct{})
	in := &interrupts{program: p, stop: sync.OnceFunc(func() { stop(); close(done) })}
	go func() {
		for {
			select {
			case <-done:
				return
			case <-signals:
				in.signal()
			}
		}
	}()
	return in
}

// cancelWith sets the function that cancels the run. The run may begin once cancelWith has
// returned.
func (in *interrupts) cancelWith(cancel context.CancelCauseFunc) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.cancel = cancel
}

// signal handles one signal.
func (in *interrupts) signal() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.cancel != nil {
		in.signalled, in.at = true, in.program.now()
		in.cancel(errInterrupted)
		in.cancel = nil
		return
	}
	if in.signalled && in.program.now().Sub(in.at) < sameSignal {
		return
	}
	if !in.signalled {
		in.program.sayCancelled()
	}
	in.program.exit(exitFailed)
}

// sayCancelled reports that the program ends because of a signal.
func (p *program) sayCancelled() { fmt.Fprintf(p.stderr, "%s: cancelled\n", p.name) }

// onlyInterrupted reports whether err only says that a signal has cancelled the run: no operator
// failed or was abandoned, and no other error is joined to it, such as the error of a sink that
// could not remove its output.
func onlyInterrupted(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) { // Unwrap returns nil for joined errors
		switch err.(type) {
		case *task.TaskError, *task.AbandonedError:
			return false
		}
		if err == errInterrupted {
			return true
		}
	}
	return false
}
