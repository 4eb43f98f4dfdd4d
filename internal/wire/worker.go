package wire

import "time"

// A worker process communicates with the task manager that started it over two pipes: it reads
// ToWorker frames from file descriptor 3 and writes FromWorker frames to file descriptor 4.
// User code may use its standard output and error.
//
//	task manager                       worker
//	Deployment ──────────────────────►            builds the job, listens
//	           ◄────────────────────── Ready      (or Resolved, and ends)
//	Prepare (worker 0 only) ─────────►            begins the sinks
//	           ◄────────────────────── Prepared
//	Start ───────────────────────────►            joins the sinks, runs its subtasks
//	           ◄────────────────────── Progress, Collected, Output, Checkpointed …
//	           ◄────────────────────── Finished   (or Failed)
//	Commit (worker 0 only) ──────────►            makes the sinks' output visible
//	           ◄────────────────────── Committed
//	Exit ────────────────────────────►            ends with code 0
//
// A worker in CommitMode gets Commit directly after it has sent Ready, which has no address.
//
// Cancel may be sent at any time after Deployment: the worker stops its subtasks, aborts its
// sinks, answers with Failed, and ends. A worker sends Beat at regular intervals. If a worker's
// input pipe ends, its task manager has ended, and the worker exits at once.
//
// A worker keeps its process for the next attempt of its job if its attempt ended because of other
// workers: after Failed with a PeerFailure, if Deployment.Keep is set, or after a Cancel with Keep. It
// then sends Kept, and waits for another Deployment, or for Exit. Rows of its queues stay in memory.

// WorkerEnv is the name of the environment variable that makes a program run as a worker. Its
// value is the version of the protocol.
const WorkerEnv = "SUPERSTEP_WORKER"

// These are the file descriptors of a worker's pipes.
const (
	WorkerReads  = 3
	WorkerWrites = 4
)

// WorkerMode is the purpose of a worker.
type WorkerMode int

const (
	// RunMode means that the worker runs subtasks.
	RunMode WorkerMode = iota
	// ResolveMode means that the worker only builds the graph, on a machine that can read the
	// data, answers with Resolved, and ends.
	ResolveMode
	// CommitMode means that the worker finishes the commit of a job whose other workers have
	// ended. It builds the job, runs no subtasks, and gets Commit after it has sent Ready.
	CommitMode
)

// Deployment describes the job of a worker and the worker's part of the job.
type Deployment struct {
	WorkerRef `msgpack:",inline"`
	Mode      WorkerMode  `msgpack:"mode"`
	Spec      JobSpec     `msgpack:"spec"`  // with the graph, even if a worker has resolved it
	Slots     []SlotRange `msgpack:"slots"` // indexed by worker; this worker has Slots[Worker]
	// Holds is how many slots a worker without slots holds for the next attempt.
	Holds int `msgpack:"holds,omitempty"`
	// TaskManager is the name of the worker's task manager, for errors and logs.
	TaskManager string `msgpack:"task_manager"`
	// Listen is the host on which the worker accepts the connections of other workers, at one
	// port of Ports. Advertise is the host that the other workers dial; "" means Listen.
	Listen    string `msgpack:"listen"`
	Advertise string `msgpack:"advertise"`
	Ports     Ports  `msgpack:"ports"`
	// Memory is the memory budget in bytes of all the worker's slots together.
	Memory  int64  `msgpack:"memory"`
	WorkDir string `msgpack:"work_dir"` // directory for spilled data; the task manager removes it
	// StateDir is the directory for files with states of the job's queues, in which workers of earlier
	// attempts may have left some; "" if there is none. The task manager sets it, and removes it after
	// the job.
	StateDir string `msgpack:"state_dir,omitempty"`
	// RowsDir is a directory of the job on this machine for rows in files that outlive the worker; "" if
	// there is none. The task manager removes it.
	RowsDir    string     `msgpack:"rows_dir,omitempty"`
	Credential Credential `msgpack:"credential"`
	// Resume says that the attempt continues from the job's newest checkpoint, if there is one.
	Resume bool `msgpack:"resume,omitempty"`
	// Keep says that another attempt may follow this one, for which the worker keeps its process.
	Keep bool `msgpack:"keep,omitempty"`
	// Silence is how long the worker may be silent, to its task manager and to the other workers; 0 means
	// their defaults.
	Silence time.Duration `msgpack:"silence,omitempty"`
}

