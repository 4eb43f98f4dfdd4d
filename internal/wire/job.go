package wire

import (
	"cmp"
	"fmt"
	"strings"
	"time"
)

// Version is the version of the protocol. Sides with different versions refuse each other, and
// the side with the lower version must be upgraded.
const Version = 5

// JobID is the permanent identifier of a job, such as "20260102-150405-iris-kmeans-7f3a".
type JobID string

// Platform is the platform of an executable, as GOOS and GOARCH: "linux", "amd64".
type Platform struct {
	OS   string `msgpack:"os" json:"os"`
	Arch string `msgpack:"arch" json:"arch"`
}

// String returns the platform, such as "linux/amd64".
func (p Platform) String() string { return p.OS + "/" + p.Arch }

// PlatformNames returns platforms as text, separated by commas.
func PlatformNames(platforms []Platform) string {
	names := make([]string, len(platforms))
	for i, p := range platforms {
		names[i] = p.String()
	}
	return strings.Join(names, ", ")
}

// JobSpec has everything that a client submits, except the executable.
type JobSpec struct {
	Name string `msgpack:"name" json:"name"` // name that was given to engine.Define
	// Args has the job's arguments in msgpack. Only the job's program decodes them.
	Args []byte `msgpack:"args"`
	// Graph is the plan.Graph in JSON, including its facts. It is empty if the client could not
	// read the inputs from which the facts are derived. In that case a worker resolves the
	// graph before the job is scheduled.
	Graph []byte `msgpack:"graph"`
	// Parallelism is the number of subtasks of each vertex. MinParallelism is less if the job is
	// elastic: it then runs with at least MinParallelism and at most Parallelism subtasks. 0 means
	// Parallelism. In a Deployment, Parallelism is that of the attempt.
	Parallelism    int        `msgpack:"parallelism"`
	MinParallelism int        `msgpack:"min_parallelism,omitempty"`
	Shards         int        `msgpack:"shards"`
	Seed           uint64     `msgpack:"seed"`
	Run            RunOptions `msgpack:"run"`

	// Dir is the client's working directory, an absolute path. Workers make it their working
	// directory, so that relative paths in the job refer to the same files as at the client. If
	// it is "", workers keep the working directory in which their task manager starts them.
	Dir string `msgpack:"dir,omitempty"`

	// Artifact is the SHA-256, in hex, of the executable of all workers of the job. If the
	// client has no executable, Artifact is "", and the job manager chooses the executable.
	Artifact string   `msgpack:"artifact"`
	Platform Platform `msgpack:"platform"` // platform of the executable
	Build    string   `msgpack:"build"`    // version of the executable, for users
	// Resident is set only by the job manager. It means that task managers cannot fetch the
	// executable, so that only task managers that themselves run this executable get workers of
	// the job.
	Resident bool `msgpack:"resident,omitempty"`

	// Attached says that the job is cancelled when its client disconnects.
	Attached bool `msgpack:"attached"`
	// Priority is from MinPriority to MaxPriority; a job of a higher one gets slots first.
	Priority int `msgpack:"priority,omitempty"`
	// WaitTimeout bounds the wait for slots; 0 means no limit.
	WaitTimeout time.Duration `msgpack:"wait_timeout"`
	// Restart says what happens if a worker is lost; zero means the defaults.
	Restart Restart `msgpack:"restart"`
	Version int     `msgpack:"version"` // protocol version of the client
}

// Bounds of JobSpec.Priority.
const (
	MinPriority = -5
	MaxPriority = 5
)

// CheckPriority returns an error if a job cannot have the priority.
func CheckPriority(p int) error {
	if p < MinPriority || p > MaxPriority {
		return fmt.Errorf("--priority is %d: want %d to %d, where higher ones get slots first", p, MinPriority, MaxPriority)
	}
	return nil
}

// Allowed returns with how many subtasks the job may run, as its client has submitted it.
func (s *JobSpec) Allowed() Parallelism {
	return Parallelism{Min: cmp.Or(s.MinParallelism, s.Parallelism), Max: s.Parallelism}
}

// RunOptions are the options of a run that workers need. They do not affect results.
type RunOptions struct {
	BatchRows int `msgpack:"batch_rows"` // 0 means the default
	// Memory is the budget of exchanges per slot in bytes; 0 means the slot's share of the task
	// manager's memory.
	Memory          int64  `msgpack:"memory"`
	IfExists        string `msgpack:"if_exists"` // "fail" or "replace"
	CheckBroadcasts bool   `msgpack:"check_broadcasts"`
	CheckState      bool   `msgpack:"check_state,omitempty"`
	LogLevel        string `msgpack:"log_level"`
	// Copies is the number of other workers in whose memory each worker keeps copies of the states of
	// queues: 0 means DefaultCopies, and NoCopies none.
	Copies int `msgpack:"copies,omitempty"`
	// RequireCheckpoints makes it an error if a queue cannot continue from a saved state.
	RequireCheckpoints bool `msgpack:"require_checkpoints,omitempty"`
	// Checkpoints is nil if the states of the job's queues are not saved.
	Checkpoints *Checkpoints `msgpack:"checkpoints,omitempty"`
}

