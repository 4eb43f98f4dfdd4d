// Package execute runs collective programs over the connections of a mesh.
//
//	part := allReduce.Generate(algorithm.Params{P: p}, rank)
//	runner, err := execute.New(ctx, part, node, execute.Options{})
//	defer runner.Close()
//	for seq := uint64(1); ; seq++ {
//		present, err := runner.Run(&execute.Operation{Seq: seq, ...})
//	}
//
// A [Runner] opens the connections that its program needs and then runs it again
// and again, on data of any length, without allocating. There are two ways to run,
// which give the same bits and the same messages:
//
// Where all messages are short, everything happens on the caller's goroutine, in the
// order of program.SerialOrder. Sending never waits then. This is the way of least latency.
//
// Else each half of each lane has a goroutine of a [Pool], and messages travel in
// segments. Steps on the same chunks follow each other segment by segment, so
// that trees, chains and rings become pipelines, and one segment is folded while the
// system receives the next.
//
// Elements are bytes to this package: an Operation says how long one is, and brings
// a [Reducer] that folds them. Contributions of forest programs may be absent;
// forest.go says how they travel.
//
// Every message is checked against what the receiver is in before its data is
// touched. The first failure, be it of a connection, of ranks that disagree, or of
// an operator that panics, ends the group and with it all halves on all ranks; Run
// returns its cause once nobody refers to the caller's memory any more.
package execute
