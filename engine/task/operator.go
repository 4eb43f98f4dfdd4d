package task

import "github.com/superstep-ml/superstep/engine/columnar"

// Output takes the rows an operator or source emits.
type Output interface {
	// Emit hands on rows of a shard. The batch is borrowed: the caller keeps its reference and
	// releases it; to keep the batch, retain it. Rows are emitted under the current shard: the
	// one whose rows or end the operator was given, or in Finish the last owned one. Queues
	// emit in Finish only, under any owned shards in increasing order.
	Emit(shard int, rows columnar.Batch) error
}

// Source produces the rows of shards.
//
// One instance serves one subtask; its methods are called from one goroutine.
type Source interface {
	Open(c *Context) error
	// ReadShard emits the rows of one shard, in order. It is called once for each
	// shard of the subtask's range, in increasing order.
	ReadShard(c *Context, shard int, out Output) error
	// Close is called exactly once after a successful or failed Open.
	Close() error
}

// Operator transforms rows. One instance serves one subtask; its methods are called from one
// goroutine, in this order:
//
//	Open, then for each owned shard in increasing order
//	  (for each data port in order: Process*), EndShard,
//	then Finish if all went well, and Close in any case.
//
// The rows that it emits for a row must not depend on batch boundaries.
type Operator interface {
	// Open is called when every side input is complete; see Context.Side.
	Open(c *Context) error
	// Process takes a batch of a shard; rows is borrowed.
	Process(c *Context, port, shard int, rows columnar.Batch, out Output) error
	// EndShard is called once per owned shard, empty ones too.
	EndShard(c *Context, shard int, out Output) error
	// Finish may emit last rows, under the last owned shard.
	Finish(c *Context, out Output) error
	// Close releases what the operator holds.
	Close() error
}

// BaseOperator is an operator or source that does nothing. Embedded, it supplies the methods
// that another does not need.
type BaseOperator struct{}

// Open does nothing, as the other methods do.
func (BaseOperator) Open(*Context) error                  { return nil }
func (BaseOperator) EndShard(*Context, int, Output) error { return nil }
func (BaseOperator) Finish(*Context, Output) error        { return nil }
func (BaseOperator) Close() error                         { return nil }

// Partition computes the destination shard of every row of a batch, for the
// hash, range and custom partitioners. The source shard and the index of the
// batch's first row within it are given; dst has the batch's length.
type Partition func(rows columnar.Batch, shard int, first int64, shards int, dst []int32) error

// Sink is the part of a sink that exists once, not per subtask. It makes the output that the
// subtasks wrote to a temporary place visible, or removes it.
type Sink interface {
	// Begin is called before any subtask starts; it refuses outputs that exist or
	// cannot be written.
	Begin() error
	// Commit is called once after every vertex of the job succeeded. It is not called on a
	// JointSink, which makes its output visible together with others.
	Commit() error
	// Abort is called instead of Commit when the job fails or is cancelled, for
	// sinks whose Commit was not reached, and after a Commit that failed. It leaves
	// nothing behind.
	Abort() error
}
