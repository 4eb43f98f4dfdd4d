// Package task runs a plan, in one process or in parts.
//
//	report, err := task.Run(ctx, plan, graph, bindings, task.Env{})
//
// The plan says what runs where, Bindings connects its nodes to code, and Env is the
// environment of the run. When Run returns, every goroutine it started has ended, and nothing
// is left in memory or on disk, whether it succeeded, failed or was cancelled. The one
// exception is an *AbandonedError: a function that did not return goes on, on its goroutine and
// with the rows it reads.
//
// # The life of a run
//
//  1. The bindings are compared with the plan; nothing has been called yet.
//  2. A private directory for temporary files is made, and directories that killed runs left
//     beside it are removed. The receiving ends of all edges are made, and listen.
//  3. Sinks begin, in node order.
//  4. The rest is built: for each queue a gang, for each vertex and rank a subtask with its
//     operators and sending ends.
//  5. All subtasks run at once, one goroutine each.
//  6. Sinks commit, together, when every subtask has succeeded; see JointSink. Otherwise, and
//     if a commit fails, they are aborted.
//
// # Parts
//
// A plan may run as several workers, each in a process of its own with the subtasks of some
// slots; a Part says which. Run is the same code with one Worker that has all slots:
//
//	        worker 0              worker 1, 2, …
//	1, 2    NewWorker             NewWorker            then all listen
//	3       Prepare                                    the sinks have begun
//	4, 5    Run ─► outcome        Run ─► outcome       the others join the sinks
//	6       Commit(outcomes)                           or Abort, on all
//	        Close                 Close
//
// Whatever happens once happens on worker 0, which has subtask 0: single vertices, the
// criterion of queues, the commit. Rows go to the worker of their reader. Each worker has, per
// edge, one record of the source shards that have ended, and one copy of a side input. Values
// to be combined, such as accumulators, are returned by shard, so that MergeOutcomes folds them
// as one process would: the bits are the same. A worker that ends because of another one fails
// with an error that FollowsPeer knows. RunParts puts such workers into one process, for tests.
//
// # A subtask
//
// A subtask owns a contiguous range of shards and works on them in order. Its head is a source,
// or an operator that reads edges; its rows go to the operators chained behind it by direct
// calls, and to outgoing edges:
//
//	inbox ─► head ─► operator ─► operator ─► edge ─► inboxes of other subtasks
//	                    └──────► operator ─► edge
//
// Batches are passed by reference and borrowed: nothing is copied on the way.
//
// # Exchanges
//
// A source subtask sends as it produces, and never waits for another source subtask nor for the
// subtask that will read. A receiving end stores the rows, in memory while the budget lasts and
// then in one file, sorted by destination shard. It hands a destination shard on in the order
// (source shard, order of sending). All receiving ends of an edge share one record of which
// source shards have ended, so that an exchange costs what its rows and its shards cost:
// nothing is sent or kept for pairs of shards, or of subtasks, without rows. The sender of a
// message waits for the storing of earlier ones, by credits, and for nothing else. So the rows
// that operators see, and their order, do not depend on timing, parallelism or memory, and no
// graph can deadlock: a waiting subtask waits for a source shard to end, sources come before it
// in the topological order, and the first of them waits for nobody.
//
// The price is that a slow reader does not slow its sources down: rows that it has not read are
// held, then spilled. So an exchange that the plan calls pipelined and one that it calls
// materialised are the same here.
//
// # Queues
//
// The vertices of a queue run as one gang: a goroutine per rank runs the stages of each
// superstep in order, and all meet for the verdict of subtask 0. The failure of one ends the
// collectives of all. Where the ranks are in several processes they meet for a verdict only if
// there is a criterion to make one; see verdict.
//
// A queue can be cut after a superstep: the members hand over the state that its result depends
// on, as a Cut, and end. Another gang, of as many members or not, goes on from there, in the
// same vertex of the plan; see Env.Regroup. State that is not in a Cut, such as rows, is in the
// queue's session, in the store of the process.
//
// # Failures
//
// The first failure ends the run: contexts end, waits return, and only functions that close and
// abort are still called. When all subtasks have stopped, the failure of the lowest shard is
// returned as a *TaskError that names operator, source line, subtask and shard; failures that
// follow from the end of the run do not count. Panics of user code are errors with the frames
// where they began. Functions that go on for AbandonAfter are named in an *AbandonedError and
// abandoned.
//
// # Where to look
//
// worker.go has the life of a worker, run.go that of its subtasks, and build.go makes them.
// sinks.go begins and commits sinks, outcome.go has the result of a worker. subtask.go and
// chain.go drive operators. output.go and inbox.go are the two ends of an exchange, ends.go
// says when it is over, spill.go is its file, side.go has broadcast inputs. superstep.go has
// the loop of queues, gang.go their state, cut.go what another gang goes on from, regroup.go
// how it does. record.go has the report.
package task
