// Package copies keeps copies of the states of queues in the memory of the workers of a job. If
// workers are lost, the job continues from the last superstep of which all pieces are left, without
// durable storage.
//
//	store := &copies.Store{}                     // lives as long as the process
//	for each attempt of the job {
//		choices := copies.Choose(held)           // held[w] has store.Held() of worker w
//		x, err := copies.New(copies.Config{Store: store, From: choices, …})
//		err = x.Inherit(ctx)                     // pieces that only workers hold which leave soon
//		for each choice {
//			pieces, err := x.Fetch(ctx, choice, needed)
//			…                                    // the queue continues after choice.Superstep
//		}
//		after each superstep, in all workers, if x.Settled(queue) in worker 0 {
//			x.Share(state, first, pieces)        // returns at once
//		}
//		x.Close()                                // before store.Held() for the next attempt
//	}
//
// The state of a queue after a superstep consists of numbered pieces: a head, and a piece of each
// subtask. Each worker has some of them. It puts them into its Store and sends copies to the next
// workers. If Config.Copies is c, then c+1 workers hold each piece. A state is complete when all of
// them do. The older states of the queue are dropped only then. So if at most c workers are lost at a
// time, the newest complete state is left, at whatever moment they are lost. Before an attempt ends on
// purpose, Gather makes all workers hold all pieces, so that any one of them may go on.
//
// The results of a job are deterministic. So pieces of the same state are interchangeable, even if
// different attempts made them. Of a queue, a Store holds the newest state that is complete and
// one that is under way. Pieces of the state after the last superstep may come from other workers
// before this one knows what has become of the one under way. All together take at most three times
// the memory of a state.
//
// Where a worker shares states with no other, Files keep them instead, for the next process of the job on
// the same machine: at most two of each queue, of which the newer may be incomplete.
//
// Copies are best effort. A worker that is gone delays no superstep and fails no job: its connections
// are tried again and again, until the Exchange is closed, because others notice the loss. Damaged
// bytes are noticed, and sent again.
//
// # Parts
//
//   - State, Held (state.go): what identifies a state, and what a process holds of it.
//   - Store (store.go): the pieces, and the reuse of their memory.
//   - Files (files.go): states in files. file.go has their format.
//   - Choose (choose.go): the decision from which states a job continues.
//   - core.go: the decisions when copies are sent and when a state is complete; gather.go: those of
//     Gather.
//   - Exchange (exchange.go): the goroutines around the core. link.go sends messages, serve.go
//     answers them, fetch.go asks for pieces, frame.go has the format of the connections.
//
// The lock of an Exchange guards its core and its links. It may be held when that of its Store is
// taken. Neither is held during input or output.
package copies
