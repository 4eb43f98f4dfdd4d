package wire

import "time"

// This file has the requests of clients to the job manager, and the answers. The job manager
// answers all requests at once, except UploadArtifact and Follow.

// HasArtifactRequest asks whether the job manager has an executable. Hash is the SHA-256 of its
// bytes, in hex.
type HasArtifactRequest struct {
	Hash string `msgpack:"hash"`
	Size int64  `msgpack:"size"` // size in bytes, so that an executable that is too large is refused before its upload
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

// FetchRequest requests the executable with the given hash.
type FetchRequest struct {
	Hash string `msgpack:"hash"`
}

// SubmitRequest submits a job.
type SubmitRequest struct {
	Spec JobSpec `msgpack:"spec"`
	// Key, if it is not empty, identifies the submission. A job manager that has a job with the
	// same key answers with that job, so that a client whose answer was lost can send the request
	// again.
	Key string `msgpack:"key,omitempty"`
}

// SubmitReply has the id of the submitted job.
type SubmitReply struct {
	Job JobID `msgpack:"job"`
}

// ListRequest requests a list of jobs, the newest first.
type ListRequest struct {
	States []JobState `msgpack:"states"` // empty means all states
	Limit  int        `msgpack:"limit"`  // 0 means all jobs
}

// ListReply has the jobs, without their progress.
type ListReply struct {
	Jobs []JobInfo `msgpack:"jobs"`
}

// ShowRequest requests one job. Job is the job's id, or a prefix of it with which no other
// job's id begins.
type ShowRequest struct {
	Job JobID `msgpack:"job"`
}

// JobInfo describes a job for users.
type JobInfo struct {
	ID    JobID    `msgpack:"id" json:"id"`
	Name  string   `msgpack:"name" json:"name"`
	State JobState `msgpack:"state" json:"-"`
	// Detail says for what the job waits, or why it ended.
	Detail string `msgpack:"detail" json:"detail,omitempty"`
	// Parallelism is that of the current attempt or, before the first, the largest that is allowed.
	Parallelism int    `msgpack:"parallelism" json:"parallelism"`
	Slots       int    `msgpack:"slots" json:"slots"`
	Shards      int    `msgpack:"shards" json:"shards"`
	Seed        uint64 `msgpack:"seed" json:"seed"`
	// Allowed says with how many subtasks the job may run. It is zero in records of job managers
	// that knew no elastic jobs.
	Allowed Parallelism `msgpack:"allowed,omitempty" json:"-"`
	Attempt int         `msgpack:"attempt" json:"attempt"`
	// Restarts is the number of times that the job was restarted because an attempt was lost.
	// Lost has the last of these attempts, oldest first.
	Restarts int           `msgpack:"restarts,omitempty" json:"restarts,omitempty"`
	Lost     []LostAttempt `msgpack:"lost,omitempty" json:"lost,omitempty"`
	// Saves says that an attempt has begun to save its states, so that later ones continue from them.
	Saves bool `msgpack:"saves,omitempty" json:"-"`
	// Origin says from which checkpoint the attempt continues. It is nil if the job has no
	// checkpoints, and before worker 0 has chosen one.
	Origin *Origin `msgpack:"origin,omitempty" json:"-"`
	// Checkpoints is nil if the job has no checkpoints, and in lists and events.
	Checkpoints *JobCheckpoints `msgpack:"checkpoints,omitempty" json:"checkpoints,omitempty"`
	// Artifact is the SHA-256 of the executable that all workers run, and Build is its version.
	Artifact    string    `msgpack:"artifact" json:"artifact,omitempty"`
	Build       string    `msgpack:"build,omitempty" json:"build,omitempty"`
	Fingerprint string    `msgpack:"fingerprint" json:"fingerprint,omitempty"`
	Priority    int       `msgpack:"priority,omitempty" json:"priority,omitempty"`
	Submitted   time.Time `msgpack:"submitted" json:"submitted"`
	Key         string    `msgpack:"key,omitempty" json:"-"`          // that of the SubmitRequest
	Started     time.Time `msgpack:"started" json:"started,omitzero"` // time at which the job began to run on all workers
	Ended       time.Time `msgpack:"ended" json:"ended,omitzero"`
	Failure     *Failure  `msgpack:"failure" json:"failure,omitempty"`
	Workers     []Placed  `msgpack:"workers" json:"workers,omitempty"`
	// Ran is set if another worker finishes the commit: it says where the workers that computed
	// the results ran.
	Ran      []Placed  `msgpack:"ran,omitempty" json:"-"`
	Progress *Progress `msgpack:"progress" json:"progress,omitempty"`
	Plan     []byte    `msgpack:"plan" json:"-"` // plan.Plan in JSON; only in the answer to Show and in the states of Follow
	// Graph is the plan.Graph in JSON, with the facts that a worker resolved because the client
	// could not resolve them. It is set together with Plan. It is empty if the client sent the
	// graph.
	Graph    []byte   `msgpack:"graph,omitempty" json:"-"`
	Outcomes [][]byte `msgpack:"outcomes" json:"-"` // outcomes of the workers of a finished job; only in the answer to Show and in the last event of Follow
}

// Resizable reports whether the job may run with other numbers of subtasks than that of its current
// attempt.
func (j *JobInfo) Resizable() bool {
	return j.Allowed.Max > 0 && j.Allowed != Parallelism{j.Parallelism, j.Parallelism}
}

// MaxLost is the largest number of attempts in JobInfo.Lost.
const MaxLost = 20

// LostAttempt describes an attempt of a job that was lost, or ended so that the job goes on with other
// slots, and after which the job was restarted.
type LostAttempt struct {
	Number int       `msgpack:"number" json:"number"`
	Began  time.Time `msgpack:"began" json:"began"`                // time at which its workers were deployed
	Ran    time.Time `msgpack:"ran,omitempty" json:"ran,omitzero"` // time at which it began to run on all workers; zero if it did not
	Ended  time.Time `msgpack:"ended" json:"ended"`                // time at which the job manager learned of the cause
	Cause  string    `msgpack:"cause" json:"cause"`                // first cause, with the worker and its task manager
	// From says from which checkpoint it continued; "" if the job has none.
	From string `msgpack:"from,omitempty" json:"from,omitempty"`
	// Recovery has the phases of the recovery from its loss.
	Recovery Recovery `msgpack:"recovery" json:"recovery,omitzero"`
}

// Placed says on which task manager and slots a worker of a job runs. A worker without slots only sends the
// others what its process has kept of the former attempt.
type Placed struct {
	TaskManager string    `msgpack:"task_manager" json:"task_manager"`
	Slots       SlotRange `msgpack:"slots" json:"slots"`
	Address     string    `msgpack:"address" json:"address,omitempty"`
	// Left says that the worker, which had no slots, has sent what its process had kept, and has left.
	Left bool `msgpack:"left,omitempty" json:"left,omitempty"`
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

// FollowRequest requests the events of a job, from the event with number From to the end of the
// job.
type FollowRequest struct {
	Job  JobID  `msgpack:"job"`
	From uint64 `msgpack:"from"`
	// Attach says that the job is attached to this client: it is cancelled if the client
	// disconnects.
	Attach bool `msgpack:"attach"`
}

// Event is an event of a job. The events that the job manager stores are numbered from 1. A
// progress event is not stored, and its Number is that of the event before it. Exactly one of
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

// ResultsRequest requests the list of the results of a job that has finished.
type ResultsRequest struct {
	Job JobID `msgpack:"job"`
}

// ResultsReply has the results in the order of the job's plan, with printed text last.
type ResultsReply struct {
	Job     JobID        `msgpack:"job"`
	Results []ResultInfo `msgpack:"results"`
}

// ResultInfo describes one result of a job.
type ResultInfo struct {
	Name string `msgpack:"name" json:"name"`
	Kind string `msgpack:"kind" json:"kind"` // ResultRows or ResultText
	// Rows is the number of rows, or the number of lines if the result is text.
	Rows int64 `msgpack:"rows" json:"rows"`
}

// These are the kinds of results.
const (
	ResultRows = "rows" // rows of a Collect
	ResultText = "text" // text that operators printed
)

// ResultRequest requests one result of a job that has finished.
type ResultRequest struct {
	Job  JobID  `msgpack:"job"`
	Name string `msgpack:"name"`
}

// ResultPiece is a piece of a result. Pieces are sent in the order of the rows. If the result's
// Kind is ResultRows, the first piece has no rows but only the columns.
type ResultPiece struct {
	Kind string `msgpack:"kind"`
	// Rows is an Arrow IPC stream with any number of batches.
	Rows []byte `msgpack:"rows,omitempty"`
	Text []byte `msgpack:"text,omitempty"`
}

// LogsRequest requests the log of a worker of a job. Worker -1 means the logs of all workers.
type LogsRequest struct {
	Job    JobID `msgpack:"job"`
	Worker int   `msgpack:"worker"`
	Follow bool  `msgpack:"follow"` // the job manager also sends lines that are written later, until the job ends
}

// LogChunk has whole lines of the log of one worker.
type LogChunk struct {
	Worker      int    `msgpack:"worker"`
	TaskManager string `msgpack:"task_manager"`
	Text        []byte `msgpack:"text"`
}

// TaskManagersRequest requests the list of task managers.
type TaskManagersRequest struct{}

// TaskManagerAbsent is the state in a TaskManagerInfo that has only a name and a cordon: a task
// manager of this name is cordoned, and none is known since the job manager started.
const TaskManagerAbsent = "absent"

// TaskManagersReply has the task managers, sorted by name.
type TaskManagersReply struct {
	TaskManagers []TaskManagerInfo `msgpack:"task_managers"`
	// Ailing is the reason why the job manager takes no jobs, such as a full disk, or "".
	Ailing string `msgpack:"ailing,omitempty"`
}

// TaskManagerInfo describes a task manager for users.
type TaskManagerInfo struct {
	ID   string `msgpack:"id" json:"id"`
	Name string `msgpack:"name" json:"name"`
	Host string `msgpack:"host" json:"host"`
	PID  int    `msgpack:"pid" json:"pid"`
	// State is the name of the task manager's state in the core of the job manager, or
	// TaskManagerAbsent.
	State    string   `msgpack:"state" json:"state"`
	Slots    int      `msgpack:"slots" json:"slots"`
	Free     int      `msgpack:"free" json:"free"`
	Memory   int64    `msgpack:"memory" json:"memory"`
	Platform Platform `msgpack:"platform" json:"platform"`
	Build    string   `msgpack:"build" json:"build"`
	// Executable is the SHA-256 of the task manager's own program.
	Executable string `msgpack:"executable" json:"executable"`
	// Ailing is the reason why the task manager takes no new work, such as a full disk, or ""
	// if it takes new work.
	Ailing string `msgpack:"ailing,omitempty" json:"ailing,omitempty"`
	// Cordon is set if a client has cordoned the task manager. Avoided is set while other task
	// managers are preferred to it.
	Cordon   *Cordon       `msgpack:"cordon,omitempty" json:"cordon,omitempty"`
	Avoided  *Avoidance    `msgpack:"avoided,omitempty" json:"avoided,omitempty"`
	HeardAgo time.Duration `msgpack:"heard_ago" json:"heard_ago"`
	Workers  []WorkerRef   `msgpack:"workers" json:"workers,omitempty"`
	Since    time.Time     `msgpack:"since" json:"since"`
}

// OverviewRequest requests a summary of the cluster.
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
	Cordoned     int            `msgpack:"cordoned,omitempty" json:"cordoned,omitempty"` // number of slots of cordoned task managers
	Jobs         map[string]int `msgpack:"jobs" json:"jobs"`                             // name of a state -> number of jobs in this state
	Platforms    []Platform     `msgpack:"platforms" json:"platforms"`                   // platforms of the task managers
	// Uploads says whether executables may be uploaded. If they may not, only built-in jobs can
	// run.
	Uploads     bool  `msgpack:"uploads" json:"uploads"`
	MaxArtifact int64 `msgpack:"max_artifact" json:"max_artifact"` // maximum size of an executable in bytes
	// Ailing is the reason why the job manager takes no jobs, such as a full disk, or "".
	Ailing string `msgpack:"ailing,omitempty" json:"ailing,omitempty"`
	// DiskFree is the number of bytes that can still be written to the disk of the job
	// manager's work directory, or -1 if that is not known.
	DiskFree int64 `msgpack:"disk_free" json:"disk_free"`
}
