package wire

import "time"

// The requests of clients to the job manager and their answers. All except UploadArtifact and
// Follow are answered at once.

// HasArtifactRequest asks for an executable by the SHA-256 of its bytes, in hex.
type HasArtifactRequest struct {
	Hash string `msgpack:"hash"`
	Size int64  `msgpack:"size"` // so that an executable that is too large is refused before its upload
}

// HasArtifactReply says whether the job manager has the executable.
type HasArtifactReply struct {
	Has bool `msgpack:"has"`
}

// Chunk is a piece of an executable. The first chunk of an upload has Hash and Size.
type Chunk struct {
	Hash string `msgpack:"hash,omitempty"`
	Size int64  `msgpack:"size,omitempty"`
	Data []byte `msgpack:"data"`
}

// UploadReply is the answer to a complete upload.
type UploadReply struct{}

// FetchRequest asks for the executable with the given hash.
type FetchRequest struct {
	Hash string `msgpack:"hash"`
}

// SubmitRequest asks for a job to run.
type SubmitRequest struct {
	Spec JobSpec `msgpack:"spec"`
}

// SubmitReply has the id of the submitted job.
type SubmitReply struct {
	Job JobID `msgpack:"job"`
}

// ListRequest asks for jobs, the newest first.
type ListRequest struct {
	States []JobState `msgpack:"states"` // empty means all states
	Limit  int        `msgpack:"limit"`  // 0 means all jobs
}

// ListReply has the jobs, without their progress.
type ListReply struct {
	Jobs []JobInfo `msgpack:"jobs"`
}

// ShowRequest asks for one job. Job is its id, or a prefix that no other job's id has.
type ShowRequest struct {
	Job JobID `msgpack:"job"`
}

// JobInfo describes a job for users.
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
	// Artifact is the SHA-256 of the executable that all workers run, and Build is its version.
	Artifact    string    `msgpack:"artifact" json:"artifact,omitempty"`
	Build       string    `msgpack:"build,omitempty" json:"build,omitempty"`
	Fingerprint string    `msgpack:"fingerprint" json:"fingerprint,omitempty"`
	Submitted   time.Time `msgpack:"submitted" json:"submitted"`
	Started     time.Time `msgpack:"started" json:"started,omitzero"` // when the job began to run on all workers
	Ended       time.Time `msgpack:"ended" json:"ended,omitzero"`
	Failure     *Failure  `msgpack:"failure" json:"failure,omitempty"`
	Workers     []Placed  `msgpack:"workers" json:"workers,omitempty"`
	// Ran says where the workers ran, if another worker now makes their results visible.
	Ran      []Placed  `msgpack:"ran,omitempty" json:"-"`
	Progress *Progress `msgpack:"progress" json:"progress,omitempty"`
	Plan     []byte    `msgpack:"plan" json:"-"` // plan.Plan in JSON; only in the answer to Show
	// Graph is the plan.Graph in JSON with the facts that a worker resolved because the client
	// could not. It is set together with Plan. It is empty if the client sent the graph.
	Graph    []byte   `msgpack:"graph,omitempty" json:"-"`
	Outcomes [][]byte `msgpack:"outcomes" json:"-"` // of a finished job; only in the answer to Show
}

// Placed says on which task manager and slots a worker of a job runs.
type Placed struct {
	TaskManager string    `msgpack:"task_manager" json:"task_manager"`
	Slots       SlotRange `msgpack:"slots" json:"slots"`
	Address     string    `msgpack:"address" json:"address,omitempty"`
}

// CancelRequest cancels a job. If the job has ended, it has no effect.
type CancelRequest struct {
	Job    JobID  `msgpack:"job"`
	Reason string `msgpack:"reason"`
}

// CancelReply has the current state of the job.
type CancelReply struct {
	Job JobInfo `msgpack:"job"`
}

// FollowRequest asks for the events of a job, from event number From to its end.
type FollowRequest struct {
	Job  JobID  `msgpack:"job"`
	From uint64 `msgpack:"from"`
	// Attach says that the job is attached to this client.
	Attach bool `msgpack:"attach"`
}

// Event is an event of a job. Number counts, from 1, the events that the job manager stores. A
// progress event is not stored, and has the number of the event before it. Exactly one of
// State, Progress, Collected and Output is set. The last event of a job has a State for which
// Ended is true.
type Event struct {
	Number    uint64     `msgpack:"number"`
	Time      time.Time  `msgpack:"time"`
	State     *JobInfo   `msgpack:"state,omitempty"` // with the plan as soon as it is known, and with the outcomes in the last event
	Progress  *Progress  `msgpack:"progress,omitempty"`
	Collected *Collected `msgpack:"collected,omitempty"`
	Output    *Output    `msgpack:"output,omitempty"`
}

// ResultsRequest asks for the list of results of a job that has finished.
type ResultsRequest struct {
	Job JobID `msgpack:"job"`
}

