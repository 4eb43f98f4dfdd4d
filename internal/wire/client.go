package wire

import "time"

// The requests of clients to the job manager. All but an upload and a Follow are answered at
// once.

// HasArtifactRequest asks for an executable by the SHA-256 of its bytes, in hex.
type HasArtifactRequest struct {
	Hash string `msgpack:"hash"`
	Size int64  `msgpack:"size"` // so that one that is too large is refused early
}

// HasArtifactReply says whether the job manager has it.
type HasArtifactReply struct {
	Has bool `msgpack:"has"`
}

// Chunk is a piece of an executable. The first one of an upload has Hash and Size.
type Chunk struct {
	Hash string `msgpack:"hash,omitempty"`
	Size int64  `msgpack:"size,omitempty"`
	Data []byte `msgpack:"data"`
}

// UploadReply ends an upload.
type UploadReply struct{}

// FetchRequest asks for an executable.
type FetchRequest struct {
	Hash string `msgpack:"hash"`
}

// SubmitRequest asks for a job to run.
type SubmitRequest struct {
	Spec JobSpec `msgpack:"spec"`
}

// SubmitReply names the job.
type SubmitReply struct {
	Job JobID `msgpack:"job"`
}

// ListRequest asks for jobs, newest first.
type ListRequest struct {
	States []JobState `msgpack:"states"` // none: all
	Limit  int        `msgpack:"limit"`  // 0: all
}

// ListReply has the jobs without their progress.
type ListReply struct {
	Jobs []JobInfo `msgpack:"jobs"`
}

// ShowRequest asks for one job. Job may be a prefix that fits only one.
type ShowRequest struct {
	Job JobID `msgpack:"job"`
}

// JobInfo is a job as people see it.
type JobInfo struct {
	ID    JobID    `msgpack:"id" json:"id"`
	Name  string   `msgpack:"name" json:"name"`
	State JobState `msgpack:"state" json:"-"`
	// Detail says what a job waits for, or why it ended.
	Detail      string `msgpack:"detail" json:"detail,omitempty"`
	Parallelism int    `msgpack:"parallelism" json:"parallelism"`
	Slots       int    `msgpack:"slots" json:"slots"`
	Shards      int    `msgpack:"shards" json:"shards"`
	Seed        uint64 `msgpack:"seed" json:"seed"`
	Attempt     int    `msgpack:"attempt" json:"attempt"`
	// Artifact is the SHA-256 of the executable that all workers run, and Build its version.
	Artifact    string    `msgpack:"artifact" json:"artifact,omitempty"`
	Build       string    `msgpack:"build,omitempty" json:"build,omitempty"`
	Fingerprint string    `msgpack:"fingerprint" json:"fingerprint,omitempty"`
	Submitted   time.Time `msgpack:"submitted" json:"submitted"`
	Started     time.Time `msgpack:"started" json:"started,omitzero"` // when it ran on all workers
	Ended       time.Time `msgpack:"ended" json:"ended,omitzero"`
	Failure     *Failure  `msgpack:"failure" json:"failure,omitempty"`
	Workers     []Placed  `msgpack:"workers" json:"workers,omitempty"`
	// Ran says where the workers ran, if another worker makes their results visible.
	Ran      []Placed  `msgpack:"ran,omitempty" json:"-"`
	Progress *Progress `msgpack:"progress" json:"progress,omitempty"`
	Plan     []byte    `msgpack:"plan" json:"-"` // plan.Plan in JSON; of Show only
	// Graph is the plan.Graph in JSON with the facts that a worker resolved because the client
	// could not. It comes with the plan, and is empty if the client sent the graph.
	Graph    []byte   `msgpack:"graph,omitempty" json:"-"`
	Outcomes [][]byte `msgpack:"outcomes" json:"-"` // of a finished job, of Show only
}

// Placed says where a worker of a job runs.
type Placed struct {
	TaskManager string    `msgpack:"task_manager" json:"task_manager"`
	Slots       SlotRange `msgpack:"slots" json:"slots"`
	Address     string    `msgpack:"address" json:"address,omitempty"`
}

// CancelRequest cancels a job. Cancelling one that has ended does nothing.
type CancelRequest struct {
	Job    JobID  `msgpack:"job"`
	Reason string `msgpack:"reason"`
}

// CancelReply has the job as it stands.
type CancelReply struct {
	Job JobInfo `msgpack:"job"`
}

// FollowRequest asks for everything that happens to a job from event number From on,
// to its end.
type FollowRequest struct {
	Job  JobID  `msgpack:"job"`
	From uint64 `msgpack:"from"`
	// Attach says that this is the client to which the job is attached.
	Attach bool `msgpack:"attach"`
}

// Event is something that happened to a job. Number counts the events that are kept, from 1; a
// progress is not kept, and has the number of the event before. Exactly one of the other fields
// is set. The last event of a job has a State for which Ended is true.
type Event struct {
	Number    uint64     `msgpack:"number"`
	Time      time.Time  `msgpack:"time"`
	State     *JobInfo   `msgpack:"state,omitempty"` // with the plan once it is known, and with outcomes at the end
	Progress  *Progress  `msgpack:"progress,omitempty"`
	Collected *Collected `msgpack:"collected,omitempty"`
	Output    *Output    `msgpack:"output,omitempty"`
}

