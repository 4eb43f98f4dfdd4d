// Package task runs a plan, in one process or in parts.
//
//	report, err := task.Run(ctx, plan, graph, bindings, task.Env{})
//
// The plan says which operators run in which subtasks, Bindings connects its nodes to code, and
// Env is the environment of the run. When Run returns, every goroutine that it started has
// ended, and its memory and temporary files are released, whether it succeeded, failed or was
// cancelled. The one exception is an *AbandonedError: it names user functions that have not
// returned. Their goroutines continue, and the rows that they read stay in memory.
//
// # The life of a run
//
//  1. The bindings are compared with the plan. None of the bound functions is called yet.
//  2. A private directory for temporary files is made, and directories that killed runs left
//     beside it are removed. The receiving ends of all edges are made and begin to listen.
//  3. Sinks begin, in node order.
//  4. The rest is built: a gang for each queue, and for each other vertex its subtasks with their
//     operators and sending ends.
//  5. All subtasks run at the same time, on one goroutine each.
//  6. When every subtask has succeeded, the sinks commit together; see JointSink. If a subtask
//     or a commit fails, the sinks are aborted.
//
// # Parts
//
// A plan may be run by several workers. Each is a process with the subtasks of some slots, which
// its Part lists. Run uses the same code with one Worker that has all slots. The steps are
// divided among the methods of Worker as follows:
//
//	        worker 0              worker 1, 2, …
//	1, 2    NewWorker             NewWorker            after that all workers listen
//	3       Prepare                                    after that the sinks have begun
//	4, 5    Run ─► outcome        Run ─► outcome       workers 1, 2, … join the sinks
//	6       Commit(outcomes)                           after a failure: Abort, on all workers
//	        Close                 Close
//
// Worker 0, which has subtask 0, does everything that is done only once: it runs vertices of
// parallelism 1 and the criteria of queues, and commits. Rows are sent to the worker of the
// subtask that reads them. For each edge, a worker has one record of the source shards that have
// ended; for a side edge, it has one copy of the rows. Values that are combined over shards,
// such as accumulators, are returned separately for each shard. MergeOutcomes folds them as a
// single process would, so that the bits are the same. If a worker ends because of another
// worker, FollowsPeer is true of its error. RunParts runs several workers in one process, for
// tests.
//
// # A subtask
//
// A subtask owns a contiguous range of shards and works on them in order. The head of its chain
// is a source, or an operator that reads edges. The rows of an operator go to the operators
// chained behind it by direct calls, and to outgoing edges:
//
//	inbox ─► head ─► operator ─► operator ─► edge ─► inboxes of other subtasks
//	                    └──────► operator ─► edge
//
// Batches are passed by reference, without a copy. The receiver borrows them.
//
// # Exchanges
//
// A subtask sends rows as it produces them. It waits neither for other sending subtasks nor for
// the subtask that will read the rows. A receiving end stores the rows by destination shard, in
// memory while the budget lasts and then in one file. It passes on the rows of a destination
// shard ordered by source shard and, within a source shard, by the order of sending. All
// receiving ends of an edge in a process share one record of the source shards that have ended.
// The cost of an exchange is thus proportional to its rows and its shards: nothing is sent or
// kept for pairs of shards, or of subtasks, that exchange no rows. A sender waits only until
// earlier messages are stored; credits limit how many are not stored yet. So the rows that
// operators see, and their order, do not depend on timing, parallelism or memory. No graph can
// deadlock: a subtask that waits for rows waits for a source shard to end. The senders of these
// rows are earlier in the topological order, and the first subtasks in that order read no rows,
// so they do not wait.
//
// The disadvantage is that there is no back-pressure: rows that a slow reader has not read are
// held in memory and then spilled. This package therefore treats the pipelined and the
// materialised exchanges of a plan alike.
//
// # Queues
//
// The vertices of a queue run as one gang: for each rank, one goroutine runs the stages of each
// superstep in order. After each superstep all ranks synchronize to get the verdict of subtask
// 0, which says whether the queue stops. If one rank fails, the collectives of all ranks end.
// Ranks in several processes synchronize after a superstep only if there is a criterion, or if
// the queue may be cut; see verdict.
//
// A queue can be cut after a superstep: the members hand over, as a Cut, the state on which the
// result depends, and end. Another gang, with the same or another number of members, continues
// from there in the same vertex of the plan; see Env.Regroup. State that is not in a Cut, such
// as rows, is in the queue's session, in the store of the process.
//
// # Failures
//
// The first failure ends the run: contexts end, waits return, and only functions that close and
// abort are still called. When all subtasks have stopped, the failure of the lowest shard is
// returned as a *TaskError that names operator, source line, subtask and shard. Failures that
// follow from the end of the run are ignored. Panics of user code become errors with the stack
// frames of the panic. Functions that have not returned within Env.AbandonAfter are abandoned,
// and named in an *AbandonedError.
//
// # Where to look
//
// worker.go has the steps of a worker; build.go makes its subtasks, and run.go runs them.
// sinks.go begins and commits sinks. outcome.go has the result of a worker. subtask.go and
// chain.go call operators. output.go and inbox.go are the two ends of an exchange, ends.go
// records which source shards of an edge have ended, and spill.go has the file of an inbox.
// side.go has broadcast inputs. superstep.go has the loop of queues, and gang.go their state.
// cut.go and regroup.go continue a queue with another gang. record.go makes the report. retained.go
// and continue.go have what a run takes over of an earlier one that has failed: retainedrows.go the
// rows of queues, moved.go those that other processes have, made.go the counts of operators, and
// heldside.go side inputs.
package task