// ResultsReply has the results in the order of the job's plan, with printed text last.
type ResultsReply struct {
	Job     JobID        `msgpack:"job"`
	Results []ResultInfo `msgpack:"results"`
}

// ResultInfo is one result of a job.
type ResultInfo struct {
	Name string `msgpack:"name" json:"name"`
	Kind string `msgpack:"kind" json:"kind"` // ResultRows or ResultText
	// Rows is the number of rows, or the number of lines if the result is text.
	Rows int64 `msgpack:"rows" json:"rows"`
}

// Kinds of results.
const (
	ResultRows = "rows" // rows of a Collect
	ResultText = "text" // text that operators printed
)

// ResultRequest asks for one result of a job that has finished.
type ResultRequest struct {
	Job  JobID  `msgpack:"job"`
	Name string `msgpack:"name"`
}

// ResultPiece is a piece of a result. Pieces are sent in the order of the rows. If Kind is
// ResultRows, the first piece has no rows, only the columns.
type ResultPiece struct {
	Kind string `msgpack:"kind"`
	// Rows is an Arrow IPC stream with any number of batches.
	Rows []byte `msgpack:"rows,omitempty"`
	Text []byte `msgpack:"text,omitempty"`
}

// LogsRequest asks for the logs of a worker of a job. Worker -1 means all workers.
type LogsRequest struct {
	Job    JobID `msgpack:"job"`
	Worker int   `msgpack:"worker"`
	Follow bool  `msgpack:"follow"` // also send lines that are written later, until the job ends
}

// LogChunk has whole lines of the log of one worker.
type LogChunk struct {
	Worker      int    `msgpack:"worker"`
	TaskManager string `msgpack:"task_manager"`
	Text        []byte `msgpack:"text"`
}

// TaskManagersRequest asks for the task managers.
type TaskManagersRequest struct{}

// TaskManagersReply has the task managers, sorted by name.
type TaskManagersReply struct {
	TaskManagers []TaskManagerInfo `msgpack:"task_managers"`
	// Ailing is the reason why the job manager takes no jobs, such as a full disk, or "".
	Ailing string `msgpack:"ailing,omitempty"`
}

// TaskManagerInfo describes a task manager for users.
type TaskManagerInfo struct {
	ID       string   `msgpack:"id" json:"id"`
	Name     string   `msgpack:"name" json:"name"`
	Host     string   `msgpack:"host" json:"host"`
	PID      int      `msgpack:"pid" json:"pid"`
	State    string   `msgpack:"state" json:"state"` // name of its state in the core of the job manager
	Slots    int      `msgpack:"slots" json:"slots"`
	Free     int      `msgpack:"free" json:"free"`
	Memory   int64    `msgpack:"memory" json:"memory"`
	Platform Platform `msgpack:"platform" json:"platform"`
	Build    string   `msgpack:"build" json:"build"`
	// Executable is the SHA-256 of the task manager's own program.
	Executable string `msgpack:"executable" json:"executable"`
	// Ailing is the reason why it takes no new work, such as a full disk, or "" if it takes
	// work.
	Ailing   string        `msgpack:"ailing,omitempty" json:"ailing,omitempty"`
	HeardAgo time.Duration `msgpack:"heard_ago" json:"heard_ago"`
	Workers  []WorkerRef   `msgpack:"workers" json:"workers,omitempty"`
	Since    time.Time     `msgpack:"since" json:"since"`
}

// OverviewRequest asks for a summary of the cluster.
type OverviewRequest struct {
	Version int `msgpack:"version"` // protocol version of the client
}

// Overview is a summary of the cluster.
type Overview struct {
	Version      int            `msgpack:"version" json:"version"`
	Build        string         `msgpack:"build" json:"build"`
	Cluster      string         `msgpack:"cluster" json:"cluster"`
	Started      time.Time      `msgpack:"started" json:"started"`
	TaskManagers int            `msgpack:"task_managers" json:"task_managers"`
	Slots        int            `msgpack:"slots" json:"slots"`
	Free         int            `msgpack:"free" json:"free"`
	Jobs         map[string]int `msgpack:"jobs" json:"jobs"`           // number of jobs by state
	Platforms    []Platform     `msgpack:"platforms" json:"platforms"` // platforms of the task managers
	// Uploads says whether artifacts may be uploaded. If not, only built-in jobs can run.
	Uploads     bool  `msgpack:"uploads" json:"uploads"`
	MaxArtifact int64 `msgpack:"max_artifact" json:"max_artifact"` // in bytes
	// Ailing is the reason why the job manager takes no jobs, such as a full disk, or "".
	Ailing string `msgpack:"ailing,omitempty" json:"ailing,omitempty"`
	// DiskFree is the number of bytes that may still be written to the disk of the job
	// manager's work directory, -1 if that is not known.
	DiskFree int64 `msgpack:"disk_free" json:"disk_free"`
}
