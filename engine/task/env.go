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
	// Allocator holds all rows; nil means one of the Go heap.
	Allocator columnar.Allocator
	// RowAllocator holds the rows that queues read in every superstep; nil means Allocator. It
	// may free memory when the last batch that refers to it is released.
	RowAllocator columnar.Allocator
	// BatchRows is the number of rows batches aim at; 0 means DefaultBatchRows. No result
	// depends on it.
	BatchRows int
	// MemoryBudget is the number of bytes that exchanges and operators may hold before they
	// spill, split evenly over the slots of the process. Exchanges take at most half of a
	// slot's share, so that operators always find room. Rows on their way between subtasks come
	// on top, up to the budget again however long batches are. So do the batches that operators
	// are working on, which is why a slot's share should be some tens of batches of BatchRows
	// of the widest rows. Garbage that is not collected yet is not counted: it may double all
	// of that unless GOMEMLIMIT bounds it. 0 means half of GOMEMLIMIT if that is set, otherwise
	// a quarter of the machine's memory.
	MemoryBudget int64
	// SpillDir is where the run makes its private directory for temporary files; empty means
	// os.TempDir. Directories that killed runs left there are removed.
	SpillDir string
	// Disk holds the temporary files; nil means that of the machine.
	Disk disk.FS
	// Logger takes the run's few messages; nil drops them.
	Logger hclog.Logger
	// Collector takes the rows given to Context.Collect; nil makes that an error.
	Collector Collector
	// Progress, if set, is called as the run advances. It is called often and from several
	// goroutines at once, so it should return soon and throttle what it shows.
	Progress func(Progress)
	// Advise, if set, returns another Advice for a row that was refused, in terms of the
	// program, such as the flags of a command.
	Advise func(e *RowError) string
	// CheckRows compares the rows of every operator, side inputs included, before and after it
	// ran. An operator that changed borrowed rows fails. It is for tests: it takes time, keeps
	// the rows of the current shard, and copies the rows that it sends.
	CheckRows bool
	// Turns, if set, makes the subtasks of a vertex or queue work one after the other.
	Turns *Turns
	// Observer, if set, is shown what the run computes.
	Observer Observer
	// Sessions holds the objects that the queues of the process share and keep. It serves one
	// run of a job at a time; nil means a store of the run's own. When the run ends it has
	// removed the sessions of its job.
	Sessions *shared.Store
	// Regroup, if set, is called by subtask 0 of each queue after each superstep, once the
	// verdict is known. It returns the parallelism, 1 to the number of shards, at which the
	// queue goes on; 0 does not change it. With Regroup, all subtasks of the queue synchronize
	// after each superstep, wherever they are. A queue whose subtasks are in several processes
	// cannot be regrouped.
	Regroup func(queue string, step int) int
	// AbandonAfter is how long functions may go on after the run has ended; 0 means 10 seconds.
	AbandonAfter time.Duration
	// Credits bounds the messages in flight to each inbox; 0 means transport.DefaultCredits.
	Credits int
	// Network carries the exchanges; nil means memory. Run closes it.
	Network transport.Network
}

// DefaultBatchRows keeps a batch of a few columns within the second-level cache, and is large
// enough that the cost of passing a batch does not matter: in the package's benchmarks a chain
// gains nothing from larger batches.
const DefaultBatchRows = 1024

// Progress is one event of a run: of a queue, or of a vertex if Queue is empty.
type Progress struct {
	// Vertex has taken or produced Rows so far, over all subtasks of the process, and
	// ended ShardsDone of its shards.
	Vertex     plan.VertexID
	Rows       int64
	ShardsDone int
	// Queue has done superstep Step, in which Values were reported. Values is
	// valid during the call only.
	Queue  string
	Step   int
	Values []Value
	// Compute and Communicate are the times that subtask 0 has spent so far in stages of either
	// kind. Communicate includes waiting for others.
	Compute, Communicate time.Duration
}

// Value is a reported value of a superstep.
type Value struct {
	Name  string
	Value float64
}

// withDefaults returns the environment with every field set.
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

// defaultBudget returns the memory that runs may hold. It is only half of GOMEMLIMIT, as user
// code and garbage need the rest. Without a limit it is less, as other processes need memory
// too.
func defaultBudget() int64 {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return max(limit/2, 1<<20)
	}
	if total := machineMemory(); total > 0 {
		return total / 4
	}
	return 1 << 30
}
