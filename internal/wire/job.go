package wire

import (
	"fmt"
	"strings"
	"time"
)

// Version is the version of the protocol. Sides of different versions refuse each other; the
// lower one must be upgraded.
const Version = 3

// JobID is the permanent name of a job, such as "20260102-150405-iris-kmeans-7f3a".
type JobID string

// Platform is the platform of an executable, in Go's terms: "linux", "amd64".
type Platform struct {
	OS   string `msgpack:"os" json:"os"`
	Arch string `msgpack:"arch" json:"arch"`
}

// String writes the platform as "linux/amd64".
func (p Platform) String() string { return p.OS + "/" + p.Arch }

// JobSpec is what a client submits: everything but the executable.
type JobSpec struct {
	Name string `msgpack:"name" json:"name"` // given to engine.Define
	// Args are the job's arguments in msgpack. Only the job's program reads them.
	Args []byte `msgpack:"args"`
	// Graph is the plan.Graph in JSON with its facts. Empty: the client could not read the
	// inputs that the facts come from, and a worker resolves them before the job is scheduled.
	Graph       []byte     `msgpack:"graph"`
	Parallelism int        `msgpack:"parallelism"`
	Shards      int        `msgpack:"shards"`
	Seed        uint64     `msgpack:"seed"`
	Run         RunOptions `msgpack:"run"`

	// Dir is the client's working directory, an absolute path. Workers change to it, so that
	// the job's relative paths keep their meaning. "" leaves workers where their task manager
	// starts them.
	Dir string `msgpack:"dir,omitempty"`

	// Artifact is the SHA-256 in hex of the executable of all workers of the job. With "" the
	// job manager chooses the executable, for a client that has none.
	Artifact string   `msgpack:"artifact"`
	Platform Platform `msgpack:"platform"` // of the artifact
	Build    string   `msgpack:"build"`    // its version, for people
	// Resident is set by the job manager only: task managers cannot fetch the executable, so
	// only those that run it themselves get workers of the job.
	Resident bool `msgpack:"resident,omitempty"`

	// Attached jobs are cancelled when their client goes away.
	Attached bool `msgpack:"attached"`
	// WaitTimeout bounds the wait for slots; 0 waits for ever.
	WaitTimeout time.Duration `msgpack:"wait_timeout"`
	Version     int           `msgpack:"version"` // of the client's protocol
}

// RunOptions are the options of a run that workers need. They change no result.
type RunOptions struct {
	BatchRows int `msgpack:"batch_rows"` // 0: the default
	// Memory is the budget of exchanges per slot in bytes; 0: the task manager's share.
	Memory          int64  `msgpack:"memory"`
	IfExists        string `msgpack:"if_exists"` // "fail" or "replace"
	CheckBroadcasts bool   `msgpack:"check_broadcasts"`
	CheckState      bool   `msgpack:"check_state,omitempty"`
	LogLevel        string `msgpack:"log_level"`
}

// JobState is the state of a job; the core of the job manager has the table of transitions.
type JobState int

const (
	// JobResolving: a worker learns the facts that the client could not see.
	JobResolving JobState = iota
	// JobWaiting: the job waits for slots, or for jobs submitted before.
	JobWaiting
	// JobDeploying: workers start, and report their addresses.
	JobDeploying
	// JobRunning: the job runs on all workers.
	JobRunning
	// JobCommitting: every worker has finished, one makes the results visible.
	JobCommitting
	// JobFailing: the job has failed, and its workers are being stopped.
	JobFailing
	// JobCancelling: someone cancelled the job, and its workers are being stopped.
	JobCancelling
	// JobFinished, JobFailed and JobCancelled are final.
	JobFinished
	JobFailed
	JobCancelled
)

var jobStates = [...]string{"resolving", "waiting", "deploying", "running", "committing", "failing", "cancelling", "finished", "failed", "cancelled"}

// String returns the state in lower case.
func (s JobState) String() string {
	if s < 0 || int(s) >= len(jobStates) {
		return fmt.Sprintf("JobState(%d)", int(s))
	}
	return jobStates[s]
}

// ParseJobState is the inverse of String.
func ParseJobState(text string) (JobState, error) {
	for i, name := range jobStates {
		if name == text {
			return JobState(i), nil
		}
	}
	return 0, fmt.Errorf("unknown job state %q", text)
}

// Ended reports whether nothing happens to the job any more.
func (s JobState) Ended() bool { return s >= JobFinished }

// FailureKind says where the cause of a failure lies.
type FailureKind int

