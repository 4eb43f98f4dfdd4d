// Package collective has the operations with which the ranks of a group combine and exchange
// data: AllReduce, Broadcast, Reduce, Gather, AllGather, Scatter, ReduceScatter, AllToAll,
// Barrier, Scan, Exscan, and messages from rank to rank. Package comqueue uses it for its
// iterations. It can also be used on its own:
//
//	group := collective.NewLocalGroup(4)
//	for i := range group.Size() {
//		go func() {
//			c := group.Rank(i) // the handle of rank i
//			defer c.Close(nil)
//			err := collective.AllReduce(c, &collective.Reduction[float64]{
//				Name: "gradient", Op: collective.Sum[float64](), Whole: mine, Out: mine,
//			})
//			...
//		}()
//	}
//
// # Guarantees
//
// All ranks get the same bits, for any executor and any scheduling of goroutines. A reduction
// is an expression tree that depends only on its inputs, and every rank receives the value of
// that tree. There are two kinds of trees. A forest is a list of (node, buffer) pairs over the
// aligned binary tree of a job's shards. Forests are folded up that tree, so their result does
// not depend on the number of ranks either. Whole buffers, one per rank, are folded in the
// canonical tree over ranks. Operators need not commute.
//
// All ranks get the same error: after a failure, every waiting and every later call returns the
// first cause. The cause may be an error passed to Close or Abort, a cancelled context, a rank
// that left while other ranks wait for it, or a mismatch between the calls of two ranks. No
// call waits for ever. After a call returns, the package does not access the slices passed to
// it any more.
//
// An operation allocates nothing if the group has run an operation of the same structure
// before.
//
// # Structure
//
// A collective is carried out by one program for each rank. A program is plain data: lanes of
// instructions on chunks of buffers (package program). Package algorithm generates programs.
// Package check proves that the programs of all ranks together compute the collective, in the
// expression tree that they claim. Package execute runs a program over connections, package
// simulate predicts the time on a given network, and package tune chooses the algorithm. Where
// ranks share memory ([LocalGroup]), no bytes need to be sent, and a faster executor does the
// same work: each rank folds its own chunk directly from the input buffers of all ranks into
// the result buffers of all ranks.
//
// In this package, files named memory* are for ranks of one process that share memory.
// Files named messages* are for ranks that send messages, in one process or several. The
// files remote*, network, tcp and tuning are only for groups of several processes ([TCPGroup]).
// All other files are for all groups.
package collective
