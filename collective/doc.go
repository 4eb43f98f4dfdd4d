// Package collective holds the primitives by which the ranks of a group combine
// and spread data: AllReduce, Broadcast, Reduce, Gather, AllGather, Scatter,
// ReduceScatter, AllToAll, Barrier, Scan, Exscan, and messages from rank to rank. It is
// used by the queue of iterations, and just as well on its own:
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
// timed: a reduction is an expression tree, fixed by its inputs alone, and every
// rank receives the value of that tree. There are two trees. Forests, lists of
// (node, buffer) over the aligned binary tree of a job's shards, are folded up that
// tree, so that the number of ranks does not matter either. Whole buffers, one per
// rank, are folded in the canonical tree over ranks. Operators need not commute.
//
// An end that is known to all: the first failure, be it an error passed to Close
// or Abort, a cancelled context, a rank that left while others wait for it, or
// ranks that disagree about what they are doing, or were, is what every waiting and
// later call returns. Nobody waits for ever, and after a call returns nobody else
// touches the slices passed to it.
//
// No allocation per operation, once the structure of an operation has been seen.
//
// # The parts
//
// A collective is a program, plain data: for each rank, lanes of instructions on
// chunks of buffers (package program). Package algorithm generates programs,
// package check proves that the parts of all ranks fit together and compute what
// they claim, in the tree they claim, package execute runs a part over
// connections, package simulate prices it on networks that are not there, and
// package tune chooses. Where ranks share memory ([LocalGroup]) there is no need to
// move bytes, and a faster executor does the same work: each rank folds the chunk
// that it owns straight out of the others' buffers and into their results.
//
// In this package, files named after memory hold what ranks of one process do in the memory
// they share, those named after messages what ranks do by messages wherever they live, and
// those named after remote, with network, tcp and tuning, what only groups of several
// processes do ([TCPGroup]). The others are the same for all.
package collective
