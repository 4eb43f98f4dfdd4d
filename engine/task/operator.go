package task

import "github.com/superstep-ml/superstep/engine/columnar"

// Output receives the rows that an operator or a source emits.
type Output interface {
	// Emit passes on rows of a shard. The Output borrows the batch: the caller keeps its
	// reference and releases it. shard must be the current shard: the one for which ReadShard,
	// Process or EndShard was called or, in Finish, the last owned shard. Queues emit only in
	// Finish, under owned shards in increasing order.
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
	// EndShard is called once for each owned shard, also for a shard without rows.
	EndShard(c *Context, shard int, out Output) error
	// Finish may emit last rows, under the last owned shard.
	Finish(c *Context, out Output) error
	// Close releases what the operator holds.
	Close() error
}

// BaseOperator is embedded in an operator or source to supply empty methods for those that it
// does not implement.
type BaseOperator struct{}

// Open does nothing. The other methods do nothing either.
func (BaseOperator) Open(*Context) error                  { return nil }
func (BaseOperator) EndShard(*Context, int, Output) error { return nil }
func (BaseOperator) Finish(*Context, Output) error        { return nil }
func (BaseOperator) Close() error                         { return nil }

// Partition computes the destination shard of every row of a batch, for the hash, range and
// custom partitioners, and writes it to dst, which has the length of the batch. shard is the
// source shard, first is the index of the batch's first row in that shard, and shards is the
// number of shards.
type Partition func(rows columnar.Batch, shard int, first int64, shards int, dst []int32) error

// Sink is the part of a sink that exists once, not per subtask. It makes the output that the
// subtasks wrote to a temporary place visible, or removes it.
type Sink interface {
	// Begin is called before any subtask starts; it refuses outputs that exist or
	// cannot be written.
	Begin() error
	// Commit is called once after every vertex of the job succeeded. It is not called on a
	// JointSink, which makes its output visible together with the outputs of other sinks.
	Commit() error
	// Abort is called when the job fails or is cancelled, on sinks whose Commit was
	// not called and on a sink whose Commit failed. It removes everything that was
	// written.
	Abort() error
}
