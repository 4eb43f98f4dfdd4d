package rest

import (
	"encoding/json"
	"math"
	"time"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/wire"
)

// This file has the types of the JSON documents of the API. They are separate from the types of
// messages between programs of Superstep, so that the API does not change when these messages
// change. The tag doc describes a field in the OpenAPI document. Times have the format of RFC
// 3339; durations are in seconds.

// Error is the body of the answer to a request that failed.
type Error struct {
	Error string `json:"error" doc:"what was wrong"`
	Hint  string `json:"hint,omitempty" doc:"what to do about it"`
}

// Status is the answer of health checks that succeed.
type Status struct {
	Status string `json:"status" doc:"ok"`
}

// Overview is a summary of the cluster.
type Overview struct {
	Version      int            `json:"version" doc:"of the protocol between programs of Superstep"`
	Build        string         `json:"build" doc:"version of the job manager, for people"`
	Cluster      string         `json:"cluster"`
	Started      time.Time      `json:"started"`
	TaskManagers int            `json:"task_managers"`
	Slots        int            `json:"slots"`
	Free         int            `json:"free" doc:"slots that no job has and that new workers can get"`
	Cordoned     int            `json:"cordoned" doc:"slots of cordoned task managers"`
	Jobs         map[string]int `json:"jobs" doc:"number of jobs by state"`
	Platforms    []string       `json:"platforms" doc:"of the task managers, such as linux/amd64"`
	Uploads      bool           `json:"uploads" doc:"whether programs may be uploaded; if not, built-in jobs only"`
	MaxArtifact  int64          `json:"max_artifact" doc:"largest program, in bytes"`
	Ailing       string         `json:"ailing,omitempty" doc:"why the job manager takes no jobs, such as a full disk"`
	DiskFree     *int64         `json:"disk_free,omitempty" doc:"bytes that may still be written to the disk of the job manager, where that is known"`
}

// Job describes a job.
type Job struct {
	ID          string    `json:"id"`
	Name        string    `json:"name"`
	State       string    `json:"state" enum:"state"`
	Detail      string    `json:"detail,omitempty" doc:"what it waits for, or why it ended"`
	Parallelism int       `json:"parallelism" doc:"subtasks of each vertex in the current attempt"`
	Allowed     string    `json:"allowed,omitempty" doc:"with how many subtasks it may run, such as 2:8; absent if that is parallelism alone"`
	Slots       int       `json:"slots" doc:"that it needs; 0 while that is not known"`
	Shards      int       `json:"shards"`
	Seed        uint64    `json:"seed"`
	Attempt     int       `json:"attempt"`
	Restarts    int       `json:"restarts,omitempty" doc:"how often it began again because an attempt was lost"`
	Lost        []Attempt `json:"lost,omitempty" doc:"the last of the attempts that were lost, oldest first"`
	From        string    `json:"from,omitempty" doc:"checkpoint from which the attempt continues; absent without checkpoints"`
	Artifact    string    `json:"artifact,omitempty" doc:"SHA-256 of the executable that its workers run"`
	Build       string    `json:"build,omitempty" doc:"version of the executable, for people"`
	Fingerprint string    `json:"fingerprint,omitempty" doc:"of its graph"`
	Priority    int       `json:"priority,omitempty" doc:"from -5 to 5; absent if it is 0"`
	Submitted   time.Time `json:"submitted"`
	Started     time.Time `json:"started,omitzero" doc:"when it ran on all workers"`
	Ended       time.Time `json:"ended,omitzero"`
	Failure     *Failure  `json:"failure,omitempty"`
	Workers     []Placed  `json:"workers" doc:"where its workers run, by number"`
	Progress    *Progress `json:"progress,omitempty" doc:"of one job only, not of lists"`
}

// Attempt describes an attempt of a job that was lost.
type Attempt struct {
	Number   int       `json:"number"`
	Began    time.Time `json:"began" doc:"when its workers were deployed"`
	Ran      time.Time `json:"ran,omitzero" doc:"when it began to run on all workers; absent if it did not"`
	Ended    time.Time `json:"ended" doc:"when the cause was known"`
	Cause    string    `json:"cause" doc:"first cause"`
	From     string    `json:"from,omitempty" doc:"checkpoint from which it continued"`
	Recovery Recovery  `json:"recovery" doc:"from its loss to the first superstep of the next attempt"`
}