// Values of RunOptions.Copies.
const (
	DefaultCopies = 1
	NoCopies      = -1
	MaxCopies     = 3
)

// NumberOfCopies returns the number of copies.
func (o *RunOptions) NumberOfCopies() int {
	switch {
	case o.Copies == 0:
		return DefaultCopies
	case o.Copies < 0:
		return 0
	}
	return min(o.Copies, MaxCopies)
}

// JobState is the state of a job. The core of the job manager defines its transitions.
type JobState int

const (
	// JobResolving means that a worker resolves the facts that the client could not resolve.
	JobResolving JobState = iota
	// JobWaiting means that the job waits for slots, or for jobs before it.
	JobWaiting
	// JobDeploying means that the workers are being started and report their addresses.
	JobDeploying
	// JobRunning means that the job runs on all workers.
	JobRunning
	// JobCommitting means that all workers have finished, and that one worker makes the results
	// visible.
	JobCommitting
	// JobFailing means that the job has failed, and its workers are being stopped.
	JobFailing
	// JobCancelling means that the job was cancelled, and its workers are being stopped.
	JobCancelling
	// JobFinished, JobFailed and JobCancelled are final.
	JobFinished
	JobFailed
	JobCancelled
	// JobRestarting means that an attempt of the job was lost, and that the job waits for the end
	// of its workers and for the time of its next attempt. It is not final. It comes last so that
	// the numbers of the other states in histories keep their meaning.
	JobRestarting
)

var jobStates = [...]string{"resolving", "waiting", "deploying", "running", "committing", "failing", "cancelling", "finished", "failed", "cancelled", "restarting"}

// JobStates returns all states.
func JobStates() []JobState {
	all := make([]JobState, len(jobStates))
	for i := range all {
		all[i] = JobState(i)
	}
	return all
}

// String returns the state in lower case.
func (s JobState) String() string {
	if s < 0 || int(s) >= len(jobStates) {
		return fmt.Sprintf("JobState(%d)", int(s))
	}
	return jobStates[s]
}

// ParseJobState returns the state for which String returns text.
func ParseJobState(text string) (JobState, error) {
	for i, name := range jobStates {
		if name == text {
			return JobState(i), nil
		}
	}
	return 0, fmt.Errorf("unknown job state %q", text)
}

// Ended reports whether the state is final.
func (s JobState) Ended() bool { return s >= JobFinished && s <= JobCancelled }

// Verb returns what became of a job that ended and did not finish, such as "failed", for
// messages.
func (s JobState) Verb() string {
	if s == JobCancelled {
		return "was cancelled"
	}
	return "failed"
}

// FailureKind is the kind of the cause of a failure.
type FailureKind int

const (
	// UserFailure is an error, panic or exit of user code, or an error in the data that it
	// reads.
	UserFailure FailureKind = iota
	// LostFailure is the loss of a process or machine that was killed, stopped or disconnected
	// from the network.
	LostFailure
	// PeerFailure means that a worker lost the connection to another worker. This is usually a
	// consequence of another failure, which becomes the job's failure if it is reported.
	PeerFailure
	// MisuseFailure means that the job cannot run: the fingerprints of its workers differ, its
	// name is unknown, its arguments cannot be decoded, or its executable does not start.
	MisuseFailure
	// ClusterFailure is a failure of the cluster itself, such as a full disk of the job
	// manager.
	ClusterFailure
	// UnheardFailure means that a task manager killed its workers because it received no
	// messages of the job manager. It is never the kind of a job's failure: the job manager
	// knows whether it itself ran at that time, and replaces the kind by ClusterFailure or
	// LostFailure.
	UnheardFailure
)

