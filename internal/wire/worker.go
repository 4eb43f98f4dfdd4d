package wire

// A worker process talks to the task manager that started it through two pipes: it
// reads ToWorker frames from file descriptor 3 and writes FromWorker frames to file
// descriptor 4. Its standard output and error are the user's.
//
//	task manager                       worker
//	Deployment ──────────────────────►            builds the job, listens
//	           ◄────────────────────── Ready      (or Resolved, and ends)
//	Prepare (worker 0 only) ─────────►            begins the sinks
//	           ◄────────────────────── Prepared
//	Start ───────────────────────────►            joins the sinks, runs its subtasks
//	           ◄────────────────────── Progress, Collected, Output …
//	           ◄────────────────────── Finished   (or Failed)
//	Commit (worker 0 only) ──────────►            makes the sinks' output visible
//	           ◄────────────────────── Committed
//	Exit ────────────────────────────►            ends with code 0
//
// A worker in CommitMode gets Commit right after its Ready, which has no address.
//
// Cancel may come at any time after Deployment: the worker stops, aborts its sinks, answers
// Failed, and ends. A worker sends Beat all along. When its pipe ends, its task manager is
// gone, and the worker exits at once.

// WorkerEnv is the environment variable that makes a process a worker. Its value is
// the version of the protocol.
const WorkerEnv = "SUPERSTEP_WORKER"

// File descriptors of a worker's pipes.
const (
	WorkerReads  = 3
	WorkerWrites = 4
)

// WorkerMode is the purpose of a worker.
type WorkerMode int

const (
	// RunMode runs subtasks.
	RunMode WorkerMode = iota
	// ResolveMode builds the graph where the data are, answers Resolved and ends.
	ResolveMode
	// CommitMode finishes the commit of a job whose own workers are gone: the worker
	// builds the job, runs nothing, and is told to Commit when it is Ready.
	CommitMode
)

// Deployment tells a worker its job and its place in it.
type Deployment struct {
	WorkerRef `msgpack:",inline"`
	Mode      WorkerMode  `msgpack:"mode"`
	Spec      JobSpec     `msgpack:"spec"`  // with the graph, even if a worker resolved it
	Slots     []SlotRange `msgpack:"slots"` // by worker; this one is Slots[Worker]
	// TaskManager is the name of the worker's task manager, for messages.
	TaskManager string `msgpack:"task_manager"`
	// Listen is the host on which the worker accepts the connections of others, all on one of
	// the Ports. Advertise is the host by which the others reach it; "" means Listen.
	Listen    string `msgpack:"listen"`
	Advertise string `msgpack:"advertise"`
	Ports     Ports  `msgpack:"ports"`
	// Memory is the budget in bytes of all the worker's slots together.
	Memory     int64      `msgpack:"memory"`
	WorkDir    string     `msgpack:"work_dir"` // for spilled runs; removed by the task manager
	Credential Credential `msgpack:"credential"`
}

// Credential is valid for the data plane of one attempt only.
type Credential struct {
	// Secret is known only to the workers of the attempt; 32 bytes.
	Secret []byte `msgpack:"secret"`
	// Certificate, Key and Authority are in PEM; all "" where the data plane has no TLS.
	Certificate string `msgpack:"certificate"`
	Key         string `msgpack:"key"`
	Authority   string `msgpack:"authority"`
}

// ToWorker is one message of a task manager; one field is set.
type ToWorker struct {
	Deployment *Deployment `msgpack:"deployment,omitempty"`
	Prepare    *Prepare    `msgpack:"prepare,omitempty"`
	Start      *Start      `msgpack:"start,omitempty"`
	Commit     *Commit     `msgpack:"commit,omitempty"`
	Cancel     *Cancel     `msgpack:"cancel,omitempty"`
	Exit       *Exit       `msgpack:"exit,omitempty"`
}

// Prepare tells worker 0 to begin the sinks, before any worker writes.
type Prepare struct{}

// Start tells a worker to run. Addresses are the workers' data addresses, by number.
type Start struct {
	Addresses []string `msgpack:"addresses"`
}

// Commit tells worker 0 to make the results visible. Outcomes are those in the workers'
// Finished, by number.
type Commit struct {
	Outcomes [][]byte `msgpack:"outcomes"`
}

// Cancel tells a worker to stop.
type Cancel struct {
	Reason string `msgpack:"reason"`
}

// Exit tells a worker without further work to end.
type Exit struct{}

// FromWorker is one message of a worker; one field is set.
type FromWorker struct {
	Beat      *Beat      `msgpack:"beat,omitempty"`
	Ready     *Ready     `msgpack:"ready,omitempty"`
	Resolved  *Resolved  `msgpack:"resolved,omitempty"`
	Prepared  *Prepared  `msgpack:"prepared,omitempty"`
	Progress  *Progress  `msgpack:"progress,omitempty"`
	Collected *Collected `msgpack:"collected,omitempty"`
	Output    *Output    `msgpack:"output,omitempty"`
	Finished  *Finished  `msgpack:"finished,omitempty"`
	Committed *Committed `msgpack:"committed,omitempty"`
	Failed    *Failure   `msgpack:"failed,omitempty"`
}

// Beat says that the worker is alive.
type Beat struct{}

// Ready says that the worker has built the job and listens.
type Ready struct {
	Address     string `msgpack:"address"` // host:port of its data plane
	Fingerprint string `msgpack:"fingerprint"`
}

// Resolved has the graph as the worker builds it, in JSON.
type Resolved struct {
	Graph []byte `msgpack:"graph"`
}

// Prepared says that the sinks have begun.
type Prepared struct{}

// Collected has rows of a Collect for the client: an Arrow IPC stream of one or more batches of
// one shard. The rows of a shard come in order.
type Collected struct {
	Node  int    `msgpack:"node"`
	Shard int    `msgpack:"shard"`
	Rows  []byte `msgpack:"rows"`
}

// Output is text of operators such as Print, for the client's standard output.
type Output struct {
	Text []byte `msgpack:"text"`
}

// Finished says that the worker's subtasks have all succeeded. Outcome has the worker's report
// and describes what its sinks wrote, for worker 0 and the client.
type Finished struct {
	Outcome []byte `msgpack:"outcome"`
}

// Committed says that the results are visible.
type Committed struct{}