// ResultsRequest asks for the list of results of a job that has finished.
type ResultsRequest struct {
	Job JobID `msgpack:"job"`
}

// ResultsReply has the results in the order of the job's plan; printed text comes last.
type ResultsReply struct {
	Job     JobID        `msgpack:"job"`
	Results []ResultInfo `msgpack:"results"`
}

// ResultInfo is one result of a job.
type ResultInfo struct {
	Name string `msgpack:"name" json:"name"`
	Kind string `msgpack:"kind" json:"kind"` // ResultRows or ResultText
	// Rows is the number of rows, or of lines if the result is text.
	Rows int64 `msgpack:"rows" json:"rows"`
}

// Kinds of results.
const (
	ResultRows = "rows" // of a Collect
	ResultText = "text" // what operators printed
)

// ResultRequest asks for one result of a job that has finished.
type ResultRequest struct {
	Job  JobID  `msgpack:"job"`
	Name string `msgpack:"name"`
}

// ResultPiece is a piece of a result. The first piece of a result of rows has no rows, only the
// columns; the pieces come in the order of the rows.
type ResultPiece struct {
	Kind string `msgpack:"kind"`
	// Rows is an Arrow IPC stream of any number of batches.
	Rows []byte `msgpack:"rows,omitempty"`
	Text []byte `msgpack:"text,omitempty"`
}

// LogsRequest asks for what the workers of a job wrote. Worker -1 is all.
type LogsRequest struct {
	Job    JobID `msgpack:"job"`
	Worker int   `msgpack:"worker"`
	Follow bool  `msgpack:"follow"` // to the end of the job
}

// LogChunk is whole lines of one worker.
type LogChunk struct {
	Worker      int    `msgpack:"worker"`
	TaskManager string `msgpack:"task_manager"`
	Text        []byte `msgpack:"text"`
}

// TaskManagersRequest asks for the task managers.
type TaskManagersRequest struct{}

// TaskManagersReply has them by name.
type TaskManagersReply struct {
	TaskManagers []TaskManagerInfo `msgpack:"task_managers"`
	// Ailing is why the job manager takes no jobs, such as a full disk; "" while it does.
	Ailing string `msgpack:"ailing,omitempty"`
}

// TaskManagerInfo is a task manager as people see it.
type TaskManagerInfo struct {
	ID       string   `msgpack:"id" json:"id"`
	Name     string   `msgpack:"name" json:"name"`
	Host     string   `msgpack:"host" json:"host"`
	PID      int      `msgpack:"pid" json:"pid"`
	State    string   `msgpack:"state" json:"state"` // see the core's states of task managers
	Slots    int      `msgpack:"slots" json:"slots"`
	Free     int      `msgpack:"free" json:"free"`
	Memory   int64    `msgpack:"memory" json:"memory"`
	Platform Platform `msgpack:"platform" json:"platform"`
	Build    string   `msgpack:"build" json:"build"`
	// Executable is the SHA-256 of its own program.
	Executable string `msgpack:"executable" json:"executable"`
	// Ailing is why it takes no new work, such as a full disk; "" while it does.
	Ailing   string        `msgpack:"ailing,omitempty" json:"ailing,omitempty"`
	HeardAgo time.Duration `msgpack:"heard_ago" json:"heard_ago"`
	Workers  []WorkerRef   `msgpack:"workers" json:"workers,omitempty"`
	Since    time.Time     `msgpack:"since" json:"since"`
}

// OverviewRequest asks for the cluster at a glance.
type OverviewRequest struct {
	Version int `msgpack:"version"` // of the client's protocol
}

// Overview is the cluster at a glance.
type Overview struct {
	Version      int            `msgpack:"version" json:"version"`
	Build        string         `msgpack:"build" json:"build"`
	Cluster      string         `msgpack:"cluster" json:"cluster"`
	Started      time.Time      `msgpack:"started" json:"started"`
	TaskManagers int            `msgpack:"task_managers" json:"task_managers"`
	Slots        int            `msgpack:"slots" json:"slots"`
	Free         int            `msgpack:"free" json:"free"`
	Jobs         map[string]int `msgpack:"jobs" json:"jobs"`           // by state
	Platforms    []Platform     `msgpack:"platforms" json:"platforms"` // of the task managers
	// Uploads says whether artifacts may be uploaded; if not, built-in jobs only.
	Uploads     bool  `msgpack:"uploads" json:"uploads"`
	MaxArtifact int64 `msgpack:"max_artifact" json:"max_artifact"` // in bytes
	// Ailing is why the job manager takes no jobs, such as a full disk; "" while it does.
	Ailing string `msgpack:"ailing,omitempty" json:"ailing,omitempty"`
	// DiskFree is the number of bytes that may still be written to the disk of its work
	// directory, -1 where that is unknown.
	DiskFree int64 `msgpack:"disk_free" json:"disk_free"`
}
