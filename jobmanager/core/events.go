package core

import (
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Event is an input of the core: one of the types below.
type Event interface{ event() }

// Registered says that a task manager has registered on a new connection. Conn is the number of
// the connection. Numbers begin at 1 and are never used twice.
type Registered struct {
	Conn int
	wire.Register
}

// Heartbeat says that a task manager has sent a heartbeat, which lists its workers.
type Heartbeat struct {
	Conn int
	wire.Heartbeat
}

// Reported says that a task manager has reported an event of a worker.
type Reported struct {
	Conn int
	wire.WorkerEvent
}

// Left says that a task manager has sent Leave.
type Left struct {
	Conn   int
	Reason string
}

// Disconnected says that the connection of a task manager broke. The reason completes the
// sentence "task manager X ...".
type Disconnected struct {
	Conn   int
	Reason string
}

// ProcessEnded says that the process of a task manager, whose connection has broken, has ended.
type ProcessEnded struct{ ID, Incarnation string }

// Submitted says that a client has submitted a job. Slots is the number of slots that the job's
// plan needs, or 0 if a worker must resolve the graph first.
type Submitted struct {
	ID    wire.JobID
	Spec  wire.JobSpec
	Slots int
	At    time.Time // wall-clock time of the submission, to be shown to users
	Key   string    // what identifies the submission; see Submission
}

// Compiled says that the shell has compiled a graph that a worker resolved or, if Err is not
// nil, that the graph could not be compiled.
type Compiled struct {
	ID    wire.JobID
	Graph []byte // graph in JSON, as it is sent to the workers
	Slots int
	Err   error
}

// CancelAsked says that the cancellation of a job was requested. The reason completes the text
// "cancelled: ...".
type CancelAsked struct {
	ID     wire.JobID
	Reason string
}

// Persisted says that the record of a Persist effect is on disk. The shell sends Persisted for
// effects with Barrier set. Attempt and State are those of that record. The core waits for
// Persisted before it deploys the workers of an attempt, so that a restarted job manager knows
// every attempt of which workers may be left, before it sends a giver the command to exit, and
// before it sends worker 0 the command to commit. If Err is not nil, the record could not be
// written, and the job fails before any of its results is visible. For a deployment and for a
// giver, the shell instead tries until the record is written.
type Persisted struct {
	ID      wire.JobID
	Attempt int
	State   wire.JobState
	Err     error
}

// Tick says that time has passed. The shell passes a Tick every TickEvery.
type Tick struct{}

func (Registered) event()   {}
func (Heartbeat) event()    {}
func (Reported) event()     {}
func (Left) event()         {}
func (Disconnected) event() {}
func (ProcessEnded) event() {}
func (Submitted) event()    {}
func (Compiled) event()     {}
func (CancelAsked) event()  {}
func (Persisted) event()    {}
func (Tick) event()         {}

// Effect is an action that the shell must perform for the core: one of the types below. Effects
// are performed in the order in which Step returns them.
type Effect interface{ effect() }

// Send sends a message to a task manager. If the connection is closed, the shell drops the
// message. The core leaves the credential of a Deployment empty, and the shell sets it.
type Send struct {
	Conn    int
	Message wire.ToTaskManager
}

// Disconnect closes a connection after the queued messages have been sent.
type Disconnect struct {
	Conn int
}

// Persist writes a job's record. If Barrier is set, the shell answers with Persisted; if Retry is
// set too, it tries to write the record until it succeeds, and answers then. The record of a job that is committing or finished has the outcomes of its workers, which the
// core itself does not keep after the job has ended. The shell adds the plan to the record.
type Persist struct {
	Job            wire.JobInfo
	Barrier, Retry bool
	// Spec is the job's specification, in the first record and when a worker has resolved the
	// graph; it is nil in other records. It is kept until the job has ended.
	Spec *wire.JobSpec
	// Graph is not nil if the plan on record is of another parallelism than Job: the shell compiles
	// this graph, in JSON, and records the new plan together with Job.
	Graph []byte
	// Continuation is not nil if the job has not ended. Together with Spec and the outcomes it
	// is the data that Config.Resume needs after a restart.
	Continuation *Continuation
}

// Changed sends the new state of a job to its followers. The last Changed of a job has a state
// for which Ended is true, and comes after the Persist of that state.
type Changed struct {
	Job wire.JobInfo
}

// Compile requests that the shell compiles a resolved graph. The shell answers with Compiled.
type Compile struct {
	ID    wire.JobID
	Graph []byte
}

// Progressed says that a worker of the job has reported progress; Core.Progress returns the sum
// over the workers. The core emits Progressed for each report; the shell decides how often it
// sends progress to followers.
type Progressed struct {
	ID wire.JobID
}

// Forget removes the record of an old ended job, and all other data that the shell stores about
// the job.
type Forget struct {
	ID wire.JobID
}

func (Send) effect()       {}
func (Disconnect) effect() {}
func (Persist) effect()    {}
func (Changed) effect()    {}
func (Compile) effect()    {}
func (Progressed) effect() {}
func (Forget) effect()     {}
