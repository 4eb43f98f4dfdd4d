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

// errInterrupted is the cause of a run that a signal ended.
var errInterrupted = errors.New("cancelled")

// listen receives interrupts and requests to terminate.
func listen() (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	return signals, func() { signal.Stop(signals) }
}

// sameSignal is how long after a signal that cancels another one counts as the same: a
// terminal, a shell or timeout(1) may signal both a process and its process group. Nobody
// presses a key twice that fast on purpose.
const sameSignal = 250 * time.Millisecond

// interrupts handles the signals of a program. While the job runs, the first signal cancels it;
// otherwise a signal ends the process.
type interrupts struct {
	program *program
	stop    func() // ends listening; further calls do nothing

	mu        sync.Mutex              // held while the process exits, so that no run begins
	cancel    context.CancelCauseFunc // of the run, until a signal came
	signalled bool                    // a signal came
	at        time.Time               // when the signal came
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

// cancelWith sets the function that cancels the run. The run may begin once it returns.
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

// onlyInterrupted reports whether err is an interrupt and nothing else: no operator failed,
// none was abandoned, and no other error is joined to it, such as that of a sink that could not
// remove its output.
func onlyInterrupted(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) { // ends at joined errors
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
