package task

import (
	"math"
	"runtime/debug"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/hashicorp/go-hclog"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/disk"
	"github.com/superstep-ml/superstep/internal/transport"
	"github.com/superstep-ml/superstep/shared"
)

// Env is the environment of a run. The zero value is usable.
type Env struct {
	// Allocator allocates the memory of all rows; nil means the Go heap.
	Allocator columnar.Allocator
	// RowAllocator allocates the memory of rows that queues read in every superstep; nil means
	// Allocator. It may free memory when the last batch that refers to it is released.
	RowAllocator columnar.Allocator
	// BatchRows is the number of rows that batches should have; 0 means DefaultBatchRows. No
	// result depends on it.
	BatchRows int
	// MemoryBudget is the number of bytes that exchanges and operators may hold before they
	// spill. It is split evenly over the slots of the process. Exchanges take at most half of a
	// slot's share, so that operators always have the other half. The budget does not include
	// rows in transit between subtasks, which take at most the same number of bytes in
	// addition, however long batches are. It does not include the batches that operators are
	// working on: a slot's share should therefore be some tens of batches of BatchRows of the
	// widest rows. It does not include garbage that is not collected yet, which may double the
	// total unless GOMEMLIMIT is set. 0 means half of GOMEMLIMIT if that is set, otherwise a
	// quarter of the machine's memory.
	MemoryBudget int64
	// MemoryAhead is the number of bytes of rows that a process which runs no subtasks may take for the next run,
	// while this one goes on; 0 means half of MemoryBudget.
	MemoryAhead int64
	// Budget is the budget of MemoryBudget bytes that the run uses; nil means a new one. The caller may have
	// called Beside.
	Budget *Budget
	// SpillDir is the directory in which the run makes its private directory for temporary
	// files; empty means os.TempDir. Directories that killed runs left there are removed.
	SpillDir string
	// Disk is the file system of the temporary files; nil means the file system of the machine.
	Disk disk.FS
	// Logger gets the run's few messages; if it is nil, they are dropped.
	Logger hclog.Logger
	// Collector gets the rows that are passed to Context.Collect, which fails if Collector is
	// nil.
	Collector Collector
	// Progress, if set, is called as the run advances. It is called often and from several
	// goroutines at once, so it should return soon and limit how often it shows something.
	Progress func(Progress)
	// Advise, if set, returns the advice to give instead of e.Advice when a row was refused. The
	// new advice is in terms of the program, such as the flags of a command.
	Advise func(e *RowError) string
	// CheckRows makes the run compare the rows that every operator borrows, including those of
	// side inputs, before and after the operator ran. An operator that changed them fails. It is
	// for tests: it takes time, keeps the rows of the current shard in memory, and copies rows
	// that go to edges.
	CheckRows bool
	// Turns, if set, makes the subtasks of a vertex or queue work one after the other.
	Turns *Turns
	// Observer, if set, is called with what the run computes.
	Observer Observer
	// Sessions holds the objects that the subtasks of queues in this process share. Two runs of
	// the same job must not use one store at the same time. When the run ends, it has removed
	// the sessions of its job. nil means a new store for this run.
	Sessions *shared.Store
	// Retained, if set, gets the rows of the run's queues if the run fails, and has those of the run
	// before.
	Retained *Retained
	// Regroup, if set, is called by subtask 0 of each queue after each superstep, once the
	// verdict is known. It returns the parallelism at which the queue continues, from 1 to the
	// number of shards, or 0 to leave it as it is. If Regroup is set, all subtasks of the queue
	// synchronize after each superstep, even in several processes. A queue whose subtasks are in
	// several processes cannot be regrouped.
	Regroup func(queue string, step int) int
	// Unsaved, if set, is called if a part of the state of a queue cannot be saved, for example because
	// a codec does not restore an object. If it returns an error, the run fails with that. Otherwise the
	// run goes on, and Checkpoints gets no further states of the queue in this process. If Unsaved is
	// not set, the run fails.
	Unsaved func(queue string, err error) error
	// Closed, if set, is called when all subtasks of a queue in this process have emitted their rows. In the
	// process with subtask 0 it gets the report of the queue, encoded for Retained.AddReport.
	Closed func(queue string, report []byte)
	// Checkpoints, if set, gets the states of queues, and has those from which they continue. It
	// gets no state of a queue that continues nowhere, as plan.Resumption says. A
	// queue that continues reads its inputs again. If Checkpoints is set, it must be set in all
	// processes of the run, and all subtasks of a queue synchronize after each superstep.
	Checkpoints Checkpointer
	// Opened, if set, is called when all subtasks of a queue in this process have read their inputs.
	// The next superstep of the queue is number first. It is called once for each queue, even if a
	// superstep that needs no other subtask has ended before.
	Opened func(queue string, first int)
	// AbandonAfter is how long the run waits for user functions to return after it has ended; 0
	// means 10 seconds.
	AbandonAfter time.Duration
	// Credits limits the number of messages in flight to each inbox; 0 means
	// transport.DefaultCredits.
	Credits int
	// Network carries the exchanges; nil means a network in memory. Run closes it.
	Network transport.Network
}

// DefaultBatchRows keeps a batch of a few columns within the second-level cache, and is large
// enough that the cost of passing a batch does not matter: in the package's benchmarks a chain
// gains nothing from larger batches.
const DefaultBatchRows = 1024

// Progress is one event of a run. It is about a vertex if Queue is empty, else about a queue.
type Progress struct {
	// The subtasks of Vertex in this process have received or produced Rows rows so far, and
	// have finished ShardsDone of their shards.
	Vertex     plan.VertexID
	Rows       int64
	ShardsDone int
	// Queue has finished superstep Step, in which Values were reported. Values is
	// valid only during the call.
	Queue  string
	Step   int
	Values []Value
	// Compute and Communicate are the times that subtask 0 has spent so far in stages that
	// compute and in stages that communicate. Communicate includes waiting for other subtasks.
	Compute, Communicate time.Duration
}

// Value is a reported value of a superstep.
type Value struct {
	Name  string
	Value float64
}

// withDefaults returns the environment with defaults for fields that are not set and need one.
func (e Env) withDefaults() Env {
	if e.Allocator == nil {
		e.Allocator = memory.DefaultAllocator
	}
	if e.RowAllocator == nil {
		e.RowAllocator = e.Allocator
	}
	if e.BatchRows <= 0 {
		e.BatchRows = DefaultBatchRows
	}
	if e.MemoryBudget <= 0 {
		e.MemoryBudget = defaultBudget()
	}
	if e.Disk == nil {
		e.Disk = disk.OS()
	}
	if e.Sessions == nil {
		e.Sessions = shared.NewStore()
	}
	if e.Logger == nil {
		e.Logger = hclog.NewNullLogger()
	}
	if e.AbandonAfter <= 0 {
		e.AbandonAfter = 10 * time.Second
	}
	return e
}

// defaultBudget returns the default of Env.MemoryBudget. It is half of GOMEMLIMIT, as user code
// and garbage need the rest. Without GOMEMLIMIT it is a quarter of the machine's memory, as
// other processes need memory too.
func defaultBudget() int64 {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return max(limit/2, 1<<20)
	}
	if total := machineMemory(); total > 0 {
		return total / 4
	}
	return 1 << 30
}
