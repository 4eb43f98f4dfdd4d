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
//		Begin(firstCentres).                     // makes state, once: func(*comqueue.ComContext) error
//		Init(room).                              // makes scratch, whenever a subtask joins
//		Add(comqueue.ForEachShard(sums, assign)).// assign(ctx, shard, out) fills one buffer per shard
//		Add(comqueue.AllReduce(sums)).           // every subtask gets the sum over all shards
//		Do(update).                              // update(ctx), on every subtask
//		SetCompareCriterionOfNode0(converged).   // true stops the queue
//		CloseOnNode0(comqueue.Output(result)).   // makes the rows of the queue, once
//		SetMaxIter(50).
//		Exec()                                   // *engine.Dataset
//
// # Rows
//
// A queue gets its rows under keys, either partitioned by shard or broadcast, and reads them by
// column. A column is made from its key when the queue is described. Its name and type are
// checked when the job is built:
//
//	edges := comqueue.PartitionedRows("edges")
//	src   := edges.Ints("src")
//	...
//	for i, from := range src.Get(ctx, shard) { ... }
//
// The key's own Get returns the rows as a Frame. Get is for code that learns only at run time
// which columns exist.
//
// # What happens
//
// Supersteps count from 1. In each superstep every subtask runs the stages in the order in
// which they were added, even if its shards hold no rows. After the last stage the criterion
// runs on subtask 0 only, and its verdict is broadcast, so that every subtask takes the same
// branch. The queue also ends after the number of supersteps given by SetMaxIter. Exec refuses
// a queue that has neither a criterion nor a maximum. When the queue has ended, CloseOnNode0
// emits the result rows once, or CloseWith emits rows per shard, in shard order. Exec does not
// change the queue: called twice, it adds two queues.
//
// # Objects
//
// Stages share objects through typed keys of package shared. An object belongs to one subtask
// of one queue, and is released when the queue ends, whether it succeeds or fails. A Replicated
// key has the same value on every subtask. A PerShard key has a value for each shard. The
// values of a Scratch key may be dropped between supersteps. Reading a key that was never put
// fails the subtask with an error that names the key.
//
// State that a later superstep needs must be kept: under Replicated and PerShard keys, or in
// the snapshots of stages that AddNew makes. A subtask that joins later finds only this state.
// Begin runs once and makes state; Init makes scratch on every subtask that joins. The option
// engine.CheckState makes queues drop all other state between supersteps. A test that compares
// the results with and without the option finds state that should have been kept. The option
// engine.CheckResume makes queues continue with other subtasks, at another parallelism, even
// after the last superstep. So the close function of a queue must make its rows from kept
// objects and from what Init makes.
//
// # Communicate functions
//
// Collectives run between compute functions. Each collective is a stage of its own in the plan
// (AllReduce is three stages), and the plan counts its calls, bytes and seconds:
//
//	AllReduce(buffer)                    every subtask gets the fold of all buffers
//	ReduceScatter(from, into)            every subtask gets one block of the fold of all buffers
//	Broadcast(buffer), BroadcastObject   every subtask gets the buffer of subtask 0, or of the Root
//	AllGather(from, into)                every subtask gets all buffers, concatenated
//	Gather(from, into)                   subtask 0, or the Root, gets all buffers, concatenated
//	AllReduceObject, -ShardObjects       AllReduce of objects of any type, with a codec and a merge function
//	AllReduceShardSparse                 sums of vectors that are mostly zero
//	Barrier()                            no subtask passes before all have arrived
//
// All subtasks run these stages in the same order. If the lengths of the subtasks' buffers or
// their operators do not fit together, the error names two subtasks. A stage does not change
// its input, unless its result has the same key. The subtask may change the result; the next
// run of the stage overwrites it. Algorithm names the algorithm of a stage. Without the option
// Algorithm, the stage chooses among the algorithms that give the same bits, and chooses again
// when sizes change. WithoutZeros sends large buffers that are mostly zero without their zeros.
//
// Repeat and While make inner loops of stages. A criterion that subtask 0 evaluates ends a
// Repeat; a condition that every subtask evaluates for itself ends a While.
//
// # The same bits
//
// ForEachShard calls its function with a zeroed buffer for each shard that has rows. It folds
// the buffers up the aligned tree over the shards, and AllReduce finishes the fold in that
// tree. So the sum is the same, to the last bit, at any parallelism. A compute function may
// instead fill one whole buffer per subtask. Such buffers are folded in a fixed tree over the
// subtasks: every run gives the same bits, but another parallelism gives other bits, and the
// plan says so. ReduceScatter and the reductions of objects and sparse vectors follow the same
// rule: the bits are independent of parallelism if the inputs belong to shards, but not if
// there is one input per subtask. Algorithms that do not take the parts of shards, such as a
// ring, fold the parts of each subtask first. Then the result depends on parallelism too, and
// the plan says so.
//
// A function given to Do is shared by all subtasks of a process and must not keep state. A
// stage with state is added with AddNew, which makes one instance of it per subtask.
//
// # Several processes
//
// On a cluster the subtasks of a queue are in several processes. The results have the same bits
// as in one process. Each process has one copy of broadcast data. Subtasks in different
// processes wait for each other in communicate functions, and for the verdict of the criterion,
// if there is one; in a queue with neither, one subtask may be several supersteps ahead of
// another. Values reported by shard are folded in the same order as in one process. So that
// reporting does not slow supersteps down, the values are sent to the progress of the job in
// rounds, which are about a tenth of a second and at most 64 supersteps apart. The training
// record has each value at its superstep.
package comqueue
