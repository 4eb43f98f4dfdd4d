// Package precopy copies rows of queues to the processes that will own their shards in the next attempt of a job,
// while the supersteps of this attempt go on.
//
//	n, err := precopy.New(precopy.Config{Port: port, Worker: 2, Attempt: 1, Rows: retained, …})
//	defer n.Close()                                // in each process of the attempt; ends all that goes on
//	…
//	outcomes := n.Direct(ctx, orders)              // on worker 0, before a planned change of workers
//
// Worker 0 knows which process has which shard, and which process will have it. It sends each process that gets
// shards an order: which shards of which queue to take from which worker. That process asks the workers for them,
// shard by shard, over one connection for each worker, and answers to worker 0 when it is done. Rows are immutable
// while a queue runs, so a copy needs no second round, unlike the memory of a machine in live migration (Clark et
// al., Live Migration of Virtual Machines, NSDI 2005), from which the name of this package is taken.
//
// Copying is best effort. A shard that its worker cannot give, for which the taker has no room, or whose
// transfer fails, is left out, and moves when the next attempt begins. A connection is given up when the time of
// the order is over, or when its peer is silent for Config.Patience. Nothing is sent again.
//
// # Parts
//
//   - Node (node.go): the process's end of all connections. order.go: worker 0's part, and the execution of an
//     order. take.go asks for shards, give.go gives them.
//   - frame.go, message.go: the format of the connections.
//
// One lock guards a Node. It is not held during input or output.
package precopy
