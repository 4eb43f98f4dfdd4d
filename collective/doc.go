// Package collective has the operations with which the ranks of a group combine
// and spread data: AllReduce, Broadcast, Reduce, Gather, AllGather, Scatter,
// ReduceScatter, AllToAll, Barrier, Scan, Exscan, and messages from rank to rank. The
// queue of iterations uses it, and it can be used on its own:
//
//	group := collective.NewLocalGroup(4)
//	for i := range group.Size() {
//		go func() {
//			c := group.Rank(i) // this goroutine's end of the group
//			defer c.Close(nil)
//			err := collective.AllReduce(c, &collective.Reduction[float64]{
//				Name: "gradient", Op: collective.Sum[float64](), Whole: mine, Out: mine,
//			})
//			...
//		}()
//	}
//
// # What can be relied on
//
// The same bits everywhere, whichever executor runs and however goroutines are
// timed: a reduction is an expression tree that depends only on its inputs, and every
// rank receives the value of that tree. There are two trees. Forests, lists of
// (node, buffer) over the aligned binary tree of a job's shards, are folded up that
// tree, so the number of ranks does not matter either. Whole buffers, one per rank, are
// folded in the canonical tree over ranks. Operators need not commute.
//
// The same failure on all ranks: every waiting and later call returns the first cause. It
// may be an error passed to Close or Abort, a cancelled context, a rank that left while
// others wait for it, or ranks that make different calls. No call waits for ever. After a
// call returns, nothing touches the slices passed to it.
//
// No allocation per operation, once the structure of an operation has been seen.
//
// # The parts
//
// A collective is a program, plain data: for each rank, lanes of instructions on
// chunks of buffers (package program). Package algorithm generates programs. Package
// check proves that the parts of all ranks fit together and compute what they claim, in
// the tree they claim. Package execute runs a part over connections, package simulate
// predicts its time on a given network, and package tune chooses. Where ranks share
// memory ([LocalGroup]), no bytes need to be sent, and a faster executor does the same
// work: each rank folds its own chunk directly from the buffers of the others into their
// results.
//
// In this package, files named memory* are for ranks of one process that share memory.
// Files named messages* are for ranks that send messages, in one process or several. The
// files remote*, network, tcp and tuning are only for groups of several processes
// ([TCPGroup]). All other files are for every group.
package collective