// Recovery has the times at which the phases of the recovery from a lost attempt ended.
type Recovery struct {
	Detected  time.Time `json:"detected,omitzero" doc:"when the loss was first reported; each later time is absent while its phase has not ended"`
	Agreed    time.Time `json:"agreed,omitzero" doc:"when no worker of the lost attempt ran any more"`
	Placed    time.Time `json:"placed,omitzero" doc:"when the workers of the next attempt were deployed"`
	Connected time.Time `json:"connected,omitzero" doc:"when all of them were ready and were told to start"`
	Moved     time.Time `json:"moved,omitzero" doc:"when all of them had read the rows of a queue, those that were made or sent again included"`
	Resumed   time.Time `json:"resumed,omitzero" doc:"when the first superstep of the next attempt had ended"`
	Superstep int       `json:"superstep,omitempty" doc:"number of that superstep"`
}

// Failure says why a job failed.
type Failure struct {
	Kind        string   `json:"kind" enum:"failure" doc:"who is to blame"`
	Message     string   `json:"message"`
	Worker      *int     `json:"worker,omitempty" doc:"number of the worker that failed, if one did"`
	TaskManager string   `json:"task_manager,omitempty" doc:"where it ran"`
	ExitCode    *int     `json:"exit_code,omitempty" doc:"of its process, if it exited"`
	Signal      string   `json:"signal,omitempty" doc:"that ended its process"`
	LastLines   []string `json:"last_lines,omitempty" doc:"of its output; not in lists"`
}

// Placed says where a worker of a job runs.
type Placed struct {
	TaskManager string `json:"task_manager"`
	Lo          int    `json:"lo" doc:"first slot of the job that it is"`
	Hi          int    `json:"hi" doc:"and the one after its last; equal to lo if the worker only gives what its process has kept"`
}

// Progress is the progress of a job.
type Progress struct {
	Vertices []Counts         `json:"vertices" doc:"by vertex of the plan"`
	Queues   []QueueSuperstep `json:"queues" doc:"by queue of the plan"`
	Uncopied []Uncopied       `json:"uncopied,omitempty" doc:"queues whose states could not be copied, so that another attempt would begin them at superstep 1"`
}

// Uncopied says why the state of a queue could not be copied.
type Uncopied struct {
	Queue string `json:"queue"`
	Why   string `json:"why"`
}

// Counts is the progress of a vertex: the sums over its subtasks.
type Counts struct {
	Rows       int64 `json:"rows" doc:"taken in"`
	ShardsDone int   `json:"shards_done"`
}

// QueueSuperstep describes the last superstep of a queue.
type QueueSuperstep struct {
	Superstep   int     `json:"superstep"`
	Ended       bool    `json:"ended"`
	Values      []Value `json:"values" doc:"that it reported last"`
	Compute     Number  `json:"compute_seconds" doc:"that subtask 0 has computed so far"`
	Communicate Number  `json:"communicate_seconds" doc:"that subtask 0 has communicated so far"`
}

// Value is a number that a queue reported, such as an inertia.
type Value struct {
	Name  string `json:"name"`
	Value Number `json:"value"`
}

// Vertex is a vertex of a job's plan, with its progress.
type Vertex struct {
	ID          int      `json:"id"`
	Name        string   `json:"name"`
	Operators   []string `json:"operators" doc:"that it runs one after the other"`
	Parallelism int      `json:"parallelism"`
	SlotGroup   string   `json:"slot_group"`
	Queue       string   `json:"queue,omitempty" doc:"whose stages it runs"`
	Rows        int64    `json:"rows" doc:"taken in so far"`
	ShardsDone  int      `json:"shards_done"`
	Shards      int      `json:"shards" doc:"that it has to do"`
}

// Queue is an iterative computation of a job, with its progress.
type Queue struct {
	Name          string  `json:"name"`
	Superstep     int     `json:"superstep" doc:"the last one; 0 before the first"`
	MaxSupersteps int     `json:"max_supersteps,omitempty" doc:"none where only the criterion ends the queue"`
	HasCriterion  bool    `json:"has_criterion"`
	Ended         bool    `json:"ended"`
	Values        []Value `json:"values" doc:"that it reported last"`
	Compute       Number  `json:"compute_seconds" doc:"that subtask 0 has computed so far"`
	Communicate   Number  `json:"communicate_seconds" doc:"that subtask 0 has communicated so far"`
}

// LogLines is one piece of the output of a worker.
type LogLines struct {
	Worker      int    `json:"worker"`
	TaskManager string `json:"task_manager"`
	Text        string `json:"text" doc:"whole lines; bytes that are no UTF-8 are replaced"`
}