// Taken returns how many slots of its task manager the worker takes, in this attempt or for the next one.
func (d *Deployment) Taken() int {
	mine := d.Slots[d.Worker]
	return max(mine.Hi-mine.Lo, d.Holds)
}

// Credential has the credentials of a worker. They are valid only for the data plane of one
// attempt.
type Credential struct {
	// Secret has 32 bytes. Only the workers of the attempt know it.
	Secret []byte `msgpack:"secret"`
	// Certificate, Key and Authority are in PEM. All are "" if the data plane has no TLS.
	Certificate string `msgpack:"certificate"`
	Key         string `msgpack:"key"`
	Authority   string `msgpack:"authority"`
}

// ToWorker is a message of a task manager to a worker. Exactly one field is set.
type ToWorker struct {
	Deployment *Deployment `msgpack:"deployment,omitempty"`
	Prepare    *Prepare    `msgpack:"prepare,omitempty"`
	Start      *Start      `msgpack:"start,omitempty"`
	Commit     *Commit     `msgpack:"commit,omitempty"`
	Save       *Save       `msgpack:"save,omitempty"`
	Unwritten  *Unwritten  `msgpack:"unwritten,omitempty"`
	Cancel     *Cancel     `msgpack:"cancel,omitempty"`
	Exit       *Exit       `msgpack:"exit,omitempty"`
}

// Prepare is the command for worker 0 to begin the sinks. It is sent before any worker writes.
// Held[i] is what worker i has said in Ready.
type Prepare struct {
	Held [][]byte `msgpack:"held,omitempty"`
}

// Start is the command to run the worker's subtasks. Addresses[i] is the data address of worker
// i. Origin is what worker 0 has said in Prepared. Held[i] is what worker i has said in Ready.
type Start struct {
	Addresses []string `msgpack:"addresses"`
	Origin    *Origin  `msgpack:"origin,omitempty"`
	Held      [][]byte `msgpack:"held,omitempty"`
}

// Commit is the command for worker 0 to make the results visible. Outcomes[i] is the Outcome in
// the Finished of worker i.
type Commit struct {
	Outcomes [][]byte `msgpack:"outcomes"`
}

// Save is the command for worker 0 to make a checkpoint now, and to copy it to Place unless that is
// "". Requests have numbers, as a command may be repeated. If Precopy is not nil, rows are copied first.
type Save struct {
	Request int      `msgpack:"request"`
	Place   string   `msgpack:"place,omitempty"`
	Precopy *Precopy `msgpack:"precopy,omitempty"`
}

// Precopy says which slots processes of a job are to have in its next attempt. Worker 0 has each of them copy
// the rows of its shards from the workers that have these, while supersteps go on. It then makes the
// checkpoint. What has not been copied Within this time moves when the next attempt begins. (Live migration of
// virtual machines copies memory in the same way: Clark et al., NSDI 2005.)
type Precopy struct {
	Of     int           `msgpack:"of"` // number of slots of the next attempt
	Within time.Duration `msgpack:"within"`
	To     []PrecopyTo   `msgpack:"to"`
}

// PrecopyTo is a process that gets rows: a worker with slots of the current attempt, or one that has been
// deployed behind them, without slots, and is ready. That one is reached at Address.
type PrecopyTo struct {
	Worker  int       `msgpack:"worker"`
	Address string    `msgpack:"address,omitempty"`
	Slots   SlotRange `msgpack:"slots"` // of the next attempt
}

