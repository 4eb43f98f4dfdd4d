package task

import (
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/collective"
	"github.com/superstep-ml/superstep/engine/plan"
)

// Loop makes the bodies of a queue, one per subtask, once per attempt and process. The
// value returned by Open may hold what the subtasks of one process share.
type Loop struct {
	// MaxSupersteps is 0 where only the criterion ends the loop.
	MaxSupersteps int
	// Open is called once, before any subtask starts; subtasks is the queue's parallelism.
	Open func(subtasks int) (Gang, error)
}

// Gang is a queue's state in one process.
type Gang interface {
	// Body returns the body of one subtask; called once per subtask of the process.
	Body(subtask int) (Body, error)
	// Close is called once after every subtask of the gang has returned, however it ended.
	Close() error
}

// Body is what one subtask of a queue runs. Its methods are called from the
// goroutine of the subtask, except for Shard and, where the run fails before the
// subtask is started, Close.
type Body interface {
	// Open takes the queue's inputs. Data ports are read through in, shard by
	// shard; side ports through Context.Side.
	Open(c *Context, in Input, comm *collective.Comm) error
	// Stages returns the stages of a superstep in order; called once after Open.
	Stages() []Stage
	// Begin is called before the first stage of each superstep, numbered from 1.
	Begin(step int) error
	// Stop evaluates the criterion; called on subtask 0 only, after the last
	// stage. The loop broadcasts the verdict.
	Stop(step int) (bool, error)
	// After is called on subtask 0 once the verdict of a superstep is known to all.
	After(step int) error
	// Finish emits the queue's rows after the last superstep.
	Finish(c *Context, out Output) error
	// Shard returns the shard being worked on, -1 for none; it goes into errors and
	// may be called at any time from any goroutine.
	Shard() int
	// Close releases what the body holds; called once, however the loop ended.
	Close() error
}

// Settler is a Body whose subtasks combine something after supersteps. Settle is
// called where the subtasks are in several processes: on every subtask, after the
// verdict of each superstep and before After, which subtask 0 alone is asked for. It
// may call collectives, the same on every subtask. In one process After may read what
// the other subtasks have done instead.
type Settler interface {
	// Settle is told whether the superstep is the last.
	Settle(step int, last bool) error
}

// Stage is one step of a superstep.
type Stage struct {
	// Node is the stage's node in the plan.
	Node plan.NodeID
	// Run runs the stage on the subtask; nil where Repeat is set.
	Run func() error
	// Repeat makes the stage an inner loop: the node is its RepeatBegin.
	Repeat *Repeat
	// Bytes, if set, returns the bytes of partial results the stage has moved so far.
	Bytes func() int64
	// Waited, if set, returns how long the stage has waited for other subtasks so
	// far; that time is not counted as busy.
	Waited func() time.Duration
	// Shard, if set, returns the shard the stage is working on, -1 for none; it
	// goes into errors and may be called at any time from any goroutine.
	Shard func() int
	// Program, if set, names the collective program and executor that carry the
	// stage, known after its first run.
	Program func() string
}

// Repeat is a loop within a superstep, such as a line search.
type Repeat struct {
	// Max is the largest number of rounds, at least 1.
	Max int
	// Begin, if set, is called before each round, numbered from 1, and before While; and
	// with 0 when the last one has ended.
	Begin func(round int)
	// While, if set, is evaluated before each round, by every subtask for itself, and the
	// same on all of them: false ends the rounds, of which there may be none.
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
	Next(port, shard int) (arrow.Record, error)
	// Skip drops the rest of a port.
	Skip(port int) error
}