// Failure is the reason why a job failed, for users.
type Failure struct {
	Kind    FailureKind `msgpack:"kind" json:"kind"`
	Message string      `msgpack:"message" json:"message"` // names the operator, line, subtask and shard, if these are known
	// Worker is the number of the worker that failed, or -1 if the failure is not that of a
	// worker. TaskManager is the name of the worker's task manager.
	Worker      int      `msgpack:"worker" json:"worker"`
	TaskManager string   `msgpack:"task_manager" json:"task_manager"`
	ExitCode    int      `msgpack:"exit_code" json:"exit_code"`   // exit code of the process; -1 if a signal ended it or it still runs
	Signal      string   `msgpack:"signal" json:"signal"`         // signal that ended the process, such as "killed"; "" if there was none
	LastLines   []string `msgpack:"last_lines" json:"last_lines"` // last lines of the process's output
	// Outputs says which of the job's outputs are visible after a failed commit. It is "" if
	// that is unknown or if there was no commit.
	Outputs string `msgpack:"outputs" json:"outputs,omitempty"`
	// Retry says that another attempt may succeed although nothing was lost, because a store or the network failed.
	Retry bool `msgpack:"retry,omitempty" json:"-"`
}

// Error returns the message followed by the worker and its task manager. If the message has
// several lines, such as the differences between two graphs, the worker and its task manager
// follow at the end of the last line.
func (f *Failure) Error() string {
	message := strings.TrimRight(f.Message, "\n")
	if f.Worker < 0 || f.TaskManager == "" {
		return message
	}
	return fmt.Sprintf("%s (worker %d on task manager %s)", message, f.Worker, f.TaskManager)
}

// SlotRange is the range of the slots of one worker. It is also the range of the indices of the
// subtasks that the worker runs.
type SlotRange struct {
	Lo int `msgpack:"lo" json:"lo"`
	Hi int `msgpack:"hi" json:"hi"` // index after the last slot
}

// WorkerRef identifies one worker process of a job.
type WorkerRef struct {
	Job     JobID `msgpack:"job" json:"job"`
	Attempt int   `msgpack:"attempt" json:"attempt"` // number of the attempt, from 1; messages of earlier attempts are ignored
	Worker  int   `msgpack:"worker" json:"worker"`   // number of the worker, from 0
}

// String returns the reference as "job/attempt/worker".
func (w WorkerRef) String() string { return fmt.Sprintf("%s/%d/%d", w.Job, w.Attempt, w.Worker) }

// Progress is the progress of one worker of a job, or the sum over all workers.
type Progress struct {
	Vertices []VertexProgress `msgpack:"vertices" json:"vertices"` // indexed by vertex of the plan
	Edges    []EdgeProgress   `msgpack:"edges" json:"edges"`       // indexed by edge of the plan
	Queues   []QueueProgress  `msgpack:"queues" json:"queues"`     // indexed by queue of the plan; set only by the worker that runs subtask 0
	// Opened says that the worker's subtasks of a queue have read their rows in this attempt. Resumed is
	// the number of the first superstep that has ended in this attempt, of any queue, as the worker
	// with subtask 0 knows; it is 0 before. A sum over workers has neither.
	Opened  bool `msgpack:"opened,omitempty" json:"-"`
	Resumed int  `msgpack:"resumed,omitempty" json:"-"`
	// Uncopied are queues whose states could not be copied in this attempt, so that another one begins them
	// at superstep 1. A sum has the first of each queue.
	Uncopied []Uncopied `msgpack:"uncopied,omitempty" json:"uncopied,omitempty"`
}

// Uncopied says why the state of a queue could not be copied.
type Uncopied struct {
	Queue string `msgpack:"queue" json:"queue"`
	Why   string `msgpack:"why" json:"why"`
}

// String returns a sentence for the user.
func (u Uncopied) String() string {
	return fmt.Sprintf("the state of queue %q is not copied, so another attempt would begin it at superstep 1: %s", u.Queue, u.Why)
}

// VertexProgress is the progress of a vertex: the sums over its subtasks.
type VertexProgress struct {
	Rows       int64 `msgpack:"rows" json:"rows"`
	ShardsDone int   `msgpack:"shards_done" json:"shards_done"`
}

// EdgeProgress has the number of rows that were sent over an exchange, and the number of bytes
// that these rows take in memory. A row of a broadcast is counted once for each worker that
// gets it.
type EdgeProgress struct {
	Rows  int64 `msgpack:"rows" json:"rows"`
	Bytes int64 `msgpack:"bytes" json:"bytes"`
}

// QueueProgress describes the last superstep of a queue.
type QueueProgress struct {
	Superstep int             `msgpack:"superstep" json:"superstep"`
	Ended     bool            `msgpack:"ended" json:"ended"`
	Values    []ReportedValue `msgpack:"values" json:"values"`
	// Compute and Communicate are the seconds that subtask 0 has spent so far in computing
	// stages and in communicating stages.
	Compute     float64 `msgpack:"compute" json:"compute"`
	Communicate float64 `msgpack:"communicate" json:"communicate"`
}

// ReportedValue is a number that a queue has reported, such as an inertia.
type ReportedValue struct {
	Name  string  `msgpack:"name" json:"name"`
	Value float64 `msgpack:"value" json:"value"`
}
