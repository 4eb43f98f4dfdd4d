package core

import (
	"time"

	"github.com/superstep-ml/superstep/internal/wire"
)

// Event is something that happened. One of the types below.
type Event interface{ event() }

// Registered: a task manager introduced itself on a new connection. Conn numbers
// connections, from 1, and is never used twice.
type Registered struct {
	Conn int
	wire.Register
}

// Heartbeat: a task manager says that it is alive, and which workers it has.
type Heartbeat struct {
	Conn int
	wire.Heartbeat
}

// Reported: a task manager reports what happened to a worker.
type Reported struct {
	Conn int
	wire.WorkerEvent
}

// Left: a task manager said good-bye.
type Left struct {
	Conn   int
	Reason string
}

// Disconnected: the connection of a task manager broke. The reason completes "task
// manager X ...".
type Disconnected struct {
	Conn   int
	Reason string
}

// Submitted: a client submitted a job. Slots is the number that its plan needs, 0 if the graph
// is to be resolved first.
type Submitted struct {
	ID    wire.JobID
	Spec  wire.JobSpec
	Slots int
	At    time.Time // by the wall clock, for people
}

// Compiled: the shell compiled a graph that a worker resolved, or could not because of Err.
type Compiled struct {
	ID    wire.JobID
	Graph []byte // in JSON, as the workers get it
	Slots int
	Err   error
}

// CancelAsked: someone wants a job to end. The reason completes "cancelled: ...".
type CancelAsked struct {
	ID     wire.JobID
	Reason string
}

// Persisted: the record of a Persist effect is on disk. The shell reports this for effects with
// Barrier set; the core waits for it before it lets worker 0 commit. Err is why the record
// could not be written: the job then fails before any of its results is visible.
type Persisted struct {
	ID  wire.JobID
	Err error
}

// Tick: time has passed. Due every TickEvery.
type Tick struct{}

func (Registered) event()   {}
func (Heartbeat) event()    {}
func (Reported) event()     {}
func (Left) event()         {}
func (Disconnected) event() {}
func (Submitted) event()    {}
func (Compiled) event()     {}
func (CancelAsked) event()  {}
func (Persisted) event()    {}
func (Tick) event()         {}

// Effect is something that the shell does for the core. One of the types below, in
// the order in which they are to be done.
type Effect interface{ effect() }

// Send sends a message to a task manager. If the connection is gone, the shell drops the
// message. The credential of a Deployment is left empty: the shell issues one per (job,
// attempt) and fills it in.
type Send struct {
	Conn    int
	Message wire.ToTaskManager
}

// Disconnect ends a connection after its queued messages.
type Disconnect struct {
	Conn int
}

// Persist writes a job's record. With Barrier the shell answers Persisted. The record
// of a job that commits or has finished has the outcomes of its workers, which the
// core itself does not keep after the job has ended; the plan is the shell's to add.
type Persist struct {
	Job     wire.JobInfo
	Barrier bool
	// Spec is the specification of a job that commits, nil for others. With the outcomes it is
	// what Config.Resume needs after a restart.
	Spec *wire.JobSpec
}

// Changed tells the followers of a job its new state. The last one of a job has a state for
// which Ended is true, and comes after its Persist.
type Changed struct {
	Job wire.JobInfo
}

// Compile asks for a resolved graph to be compiled, which the shell answers with
// Compiled.
type Compile struct {
	ID    wire.JobID
	Graph []byte
}

// Progressed says that a job has made progress; Core.Progress returns the sum. There is one for
// each report of a worker; the shell chooses how often it tells followers.
type Progressed struct {
	ID wire.JobID
}

// Forget removes the record of a job that ended long ago, with everything else that the shell
// keeps of it.
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