// Result describes a result of a job.
type Result struct {
	Name string `json:"name"`
	Kind string `json:"kind" enum:"result" doc:"rows that the job collected, or text that its operators printed"`
	Rows int64  `json:"rows" doc:"of text, its lines"`
}

// TaskManager describes a task manager.
type TaskManager struct {
	ID         string      `json:"id"`
	Name       string      `json:"name"`
	Host       string      `json:"host"`
	PID        int         `json:"pid"`
	State      string      `json:"state" doc:"alive, silent, away, lost, left, or absent: known only by its cordon"`
	Slots      int         `json:"slots"`
	Free       int         `json:"free"`
	Memory     int64       `json:"memory" doc:"for workers, in bytes"`
	Platform   string      `json:"platform" doc:"such as linux/amd64"`
	Build      string      `json:"build" doc:"its version, for people"`
	Executable string      `json:"executable" doc:"SHA-256 of its own program"`
	Ailing     string      `json:"ailing,omitempty" doc:"why it takes no new work, such as a full disk; left out while it does"`
	Cordon     *Cordon     `json:"cordon,omitempty" doc:"why and since when it gets no new workers; left out while it gets them"`
	Avoided    *Avoidance  `json:"avoided,omitempty" doc:"until when other task managers come first, as workers died there again and again; left out while none do"`
	HeardAgo   float64     `json:"heard_seconds_ago"`
	Since      time.Time   `json:"since" doc:"when it registered"`
	Workers    []WorkerRef `json:"workers"`
}

// WorkerRef identifies a worker process.
type WorkerRef struct {
	Job     string `json:"job"`
	Attempt int    `json:"attempt"`
	Worker  int    `json:"worker"`
}

// Submitted is the answer to a submission that was accepted.
type Submitted struct {
	ID string `json:"id"`
}

// Number is a number that may be NaN or infinite. JSON cannot represent these values as
// numbers, so they are encoded as strings.
type Number float64

// MarshalJSON encodes a finite number as a JSON number, and other values as the strings "NaN",
// "Infinity" and "-Infinity".
func (n Number) MarshalJSON() ([]byte, error) {
	switch f := float64(n); {
	case math.IsNaN(f):
		return []byte(`"NaN"`), nil
	case math.IsInf(f, 1):
		return []byte(`"Infinity"`), nil
	case math.IsInf(f, -1):
		return []byte(`"-Infinity"`), nil
	default:
		return json.Marshal(f)
	}
}

// jobStates and failureKinds return the names of the states of jobs and of the kinds of
// failures, which are enumerations of the API.
func jobStates() (names []string) {
	for _, state := range wire.JobStates() {
		names = append(names, state.String())
	}
	return names
}

var failureKinds = []string{"user", "lost", "peer", "misuse", "cluster"}

func overviewOf(o *wire.Overview) Overview {
	out := Overview{
		Version: o.Version, Build: o.Build, Cluster: o.Cluster, Started: o.Started, TaskManagers: o.TaskManagers, Slots: o.Slots, Free: o.Free, Cordoned: o.Cordoned,
		Jobs: o.Jobs, Platforms: []string{}, Uploads: o.Uploads, MaxArtifact: o.MaxArtifact,
	}
	if out.Jobs == nil {
		out.Jobs = map[string]int{}
	}
	if out.Ailing = o.Ailing; o.DiskFree >= 0 {
		out.DiskFree = &o.DiskFree
	}
	for _, p := range o.Platforms {
		out.Platforms = append(out.Platforms, p.String())
	}
	return out
}

func jobOf(j *wire.JobInfo) Job {
	out := Job{
		ID: string(j.ID), Name: j.Name, State: j.State.String(), Detail: j.Detail, Parallelism: j.Parallelism, Slots: j.Slots, Shards: j.Shards,
		Seed: j.Seed, Priority: j.Priority, Attempt: j.Attempt, Restarts: j.Restarts, Artifact: j.Artifact, Build: j.Build, Fingerprint: j.Fingerprint, Submitted: j.Submitted, Started: j.Started, Ended: j.Ended,
		Failure: failureOf(j.Failure), Workers: make([]Placed, len(j.Workers)), Progress: progressOf(j.Progress),
	}
	if j.Resizable() {
		out.Allowed = j.Allowed.String()
	}
	if j.Origin != nil {
		out.From = j.Origin.String()
	}
	for _, a := range j.Lost {
		out.Lost = append(out.Lost, Attempt{Number: a.Number, Began: a.Began, Ran: a.Ran, Ended: a.Ended, Cause: a.Cause, From: a.From, Recovery: Recovery(a.Recovery)})
	}
	for i, w := range j.Workers {
		out.Workers[i] = Placed{TaskManager: w.TaskManager, Lo: w.Slots.Lo, Hi: w.Slots.Hi}
	}
	return out
}

