package wire

import "time"

// A task manager keeps one stream to the job manager, Connect, on which both sides send
// messages; its first message is Register. Rows, text and log lines of each worker go on a
// stream of their own, Deliver, so that they hold up nothing else; artifacts come by
// FetchArtifact.

// FromTaskManager is one message of a task manager; one field is set.
type FromTaskManager struct {
	Register  *Register    `msgpack:"register,omitempty"`
	Heartbeat *Heartbeat   `msgpack:"heartbeat,omitempty"`
	Worker    *WorkerEvent `msgpack:"worker,omitempty"`
	Leave     *Leave       `msgpack:"leave,omitempty"`
}

// Register introduces a task manager.
type Register struct {
	Version int    `msgpack:"version"` // of the protocol
	Build   string `msgpack:"build"`   // of the binary, for people
	// ID is the permanent identity of the task manager, kept in its work directory; Incarnation
	// is new each time it starts. If two run at once under one ID, the second is refused.
	ID          string   `msgpack:"id"`
	Incarnation string   `msgpack:"incarnation"`
	Name        string   `msgpack:"name"` // host:port, or a name that the user gave
	Host        string   `msgpack:"host"`
	PID         int      `msgpack:"pid"`
	Slots       int      `msgpack:"slots"`
	Memory      int64    `msgpack:"memory"` // for workers, in bytes
	Platform    Platform `msgpack:"platform"`
	// Executable is the SHA-256 of its own program, in hex: a job of that program runs
	// here without being fetched.
	Executable string `msgpack:"executable"`
	// Ailing is why it takes no new work for now, "" if it does. Each heartbeat repeats it.
	Ailing string `msgpack:"ailing,omitempty"`
	// Broke is why the previous stream ended, as the task manager saw it, "" for the first.
	Broke string `msgpack:"broke,omitempty"`
	// Running are the workers that still run from the time before the stream broke.
	Running []WorkerRef `msgpack:"running"`
}

// Heartbeat is sent every so often, and acknowledged.
type Heartbeat struct {
	Number  uint64      `msgpack:"number"`
	Running []WorkerRef `msgpack:"running"`
	Ailing  string      `msgpack:"ailing,omitempty"` // see Register
}

// Leave says that the task manager stops: it takes no more work, and its workers are
// gone.
type Leave struct {
	Reason string `msgpack:"reason"`
}

// WorkerEvent is what happened to a worker; one pointer is set.
type WorkerEvent struct {
	WorkerRef `msgpack:",inline"`
	Ready     *Ready     `msgpack:"ready,omitempty"`
	Resolved  *Resolved  `msgpack:"resolved,omitempty"`
	Prepared  *Prepared  `msgpack:"prepared,omitempty"`
	Progress  *Progress  `msgpack:"progress,omitempty"`
	Finished  *Finished  `msgpack:"finished,omitempty"`
	Committed *Committed `msgpack:"committed,omitempty"`
	Failed    *Failure   `msgpack:"failed,omitempty"`
	Ended     *Ended     `msgpack:"ended,omitempty"`
}

// Ended says that the worker's process is gone, or was never started: its slots are free. It is
// the worker's last event. Failure is why it ended, nil if it ended as told.
type Ended struct {
	Failure *Failure `msgpack:"failure,omitempty"`
}

// ToTaskManager is one message of the job manager; one field is set.
type ToTaskManager struct {
	Registered *Registered    `msgpack:"registered,omitempty"`
	Ack        *Ack           `msgpack:"ack,omitempty"`
	Deploy     *Deployment    `msgpack:"deploy,omitempty"`
	Worker     *WorkerCommand `msgpack:"worker,omitempty"`
	Refused    *Refused       `msgpack:"refused,omitempty"`
}

// Registered accepts a task manager and sets its times.
type Registered struct {
	Cluster   string        `msgpack:"cluster"` // the job manager's incarnation
	Heartbeat time.Duration `msgpack:"heartbeat"`
	// Lease is how long the task manager goes on without hearing the job manager; then
	// it kills its workers and registers anew.
	Lease time.Duration `msgpack:"lease"`
}

// Ack acknowledges a heartbeat.
type Ack struct {
	Number uint64 `msgpack:"number"`
}

// Refused ends a connection. Final says that trying again is of no use.
type Refused struct {
	Reason string `msgpack:"reason"`
	Final  bool   `msgpack:"final"`
}

// WorkerCommand is a command for a deployed worker; one pointer is set. Kill ends its process
// at once, the others are passed on. For an unknown worker the task manager answers Ended.
type WorkerCommand struct {
	WorkerRef `msgpack:",inline"`
	Prepare   *Prepare `msgpack:"prepare,omitempty"`
	Start     *Start   `msgpack:"start,omitempty"`
	Commit    *Commit  `msgpack:"commit,omitempty"`
	Cancel    *Cancel  `msgpack:"cancel,omitempty"`
	Exit      *Exit    `msgpack:"exit,omitempty"`
	Kill      *Kill    `msgpack:"kill,omitempty"`
}

// Kill ends a worker's process at once.
type Kill struct{}

// Delivery is a piece of a worker's rows, text or log; one field is set. The first one of a
// stream only names the worker.
type Delivery struct {
	Worker    *WorkerRef `msgpack:"worker,omitempty"`
	Collected *Collected `msgpack:"collected,omitempty"`
	Output    *Output    `msgpack:"output,omitempty"`
	// Log is lines of the worker's standard output and error.
	Log []byte `msgpack:"log,omitempty"`
}

// Delivered ends a stream of deliveries.
type Delivered struct{}
