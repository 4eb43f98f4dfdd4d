// Package comqueue iterates over partitioned data: a queue of compute functions
// and communication stages that every subtask runs, superstep after superstep,
// over objects the stages share.
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
// A queue is given its rows under keys, shard by shard or broadcast, and reads them by
// column. A column is made beside its key, and name and type are checked when the job is
// built:
//
//	edges := comqueue.PartitionedRows("edges")
//	src   := edges.Ints("src")
//	...
//	for i, from := range src.Get(ctx, shard) { ... }
//
// Get of the key itself gives the rows as a Frame, for who finds out at run time which columns
// there are.
//
// # What happens
//
// Supersteps count from 1. In each, the stages run in the order they were added
// on every subtask, also where a subtask's shards hold no rows. After the last
// stage the criterion runs on subtask 0 alone and its verdict is broadcast, so
// that every subtask takes the same branch. The queue also ends at SetMaxIter;
// Exec refuses a queue with neither. Then CloseOnNode0 gives the result rows
// once, or CloseWith gives rows per shard, in shard order. Exec does not change
// the queue: called twice, it adds two queues.
//
// # Objects
//
// Stages share objects through typed keys of package shared. An object belongs
// to one subtask of one queue and is gone when the queue ends, however it ends.
// Replicated keys hold the same value on every subtask, PerShard keys belong to
// a shard, Scratch keys are disposable. Reading a key that was never put fails
// the subtask with an error that names the key.
//
// What decides the result of a queue from one superstep to the next is under keys
// that are kept, Replicated and PerShard, and in the snapshots of stages that AddNew
// makes: that is all that a subtask finds which joins later. Begin runs once and makes
// state, Init makes scratch on every subtask that joins. The option engine.CheckState
// has queues forget everything else between supersteps: a test that compares the
// results with and without it finds what is missing. engine.CheckResume has them go on
// with other subtasks, at another parallelism, also after the last superstep: so what
// closes a queue makes its rows of what is kept, and of what Init makes.
//
// # Communicate functions
//
// Between compute functions stand collectives, each a stage of its own in the plan
// (AllReduce three), which counts its calls, bytes and seconds:
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
// All subtasks run them, in the same order; buffers of other lengths than the
// function allows, or other operators, are errors that name two subtasks. What a stage
// reads under its key it leaves as it is, unless the result goes under the same key;
// what it writes is the subtask's own to change, until the stage runs again and writes
// the same memory. Algorithm names the algorithm that carries a stage; without it the
// choice is made, and remade as sizes change, among those that give the same bits.
// WithoutZeros has large buffers that are mostly zero travel without their zeros.
//
// Repeat and While make inner loops of stages: until subtask 0 has had enough, or as long
// as every subtask knows by itself that they go on.
//
// # The same bits
//
// ForEachShard hands a zeroed buffer to its function for each shard that has
// rows, and folds the buffers up the aligned tree over the shards; AllReduce
// finishes that tree. So the sum is the same, to the last bit, at any
// parallelism. A buffer that a compute function fills as a whole, one per
// subtask, is folded in a fixed tree over the subtasks instead: the same bits on
// every run, but not at every parallelism, and the plan says so. The same goes for
// ReduceScatter, and for objects and sparse vectors, of shards or one per subtask.
// Algorithms that do not take the parts of shards, such as a ring, fold those of each
// subtask first: then the result depends on parallelism too, and the plan says so.
//
// A function given to Do is shared by all subtasks of a process and keeps no
// state; what has state is added with AddNew, one instance per subtask.
//
// # Several processes
//
// On a cluster the subtasks of a queue are in several processes, and no bit changes.
// Broadcast data are there once per process. Subtasks in different processes wait for
// each other in communicate functions, and for the verdict of the criterion, if there
// is one; a queue with neither lets them be supersteps apart. What subtasks report by
// shard is folded as ever, but reaches those who follow the job in rounds, about ten a
// second and at most 64 supersteps apart, so that reporting does not slow supersteps
// down; the training record has every value in its place.
package comqueue