func failureOf(f *wire.Failure) *Failure {
	if f == nil {
		return nil
	}
	out := &Failure{Kind: "cluster", Message: f.Message, TaskManager: f.TaskManager, Signal: f.Signal, LastLines: f.LastLines}
	if int(f.Kind) >= 0 && int(f.Kind) < len(failureKinds) {
		out.Kind = failureKinds[f.Kind]
	}
	if f.Worker >= 0 {
		out.Worker = &f.Worker
		if f.ExitCode >= 0 && f.Signal == "" {
			out.ExitCode = &f.ExitCode
		}
	}
	return out
}

func progressOf(p *wire.Progress) *Progress {
	if p == nil {
		return nil
	}
	out := &Progress{Vertices: make([]Counts, len(p.Vertices)), Queues: make([]QueueSuperstep, len(p.Queues))}
	for i, v := range p.Vertices {
		out.Vertices[i] = Counts{Rows: v.Rows, ShardsDone: v.ShardsDone}
	}
	for i, q := range p.Queues {
		out.Queues[i] = QueueSuperstep{Superstep: q.Superstep, Ended: q.Ended, Values: valuesOf(q.Values), Compute: Number(q.Compute), Communicate: Number(q.Communicate)}
	}
	for _, u := range p.Uncopied {
		out.Uncopied = append(out.Uncopied, Uncopied(u))
	}
	return out
}

func valuesOf(values []wire.ReportedValue) []Value {
	out := make([]Value, len(values))
	for i, v := range values {
		out[i] = Value{Name: v.Name, Value: Number(v.Value)}
	}
	return out
}

// verticesOf returns the vertices of a plan with their progress.
func verticesOf(p *plan.Plan, progress *wire.Progress) []Vertex {
	out := make([]Vertex, len(p.Vertices))
	for i := range p.Vertices {
		v := &p.Vertices[i]
		out[i] = Vertex{ID: int(v.ID), Name: v.Name, Operators: []string{}, Parallelism: v.Parallelism, SlotGroup: v.SlotGroup, Queue: v.Queue}
		for _, c := range v.Chain {
			n := &p.Nodes[c.Node]
			name := n.Op
			if n.Name != "" {
				name = n.Name
			}
			out[i].Operators = append(out[i].Operators, name)
		}
		for _, r := range v.Ranges {
			out[i].Shards += r.Len()
		}
		if progress != nil && i < len(progress.Vertices) {
			out[i].Rows, out[i].ShardsDone = progress.Vertices[i].Rows, progress.Vertices[i].ShardsDone
		}
	}
	return out
}

// queuesOf returns the queues of a plan with their progress.
func queuesOf(p *plan.Plan, progress *wire.Progress) []Queue {
	out := make([]Queue, len(p.Queues))
	for i, q := range p.Queues {
		out[i] = Queue{Name: q.Name, MaxSupersteps: q.MaxSupersteps, HasCriterion: q.HasCriterion, Values: []Value{}}
		if progress != nil && i < len(progress.Queues) {
			now := &progress.Queues[i]
			out[i].Superstep, out[i].Ended, out[i].Values = now.Superstep, now.Ended, valuesOf(now.Values)
			out[i].Compute, out[i].Communicate = Number(now.Compute), Number(now.Communicate)
		}
	}
	return out
}

func taskManagerOf(n *wire.TaskManagerInfo) TaskManager {
	out := TaskManager{
		ID: n.ID, Name: n.Name, Host: n.Host, PID: n.PID, State: n.State, Slots: n.Slots, Free: n.Free, Memory: n.Memory,
		Platform: n.Platform.String(), Build: n.Build, Executable: n.Executable, Ailing: n.Ailing, Cordon: cordonOf(n.Cordon), Avoided: avoidanceOf(n.Avoided), HeardAgo: n.HeardAgo.Seconds(), Since: n.Since, Workers: make([]WorkerRef, len(n.Workers)),
	}
	for i, w := range n.Workers {
		out.Workers[i] = WorkerRef{Job: string(w.Job), Attempt: w.Attempt, Worker: w.Worker}
	}
	return out
}