// Saved is the answer to Save. It has the number of the checkpoint and the supersteps of its queues.
// If Failure is not "", it says why there is no checkpoint, or no copy.
type Saved struct {
	Request    int    `msgpack:"request"`
	Checkpoint Origin `msgpack:"checkpoint"`
	Failure    string `msgpack:"failure,omitempty"`
}

// Unwritten tells worker 0 that another worker could not write its part of a checkpoint. Worker 0 waits
// for that part, and would not learn of the failure from the store.
type Unwritten struct {
	Worker int           `msgpack:"worker"`
	Queues []OriginQueue `msgpack:"queues"` // the states of which the part is missing
	Error  string        `msgpack:"error"`
}

// Cancel is the command to stop. Keep says that the worker keeps its process for the next attempt.
type Cancel struct {
	Reason string `msgpack:"reason"`
	Keep   bool   `msgpack:"keep,omitempty"`
}

// Exit is the command to end, because the worker has no further work.
type Exit struct{}

// FromWorker is a message of a worker. Exactly one field is set.
type FromWorker struct {
	Beat         *Beat         `msgpack:"beat,omitempty"`
	Ready        *Ready        `msgpack:"ready,omitempty"`
	Resolved     *Resolved     `msgpack:"resolved,omitempty"`
	Prepared     *Prepared     `msgpack:"prepared,omitempty"`
	Progress     *Progress     `msgpack:"progress,omitempty"`
	Saved        *Saved        `msgpack:"saved,omitempty"`
	Checkpointed *Checkpointed `msgpack:"checkpointed,omitempty"`
	Collected    *Collected    `msgpack:"collected,omitempty"`
	Output       *Output       `msgpack:"output,omitempty"`
	Finished     *Finished     `msgpack:"finished,omitempty"`
	Committed    *Committed    `msgpack:"committed,omitempty"`
	Failed       *Failure      `msgpack:"failed,omitempty"`
	Kept         *Kept         `msgpack:"kept,omitempty"`
}

// Beat says that the worker is alive.
type Beat struct{}

// MaxHeld limits Ready.Held, in bytes.
const MaxHeld = 1 << 20

// Ready says that the worker has built the job and accepts connections.
type Ready struct {
	Address     string `msgpack:"address"` // address of the worker's data plane, host:port
	Fingerprint string `msgpack:"fingerprint"`
	// Overlaps says that the next attempt of the job may begin while workers of this one still
	// run: they cannot change what the next attempt writes or makes visible.
	Overlaps bool `msgpack:"overlaps,omitempty"`
	// Held says what the process has kept of earlier attempts, in at most MaxHeld bytes. Only workers know
	// its encoding.
	Held []byte `msgpack:"held,omitempty"`
}

// Resolved has the graph that the worker has built, in JSON.
type Resolved struct {
	Graph []byte `msgpack:"graph"`
}

// Prepared says that the sinks have begun. Origin is nil if the job has no checkpoints.
type Prepared struct {
	Origin *Origin `msgpack:"origin,omitempty"`
}

// Collected has rows of a Collect for the client: an Arrow IPC stream with one or more batches
// of one shard. The rows of a shard are sent in order.
type Collected struct {
	Node  int    `msgpack:"node"`
	Shard int    `msgpack:"shard"`
	Rows  []byte `msgpack:"rows"`
}

// Output is text for the client's standard output, from operators such as Print.
type Output struct {
	Text []byte `msgpack:"text"`
}

// Finished says that all subtasks of the worker have succeeded. Outcome has the worker's
// report, for the client, and describes what its sinks wrote, for worker 0.
type Finished struct {
	Outcome []byte `msgpack:"outcome"`
}

// Committed says that the results are visible.
type Committed struct{}

// Kept is the last message of an attempt, after Failed, of a worker that keeps its process for the
// next attempt.
type Kept struct{}
