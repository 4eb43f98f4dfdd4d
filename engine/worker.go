package engine

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/internal/wire"
)

// WorkerMain makes it possible to run the program's jobs on a cluster. In a worker process, which
// a task manager has started, it runs the worker's part of one of these jobs and ends the
// process, so it does not return. In any other process it returns at once.
//
// Main calls WorkerMain. A program that does not use Main must call it once, before it reads flags
// or anything else, with all jobs that it passes to Run with the option Cluster:
//
//	func main() {
//		engine.WorkerMain(train, predict)
//		…
//	}
func WorkerMain(jobs ...Runnable) {
	version := os.Getenv(wire.WorkerEnv)
	if version == "" {
		registerJobs(jobs)
		return
	}
	// Programs that the job starts must not regard themselves as workers.
	os.Unsetenv(wire.WorkerEnv)
	in, err := inherited(wire.WorkerReads, "commands")
	out, outErr := inherited(wire.WorkerWrites, "reports")
	if err := errors.Join(err, outErr); err != nil {
		fmt.Fprintf(os.Stderr, "the environment says by %s that this process is a worker, but no task manager started it (%v): unset the variable\n", wire.WorkerEnv, err)
		os.Exit(exitFailed)
	}
	// The client and the task manager handle an interrupt of the terminal and end their
	// workers. The worker receives the signal and does nothing. If it ignored the signal
	// instead, processes that the job starts would ignore it too.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	os.Exit(runWorker(workerEnv{
		version: version, jobs: jobs, in: in, out: out, stderr: os.Stderr,
		exit: os.Exit, enter: enterDir, open: openDataPlane, part: newPart,
	}))
}

// registeredJobs holds the names of the jobs that this program can run as a worker. It is nil
// until WorkerMain is called. Run with the option Cluster looks for the job in it before
// anything is uploaded.
var registeredJobs atomic.Pointer[[]string]

// registerJobs adds the names of jobs to registeredJobs.
func registerJobs(jobs []Runnable) {
	for {
		before := registeredJobs.Load()
		names := []string{}
		if before != nil {
			names = slices.Clone(*before)
		}
		for _, j := range jobs {
			if usable(j) && !slices.Contains(names, j.Name()) {
				names = append(names, j.Name())
			}
		}
		if registeredJobs.CompareAndSwap(before, &names) {
			return
		}
	}
}

// usable reports whether a job can run in another process. If it cannot, the reason is reported
// when the job is run.
func usable(j Runnable) bool { return j != nil && j.check() == nil && j.Name() != "" }

// checkOffered returns an error if this program, started as a worker, would not know the job.
func checkOffered(name string) error {
	names := registeredJobs.Load()
	switch {
	case name == "":
		return errors.New("the job has no name, by which the workers of a cluster could tell which it is: make it with engine.Define")
	case names == nil:
		return fmt.Errorf("%s cannot run on a cluster, as this program would not know that it is a worker there: call engine.WorkerMain with its jobs first in main, or use engine.Main", jobTitle(name))
	case !slices.Contains(*names, name):
		return fmt.Errorf("%s cannot run on a cluster, as it is not among the jobs that engine.WorkerMain was called with (%s): add it there", jobTitle(name), listNames(*names))
	}
	return nil
}

// listNames returns names as text for a message.
func listNames(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// workerEnv holds what a worker uses of its process. Tests replace it.
type workerEnv struct {
	version string // version of the task manager's protocol, as text
	jobs    []Runnable
	in      io.Reader // frames from the task manager
	out     io.Writer // frames to the task manager
	stderr  io.Writer
	// exit ends the process at once. If it returns, as in a test, runWorker cleans up and
	// returns.
	exit func(code int)
	// enter changes the working directory, see enterDir.
	enter func(dir, scratch string) (missing, err error)
	// open opens the data plane.
	open func(planeConfig) (dataPlane, error)
	// part makes the runner of the worker's subtasks.
	part func(partConfig) (subtasks, error)
	// allocator allocates the memory of all rows; nil means the default.
	allocator   memory.Allocator
	beat        time.Duration // time between heartbeats; 0 means beatEvery
	stopTimeout time.Duration // how long work may continue after it was told to end; 0 means the constant stopTimeout
}

const (
	// beatEvery is the default time between heartbeats.
	beatEvery = 250 * time.Millisecond
	// stopTimeout is the default time for which user code may continue after the worker was
	// told to end.
	stopTimeout = 10 * time.Second
	// drainGrace is how long the task manager may take to read the remaining messages.
	drainGrace = 5 * time.Second
	// forcedExitAfter is how long a worker may take to close what it holds. After that its process
	// exits.
	forcedExitAfter = 15 * time.Second
)
