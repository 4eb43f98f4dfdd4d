package wire

import "time"

// A task manager has one stream to the job manager, Connect, on which both sides send messages.
// The first message of the task manager is Register. Rows, text and log lines of each worker
// are sent on a separate stream, Deliver, so that they do not delay other messages. The task
// manager fetches artifacts with FetchArtifact.

// FromTaskManager is a message of a task manager. Exactly one field is set.
type FromTaskManager struct {
	Register  *Register    `msgpack:"register,omitempty"`
	Heartbeat *Heartbeat   `msgpack:"heartbeat,omitempty"`
	Worker    *WorkerEvent `msgpack:"worker,omitempty"`
	Leaving   *Leaving     `msgpack:"leaving,omitempty"`
	Leave     *Leave       `msgpack:"leave,omitempty"`
}

// Register introduces a task manager.
type Register struct {
	Version int    `msgpack:"version"` // version of the protocol
	Build   string `msgpack:"build"`   // version of the binary, for users
	// ID is the permanent identifier of the task manager, which is stored in its work
	// directory. Incarnation is new each time the task manager starts. If two task managers
	// with the same ID run at the same time, the second one is refused.
	ID          string   `msgpack:"id"`
	Incarnation string   `msgpack:"incarnation"`
	Name        string   `msgpack:"name"` // host:port, or a name that the user has set
	Host        string   `msgpack:"host"`
	PID         int      `msgpack:"pid"`
	Slots       int      `msgpack:"slots"`
	Memory      int64    `msgpack:"memory"` // memory for workers, in bytes
	Platform    Platform `msgpack:"platform"`
	// Executable is the SHA-256, in hex, of the task manager's own program. The task manager
	// need not fetch this executable to run a job with it.
	Executable string `msgpack:"executable"`
	// Ailing is the reason why the task manager currently takes no new work, or "" if it takes
	// new work. Each heartbeat has this reason too.
	Ailing string `msgpack:"ailing,omitempty"`
	// Presence is the address of a port that is open as long as the task manager's process runs;
	// "" if there is none. Everybody who connects gets PresenceKey, which is random.
	Presence    string `msgpack:"presence,omitempty"`
	PresenceKey string `msgpack:"presence_key,omitempty"`
	// Broke is the reason why the previous stream ended, according to the task manager. It is
	// "" for the first stream.
	Broke string `msgpack:"broke,omitempty"`
	// Leaving is set if the task manager has announced that it leaves, on this stream or on an
	// earlier one.
	Leaving *Leaving `msgpack:"leaving,omitempty"`
	// Running has the workers that were deployed over an earlier stream and still run.
	Running []WorkerRef `msgpack:"running"`
	// Kept has the workers that have ended and whose processes wait for the next attempt of their jobs.
	Kept []WorkerRef `msgpack:"kept,omitempty"`
}

// Heartbeat is sent at the interval in Registered. The job manager answers it with Ack.
type Heartbeat struct {
	Number  uint64      `msgpack:"number"`
	Running []WorkerRef `msgpack:"running"`
	Kept    []WorkerRef `msgpack:"kept,omitempty"`   // as in Register
	Ailing  string      `msgpack:"ailing,omitempty"` // as in Register
	// States has the jobs for which the task manager has files with states of queues.
	States []JobID `msgpack:"states,omitempty"`
}

// Leaving announces that the task manager stops soon, for example because its machine is taken
// away. It gets no new workers from then on. Its workers go on until the job manager ends them,
// but not for longer than Within; then the task manager kills those that are left. In both cases
// it sends Leave afterwards.
type Leaving struct {
	Reason string        `msgpack:"reason"` // for people
	Within time.Duration `msgpack:"within"` // time that is left, from the sending of this message
}

// Leave says that the task manager stops. The task manager takes no more work, and its workers
// have ended.
type Leave struct {
	Reason string `msgpack:"reason"`
}

