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

// errInterrupted is the cause of a run's end by a signal.
var errInterrupted = errors.New("cancelled")

// listen receives interrupts and requests to terminate.
func listen() (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return signals, func() { signal.Stop(signals) }
}

// sameSignal is how long after a signal that cancels another one counts as the same:
// a terminal, a shell or timeout(1) may tell a process both by itself and as one of its
// group. Nobody presses a key twice that fast to say something else.
const sameSignal = 250 * time.Millisecond

// interrupts is what signals do to a program: while the job runs, the first one
// cancels it; otherwise, one ends the process.
type interrupts struct {
	program *program
	stop    func() // ends listening; further calls do nothing

	mu     sync.Mutex              // held while the process is ended, so that no run begins
	cancel context.CancelCauseFunc // of the run, until a signal came
	told   bool                    // that a signal came
	at     time.Time               // when it did
}

// interrupts begins to listen.
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

// cancelWith says how to cancel the run, which may begin then.
func (in *interrupts) cancelWith(cancel context.CancelCauseFunc) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.cancel = cancel
}

// signal does what a signal asks for.
func (in *interrupts) signal() {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.cancel != nil {
		in.told, in.at = true, in.program.now()
		in.cancel(errInterrupted)
		in.cancel = nil
		return
	}
	if in.told && in.program.now().Sub(in.at) < sameSignal {
		return
	}
	if !in.told {
		in.program.sayCancelled()
	}
	in.program.exit(exitFailed)
}

// sayCancelled reports that the program ends because it was told to.
func (p *program) sayCancelled() { fmt.Fprintf(p.stderr, "%s: cancelled\n", p.name) }

// onlyInterrupted says that an interrupt is all there is to report: no operator
// failed, none was abandoned, and nothing is joined to it, such as output that a
// sink could not remove.
func onlyInterrupted(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) { // nil where errors are joined
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
