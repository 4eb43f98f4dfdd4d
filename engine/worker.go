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

// WorkerMain lets a cluster run the program. In a worker process, which a task manager starts,
// it runs the worker's part of one of these jobs and exits, so it does not return. In any other
// process it returns at once.
//
// Main calls it. A program with a main of its own calls it once, before it reads flags or
// anything else, with all jobs that it ever gives to Run with Cluster:
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
	// Programs that the job starts are no workers.
	os.Unsetenv(wire.WorkerEnv)
	in, err := inherited(wire.WorkerReads, "commands")
	out, outErr := inherited(wire.WorkerWrites, "reports")
	if err := errors.Join(err, outErr); err != nil {
		fmt.Fprintf(os.Stderr, "the environment says by %s that this process is a worker, but no task manager started it (%v): unset the variable\n", wire.WorkerEnv, err)
		os.Exit(exitFailed)
	}
	// The client and the task manager handle an interrupt of the terminal and end their workers
	// in order. The signal is received rather than ignored, as processes that the job starts
	// would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), os.Interrupt)
	os.Exit(runWorker(workerEnv{
		version: version, jobs: jobs, in: in, out: out, stderr: os.Stderr,
		exit: os.Exit, enter: enterDir, open: openDataPlane, part: newPart,
	}))
}

// registeredJobs are the names of the jobs that this process could run as a worker; nil until
// WorkerMain is called. Run with Cluster checks it before anything is uploaded.
var registeredJobs atomic.Pointer[[]string]

// registerJobs records jobs, beside those of earlier calls.
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

// usable reports whether a job can run in another process. What is wrong with other jobs is
// reported when they are run.
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

// listNames writes names for a message.
func listNames(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// workerEnv holds what a worker takes from its process.
type workerEnv struct {
	version string // of the protocol, as the task manager says it
	jobs    []Runnable
	in      io.Reader // frames of the task manager
	out     io.Writer // frames for it
	stderr  io.Writer
	// exit ends the process at once. If it returns, as in a test, the worker ends in order.
	exit func(code int)
	// enter makes a directory the working directory, see enterDir.
	enter func(dir, scratch string) (missing, err error)
	// open opens the data plane.
	open func(planeConfig) (dataPlane, error)
	// part makes the runner of the worker's subtasks.
	part func(partConfig) (subtasks, error)
	// allocator holds all rows; nil is the default.
	allocator   memory.Allocator
	beat        time.Duration // 0 is beatEvery
	stopTimeout time.Duration // 0 is stopTimeout
}

const (
	// beatEvery is the time between beats.
	beatEvery = 500 * time.Millisecond
	// stopTimeout is how long user code may go on after it was told to end.
	stopTimeout = 10 * time.Second
	// drainGrace is how long the task manager may take to read the remaining messages.
	drainGrace = 5 * time.Second
	// forcedExitAfter is how long a worker that has ended may take to close what it holds.
	forcedExitAfter = 15 * time.Second
)
