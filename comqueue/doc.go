// Package comqueue iterates over partitioned data: a queue of compute functions and
// communication stages that every subtask runs, superstep after superstep, over objects the
// stages share.
//
// # A queue
//
//	var (
//		points   = comqueue.PartitionedRows("points")
//		initial  = comqueue.BroadcastRows("initial")
//		centres  = shared.Replicated("centres", shared.Float64s())
//		sums     = shared.Scratch[[]float64]("sums")
//	)
//
//	model := comqueue.New(b, "kmeans").
//		InitWithPartitionedData(points, rows).   // each subtask holds the shards it owns
//		InitWithBroadcastData(initial, start).   // one immutable copy per process
//		Begin(firstCentres).                     // state, once: func(*comqueue.ComContext) error
//		Init(room).                              // scratch, whenever a subtask joins
//		Add(comqueue.ForEachShard(sums, assign)).// assign(ctx, shard, out) fills one buffer per shard
//		Add(comqueue.AllReduce(sums)).           // every subtask gets the sum over all shards
//		Do(update).                              // update(ctx), on every subtask
//		SetCompareCriterionOfNode0(converged).   // true stops
//		CloseOnNode0(comqueue.Output(result)).   // rows of the queue, once
//		SetMaxIter(50).
//		Exec()                                   // *engine.Dataset
//
// # Rows
//
// A queue is given its rows under keys, shard by shard or broadcast, and reads them by column.
// A column is made beside its key, and name and type are checked when the job is built:
//
//	edges := comqueue.PartitionedRows("edges")
//	src   := edges.Ints("src")
//	...
//	for i, from := range src.Get(ctx, shard) { ... }
//
// Get of the key itself returns the rows as a Frame, for code that learns at run time which
// columns there are.
//
// # What happens
//
// Supersteps count from 1. In each, the stages run in the order they were added on every
// subtask, also where a subtask's shards hold no rows. After the last stage the criterion runs
// on subtask 0 alone and its verdict is broadcast, so that every subtask takes the same branch.
// The queue also ends at SetMaxIter; Exec refuses a queue with neither. Then CloseOnNode0 emits
// the result rows once, or CloseWith emits rows per shard, in shard order. Exec does not change
// the queue: called twice, it adds two queues.
//
// # Objects
//
// Stages share objects through typed keys of package shared. An object belongs to one subtask
// of one queue and is gone when the queue ends, however it ends. Replicated keys hold the same
// value on every subtask, PerShard keys belong to a shard, Scratch keys are disposable. Reading
// a key that was never put fails the subtask with an error that names the key.
//
// State that the result depends on from one superstep to the next must be under keys that are
// kept, Replicated and PerShard, or in the snapshots of stages that AddNew makes. A subtask
// that joins later finds nothing else. Begin runs once and makes state; Init makes scratch on
// every subtask that joins. The option engine.CheckState makes queues forget everything else
// between supersteps, so that a test that compares the results with and without it finds
// missing state. engine.CheckResume makes queues go on with other subtasks, at another
// parallelism, also after the last superstep. So the close of a queue must make its rows from
// kept objects and from what Init makes.
//
// # Communicate functions
//
// Collectives run between compute functions. Each is a stage of its own in the plan (AllReduce
// is three), with counts of calls, bytes and seconds:
//
//	AllReduce(buffer)                    every subtask gets the fold of all buffers
//	ReduceScatter(from, into)            ... and its own block of it only
//	Broadcast(buffer), BroadcastObject   every subtask gets that of subtask 0, or of the Root
//	AllGather(from, into)                every subtask gets all buffers, one behind the other
//	Gather(from, into)                   ... subtask 0 only, or the Root
//	AllReduceObject, -ShardObjects       objects of any type, by a codec and a function that merges
//	AllReduceShardSparse                 sums of vectors that are mostly zero
//	Barrier()                            nobody passes before all have come
//
// All subtasks run them in the same order. Buffers of lengths that the function does not allow,
// or different operators, are errors that name two subtasks. A stage does not change its input,
// unless the result goes under the same key. The subtask may change the result until the stage
// runs again and overwrites it. Algorithm names the algorithm of a stage. Without it, one is
// chosen among those that give the same bits, and chosen anew as sizes change. WithoutZeros
// sends large buffers that are mostly zero without their zeros.
//
// Repeat and While make inner loops of stages. Repeat ends by a criterion on subtask 0, While
// by a condition that every subtask evaluates by itself.
//
// # The same bits
//
// ForEachShard hands a zeroed buffer to its function for each shard that has rows, and folds
// the buffers up the aligned tree over the shards; AllReduce finishes that tree. So the sum is
// the same, to the last bit, at any parallelism. A buffer that a compute function fills as a
// whole, one per subtask, is folded in a fixed tree over the subtasks instead: the same bits on
// every run, but not at every parallelism, and the plan says so. The same goes for
// ReduceScatter, and for objects and sparse vectors, of shards or one per subtask. Algorithms
// that do not take the parts of shards, such as a ring, fold the parts of each subtask first.
// Then the result depends on parallelism too, and the plan says so.
//
// A function given to Do is shared by all subtasks of a process and must not keep state. Stages
// with state are added with AddNew, one instance per subtask.
//
// # Several processes
//
// On a cluster the subtasks of a queue are in several processes, and no bit changes. Broadcast
// data are there once per process. Subtasks in different processes wait for each other in
// communicate functions, and for the verdict of the criterion, if there is one; a queue with
// neither lets them be supersteps apart. Values reported by shard are folded as in one process.
// They reach the progress of the job in rounds, about ten a second and at most 64 supersteps
// apart, so that reporting does not slow supersteps down. The training record has every value
// in its place.
package comqueue
