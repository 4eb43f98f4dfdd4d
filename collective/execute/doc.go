// Package execute runs collective programs over the connections of a mesh.
//
//	part := allReduce.Generate(algorithm.Params{P: p}, rank)
//	runner, err := execute.New(ctx, part, node, execute.Options{})
//	defer runner.Close()
//	for seq := uint64(1); ; seq++ {
//		present, err := runner.Run(&execute.Operation{Seq: seq, ...})
//	}
//
// A [Runner] opens the connections that its program needs. It then runs the program any number
// of times, on data of any length, without allocating. There are two ways to run, which give
// the same bits and the same messages:
//
// If all messages are short, the caller's goroutine runs all parts of instructions, in the
// order of program.SerialOrder, and sending never waits. This way has the least latency.
//
// Otherwise each half of each lane has a goroutine of a [Pool], and messages are sent in
// segments. Steps on the same chunks follow each other segment by segment, so that trees,
// chains and rings become pipelines, and one segment is folded while the operating system
// receives the next segment.
//
// This package handles elements as bytes: an Operation has the size of an element, and a
// [Reducer] that folds elements. Contributions of forest programs may be absent; see forest.go.
//
// The header of every message is compared with the receiver's current step before the data is
// used. The first failure ends the group and all halves on all ranks. A failure is a broken
// connection, a mismatch between the operations of two ranks, or a panic of an operator. Run
// returns the cause once nothing refers to the caller's memory any more.
package execute
