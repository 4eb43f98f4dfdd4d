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

// Env is what a run takes from its surroundings. The zero value is usable.
type Env struct {
	// Allocator holds all rows; nil means one of the Go heap.
	Allocator columnar.Allocator
	// RowAllocator holds the rows that queues pass over superstep after superstep; nil means
	// Allocator. It may free memory when the last batch that refers to it is released.
	RowAllocator columnar.Allocator
	// BatchRows is the number of rows batches aim at; 0 means DefaultBatchRows.
	// It reaches no result.
	BatchRows int
	// MemoryBudget is the number of bytes that exchanges and operators may hold
	// before they spill, split evenly over the slots of the process. Exchanges take at
	// most half of a slot's part, so that operators find room whatever comes before
	// them. What is on its way between subtasks comes on top, up to as much again
	// however long batches are; so do the batches that operators have at hand, which
	// is why a slot's part should be some tens of batches, BatchRows of the widest
	// rows each. Garbage that is not collected yet is not counted: it may be as much
	// as all of that where GOMEMLIMIT does not keep the collector to less. 0 means
	// half of GOMEMLIMIT where that is set, otherwise a quarter of the machine's
	// memory.
	MemoryBudget int64
	// SpillDir is where the run makes its private directory for temporary files;
	// empty means os.TempDir. What killed runs left there is removed.
	SpillDir string
	// Disk holds the temporary files; nil means that of the machine.
	Disk disk.FS
	// Logger takes the run's few messages; nil drops them.
	Logger hclog.Logger
	// Collector takes the rows given to Context.Collect; nil makes that an error.
	Collector Collector
	// Progress, if set, is called as the run advances: from several goroutines at
	// once, and often, so that it should return soon and throttle what it shows.
	Progress func(Progress)
	// Advise, if set, returns the Advice for a row that was refused in place of the one it
	// has: in the words of the program, such as the flags of a command.
	Advise func(e *RowError) string
	// CheckRows has every operator's rows compared, before and after, with what they were,
	// side inputs among them: an operator that changed what it borrowed fails. It is for
	// tests: it takes time, keeps the rows of the shard at hand, and copies what it sends.
	CheckRows bool
	// Turns, if set, has the subtasks of a vertex or queue work one after the other.
	Turns *Turns
	// Observer, if set, is shown what the run computes.
	Observer Observer
	// Sessions holds what the queues of the process share and keep, those of one run of a job
	// at a time; nil means a store of the run's own. When the run ends no session of its job is
	// left there.
	Sessions *shared.Store
	// Regroup, if set, is asked by subtask 0 of each queue after each superstep, when its
	// verdict is known, and says at which parallelism, 1 to the number of shards, the queue
	// goes on from there; 0 leaves it as it is. All subtasks of the queue then meet after
	// each superstep, wherever they are. A queue whose subtasks are in several processes
	// cannot be regrouped.
	Regroup func(queue string, step int) int
	// AbandonAfter is how long functions may go on after the run has ended; 0
	// means 10 seconds.
	AbandonAfter time.Duration
	// Credits bounds the messages under way to each inbox; 0 means
	// transport.DefaultCredits.
	Credits int
	// Network carries the exchanges; nil means memory. Run closes it.
	Network transport.Network
}

// DefaultBatchRows keeps a batch of a few columns within the second-level cache
// while the cost of handing it on vanishes: in the package's benchmarks a chain
// gains nothing from larger batches.
const DefaultBatchRows = 1024

// Progress is one event of a run: of a vertex where Queue is empty, otherwise of
// a queue.
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
	// Compute and Communicate are what subtask 0 has spent so far in stages of either
	// kind, waiting for others included in the latter.
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

// defaultBudget is the share of memory that runs may hold. Only half of
// GOMEMLIMIT: user code and garbage need the rest. Without a limit, other
// processes need some too.
func defaultBudget() int64 {
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		return max(limit/2, 1<<20)
	}
	if total := machineMemory(); total > 0 {
		return total / 4
	}
	return 1 << 30
}
