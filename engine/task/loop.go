package task

import (
	"time"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/internal/mapped"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// OpenLoops returns a Loop for each subtask of a queue in this process, in order. It is called
// when the queue begins, and again when the queue continues after a Cut, before any of the
// subtasks starts. The loops own the resources that they share: the last loop to be closed
// closes them, unless all loops were cut. If OpenLoops fails it leaves nothing open.
type OpenLoops func(GangSpec) ([]Loop, error)

// GangSpec says for which subtasks of a queue OpenLoops is to make Loops.
type GangSpec struct {
	Job, Queue string
	// Sessions is the session store of the process. It holds the queue's session under the names
	// Job and Queue, and keeps it between one gang and the next.
	Sessions *shared.Store
	// Subtasks is the number of all subtasks of the queue, and Here is the range of the
	// subtasks in this process.
	Subtasks int
	Here     sharding.Range
	// From is the Cut from which the queue continues, or nil if it begins. The loops may keep and
	// change the parts of From. Parts that no subtask in this process needs may be empty; see
	// Part.NeededParts.
	From *Cut
	// RowsKept says that an earlier gang of this process ran the queue up to From. The session is
	// then open and holds the rows of the subtasks' shards, and the inputs have nothing to read.
	// If RowsKept is false, the inputs have all rows, also if From is not nil.
	RowsKept bool
	// Kept, if set, returns the rows of a data port and a shard of the subtasks that this process has kept
	// of an earlier run, owned by the caller, or false if there are none. If it returns rows, the inputs
	// have none of this port and shard. OpenLoops calls it once for all data ports and shards.
	Kept func(port, shard int) (KeptRows, bool)
	// Retain, if set, takes the rows of a data port and a shard, borrowed, for the next run. The loops
	// call it when they are closed before all of them have finished, for all data ports of those shards
	// whose rows they have.
	Retain func(port, shard int, rows KeptRows)
	// Lend, if set, lends the rows of a data port and a shard, while the queue runs. A loop calls it at the end
	// of Open, for all data ports of its shards. The rows are borrowed, and must not change or be released
	// before the first loop of the gang is closed.
	Lend func(port, shard int, rows KeptRows)
	// Files, if set, makes the files for rows of data ports, and these files outlive the process. The loops
	// then call Settled for each data port of a shard when the rows of all of them are in files and will
	// stay there. A port without rows needs no file. rows are borrowed.
	Files   *mapped.Files
	Settled func(port, shard int, rows KeptRows)
}

// KeptRows are the rows of a data port and a shard of a queue, which its process keeps from one run to
// the next.
type KeptRows struct {
	Rows columnar.Batch
	// File, if not nil, is the mapped file that has the rows. It lives as long as they do. Who computes
	// with the rows verifies it before the results are used.
	File *mapped.Region
	// Memory is the number of bytes of rows in a file that are in memory besides, such as offsets.
	Memory int64
}

// Loop is what one subtask of a queue runs. Its methods are called from the goroutine of the
// subtask. The exceptions are Shard and, if the run fails before the subtask starts, Close.
type Loop interface {
	// Open takes the queue's inputs. Data ports are read through the Input in, shard by shard.
	// Side ports are read through Context.Side.
	Open(c *Context, in Input, comm *collective.Comm) error
	// Stages returns the stages of a superstep in order. It is called once, after Open.
	Stages() []Stage
	// Begin is called before the first stage of each superstep. Supersteps are numbered from 1,
	// and their numbers continue after a Cut.
	Begin(step int) error
	// Stop evaluates the criterion. It is called on subtask 0 only, after the last stage. The
	// engine broadcasts the verdict.
	Stop(step int) (bool, error)
	// After is called once the subtask knows the verdict on a superstep. last says that the
	// superstep was the last of the gang: the queue ends, or is cut. save says that Save will be
	// called. After may call collectives, the same on every subtask. If all subtasks are in one process, all have
	// finished the stages of the superstep, and After may read the results of other subtasks.
	// If they are in several processes it must not, as other subtasks may be in another
	// superstep.
	After(step int, last, save bool) error
	// Save is called after After, between two supersteps or after the last one. It returns that
	// state of the subtask on which the result depends, so that a gang in another process can
	// continue from it. The state refers to no memory of the loop, which goes on. Save must not
	// call collectives.
	Save() (CutPart, error)
	// Cut is called instead of the next superstep or of Finish. It returns the same state as
	// Save, from which a gang of the given number of subtasks continues in this process. It fails
	// if the queue cannot continue at that parallelism. State that does not leave the process,
	// such as rows, stays in the session.
	Cut(subtasks int) (CutPart, error)
	// Finish emits the queue's rows after the last superstep. If the gang continues from a Cut
	// after the last superstep, only Open and Stages were called before Finish.
	Finish(c *Context, out Output) error
	// Shard returns the shard being worked on, or -1. The number appears in errors. Shard
	// may be called at any time from any goroutine.
	Shard() int
	// Close releases what the loop holds. It is called once, however the loop ended.
	Close() error
}

// Stage is one step of a superstep.
type Stage struct {
	// Node is the stage's node in the plan.
	Node plan.NodeID
	// Run runs the stage on the subtask. It is nil if Repeat is set.
	Run func() error
	// Repeat, if set, makes the stage an inner loop. Node is then its RepeatBegin node.
	Repeat *Repeat
	// Bytes, if set, returns the number of bytes of partial results that the stage has moved so
	// far.
	Bytes func() int64
	// Waited, if set, returns how long the stage has waited for other subtasks so
	// far; that time is not counted as busy.
	Waited func() time.Duration
	// Shard, if set, returns the shard that the stage is working on, or -1. The number
	// appears in errors. Shard may be called at any time from any goroutine.
	Shard func() int
	// Program, if set, returns the names of the collective's algorithm and executor, which
	// are known after the first run of the stage.
	Program func() string
}

// Repeat is a loop within a superstep, such as a line search.
type Repeat struct {
	// Max is the largest number of rounds, at least 1.
	Max int
	// Begin, if set, is called before each round, and before the While of that round, with the
	// number of the round, from 1. It is called with 0 when the last round has ended.
	Begin func(round int)
	// While, if set, is evaluated by every subtask before each round, and must return the same
	// value on all subtasks. false ends the rounds, even before the first.
	While func() (bool, error)
	// Until, if set, is evaluated on subtask 0 after the stages of each round; the
	// loop broadcasts the verdict, and true ends the rounds.
	Until  func() (bool, error)
	Stages []Stage
}

// Input reads the rows of a vertex's data ports.
type Input interface {
	// Next returns the next batch of (port, shard), owned by the caller, or
	// io.EOF at the shard's end. For each port, shards are read in increasing order
	// and each to its end.
	Next(port, shard int) (columnar.Batch, error)
	// Skip drops the remaining rows of a port.
	Skip(port int) error
}