// WorkerEvent is an event of a worker. Exactly one pointer is set.
type WorkerEvent struct {
	WorkerRef    `msgpack:",inline"`
	Ready        *Ready        `msgpack:"ready,omitempty"`
	Resolved     *Resolved     `msgpack:"resolved,omitempty"`
	Prepared     *Prepared     `msgpack:"prepared,omitempty"`
	Progress     *Progress     `msgpack:"progress,omitempty"`
	Saved        *Saved        `msgpack:"saved,omitempty"`
	Checkpointed *Checkpointed `msgpack:"checkpointed,omitempty"`
	Finished     *Finished     `msgpack:"finished,omitempty"`
	Committed    *Committed    `msgpack:"committed,omitempty"`
	Failed       *Failure      `msgpack:"failed,omitempty"`
	Ended        *Ended        `msgpack:"ended,omitempty"`
}

// Ended says that the worker's process has ended, or was never started, so that its slots are
// free. It is the worker's last event. Failure is the reason; it is nil if the process ended on
// command. Crashed says that the process ended by itself or by a signal of somebody else, and
// was neither killed by the task manager nor told to end. Kept says that the process has not ended:
// it holds no slots, and waits for the next attempt of its job. The task manager ends it when its
// slots are needed, when nobody has taken it for a while, or on Exit, Cancel or Kill for this worker.
type Ended struct {
	Failure *Failure `msgpack:"failure,omitempty"`
	Crashed bool     `msgpack:"crashed,omitempty"`
	Kept    bool     `msgpack:"kept,omitempty"`
}

// ToTaskManager is a message of the job manager. Exactly one field is set.
type ToTaskManager struct {
	Registered *Registered    `msgpack:"registered,omitempty"`
	Ack        *Ack           `msgpack:"ack,omitempty"`
	Deploy     *Deployment    `msgpack:"deploy,omitempty"`
	Worker     *WorkerCommand `msgpack:"worker,omitempty"`
	Refused    *Refused       `msgpack:"refused,omitempty"`
}

// Registered accepts a task manager, and sets its heartbeat interval and its lease.
type Registered struct {
	Cluster   string        `msgpack:"cluster"` // the job manager's incarnation
	Heartbeat time.Duration `msgpack:"heartbeat"`
	// Lease is the time for which the task manager continues if it gets no messages of the job
	// manager. After that time, the task manager kills its workers and registers again.
	Lease time.Duration `msgpack:"lease"`
}

// Ack acknowledges a heartbeat. Over has those jobs in Heartbeat.States that get no further attempt, so
// that their files can be removed.
type Ack struct {
	Number uint64  `msgpack:"number"`
	Over   []JobID `msgpack:"over,omitempty"`
}

// Refused ends a connection. Final says that the task manager must not try again.
type Refused struct {
	Reason string `msgpack:"reason"`
	Final  bool   `msgpack:"final"`
}

// WorkerCommand is a command for a deployed worker. Exactly one pointer is set. On Kill, the
// task manager kills the worker's process at once; it passes the other commands to the worker.
// If the worker is unknown, the task manager answers with Ended.
type WorkerCommand struct {
	WorkerRef `msgpack:",inline"`
	Prepare   *Prepare   `msgpack:"prepare,omitempty"`
	Start     *Start     `msgpack:"start,omitempty"`
	Commit    *Commit    `msgpack:"commit,omitempty"`
	Save      *Save      `msgpack:"save,omitempty"`
	Unwritten *Unwritten `msgpack:"unwritten,omitempty"`
	Cancel    *Cancel    `msgpack:"cancel,omitempty"`
	Exit      *Exit      `msgpack:"exit,omitempty"`
	Kill      *Kill      `msgpack:"kill,omitempty"`
}

// Kill requests that a worker's process is killed at once.
type Kill struct{}

// Delivery is a piece of a worker's rows, text or log. Exactly one field is set. The first
// Delivery of a stream has only Worker.
type Delivery struct {
	Worker    *WorkerRef `msgpack:"worker,omitempty"`
	Collected *Collected `msgpack:"collected,omitempty"`
	Output    *Output    `msgpack:"output,omitempty"`
	// Log has lines of the worker's standard output and error.
	Log []byte `msgpack:"log,omitempty"`
}

// Delivered is the answer at the end of a stream of deliveries.
type Delivered struct{}