const (
	// UserFailure is an error, panic or exit of user code, or an error in its data.
	UserFailure FailureKind = iota
	// LostFailure: a process or machine is gone: killed, stopped, cut off.
	LostFailure
	// PeerFailure: a worker lost contact with another one. This follows from something else,
	// which becomes the cause if it is found.
	PeerFailure
	// MisuseFailure: the job cannot run: another fingerprint, an unknown name, arguments that
	// do not decode, an executable that does not start.
	MisuseFailure
	// ClusterFailure is the fault of the cluster itself, such as a full disk under the
	// artifacts.
	ClusterFailure
	// UnheardFailure: a task manager ended the workers because it did not hear the job manager.
	// It is never the failure of a job: the job manager knows whether it ran itself, and turns
	// it into a ClusterFailure or a LostFailure.
	UnheardFailure
)

// Failure is why a job failed, for people.
type Failure struct {
	Kind    FailureKind `msgpack:"kind" json:"kind"`
	Message string      `msgpack:"message" json:"message"` // with operator, line, subtask and shard where known
	// Worker is the number of the worker in its job, -1 if it is no worker's failure;
	// TaskManager is the name of its task manager.
	Worker      int      `msgpack:"worker" json:"worker"`
	TaskManager string   `msgpack:"task_manager" json:"task_manager"`
	ExitCode    int      `msgpack:"exit_code" json:"exit_code"`   // of the process, -1 if it was a signal or goes on
	Signal      string   `msgpack:"signal" json:"signal"`         // such as "killed", "" if none
	LastLines   []string `msgpack:"last_lines" json:"last_lines"` // of its output
	// Outputs says what is visible of the job's outputs after a commit that failed, "" where
	// that is unknown or there was no commit.
	Outputs string `msgpack:"outputs" json:"outputs,omitempty"`
}

// Error writes the failure with where it happened. In a message of several lines, such as one
// that shows how two graphs differ, the place is on the last line.
func (f *Failure) Error() string {
	message := strings.TrimRight(f.Message, "\n")
	if f.Worker < 0 || f.TaskManager == "" {
		return message
	}
	return fmt.Sprintf("%s (worker %d on task manager %s)", message, f.Worker, f.TaskManager)
}

// SlotRange is the range of slots, and so of subtask indices, that one worker runs.
type SlotRange struct {
	Lo int `msgpack:"lo" json:"lo"`
	Hi int `msgpack:"hi" json:"hi"` // exclusive
}

// WorkerRef names one worker process of a job.
type WorkerRef struct {
	Job     JobID `msgpack:"job" json:"job"`
	Attempt int   `msgpack:"attempt" json:"attempt"` // from 1; messages of earlier attempts are ignored
	Worker  int   `msgpack:"worker" json:"worker"`   // from 0
}

// String writes the reference as "job/attempt/worker".
func (w WorkerRef) String() string { return fmt.Sprintf("%s/%d/%d", w.Job, w.Attempt, w.Worker) }

// Progress is the progress of one worker of a job, or of all together.
type Progress struct {
	Vertices []VertexProgress `msgpack:"vertices" json:"vertices"` // by vertex of the plan
	Edges    []EdgeProgress   `msgpack:"edges" json:"edges"`       // by edge of the plan
	Queues   []QueueProgress  `msgpack:"queues" json:"queues"`     // by queue of the plan; subtask 0's worker only
}

// VertexProgress is the progress of a vertex, summed over subtasks.
type VertexProgress struct {
	Rows       int64 `msgpack:"rows" json:"rows"`
	ShardsDone int   `msgpack:"shards_done" json:"shards_done"`
}

// EdgeProgress is what was sent over an exchange: rows, and the bytes that they take in
// memory. A broadcast counts once for each worker that gets it.
type EdgeProgress struct {
	Rows  int64 `msgpack:"rows" json:"rows"`
	Bytes int64 `msgpack:"bytes" json:"bytes"`
}

// QueueProgress is the last superstep of a queue.
type QueueProgress struct {
	Superstep int             `msgpack:"superstep" json:"superstep"`
	Ended     bool            `msgpack:"ended" json:"ended"`
	Values    []ReportedValue `msgpack:"values" json:"values"`
	// Compute and Communicate are the seconds that subtask 0 has spent in stages of
	// either kind so far.
	Compute     float64 `msgpack:"compute" json:"compute"`
	Communicate float64 `msgpack:"communicate" json:"communicate"`
}

// ReportedValue is a number that a queue reported, such as an inertia.
type ReportedValue struct {
	Name  string  `msgpack:"name" json:"name"`
	Value float64 `msgpack:"value" json:"value"`
}
