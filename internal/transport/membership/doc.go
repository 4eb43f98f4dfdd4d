// Package membership knows who is in a group of ranks, where they are, whether they
// are alive, and, once one is not, tells everybody the first cause.
//
// A group is a number of processes, each of which hosts some ranks. A process's part
// in it:
//
//	m, err := membership.Join(ctx, membership.Config{
//		Process: 2, Processes: 4, Ranks: []int{4, 5}, Size: 8,
//		Port:        port,
//		Coordinator: "10.0.0.1:7000",     // or a Store that all can reach
//		State:       whereMyRanksStand,
//	})                                    // all have joined, and agree about the group
//	defer m.Close()
//	connect(m.Table())                    // ranks and data addresses, by process
//	...
//	case <-m.Failed():                    // unblock everything; m.Err() says why
//	...
//	return m.Fail(err)                    // I found a failure; what is the first cause?
//	...
//	m.Leave(ctx)                          // done: nobody will miss me
//
// # Who decides
//
// Process 0 hosts the coordinator. Every other process has one control connection
// to it, which begins at its port (internal/peerlink) apart from all data connections, on which goroutines that do nothing else
// say every eighth of the detection time that they are alive. What happened first is
// what the coordinator heard first; it tells all, and what comes later, most of which
// follows from the first, changes nothing. Whoever cannot reach the coordinator takes
// that for the cause, or, if it is heard but does not answer, what it found itself.
//
// The coordinator finds out by itself:
//
//   - that a process died: its connection ends, at once when a process does, or it is
//     silent for the detection time, when a process or machine is stopped or cut off.
//     A process that wakes from such a silence finds the group's verdict waiting and
//     is not heard;
//   - that ranks disagree: they are, or were, in different operations of the same
//     number. A rank that waits in an operation for two looks, 20 ms apart, tells what
//     it is in, and any rank tells once a beat what it has been in of late: one that
//     only sends may be long through what others wait in;
//   - that nobody moves: all ranks are in operations, and none gets further;
//   - that a rank waits for one that left.
//
// A process that was itself stopped or starved has heard nobody for as long. Only
// time in which it got its turns, as its own ticks show, counts as silence of others.
//
// # Attempts
//
// A later attempt of a group, at the same port of process 0, takes the place of the one
// before, which ends with ErrReplaced where it has not failed. Processes, and their ports,
// stay: whoever survived the failure of an attempt joins the next, with whoever takes the
// place of those that were lost. What is left of the earlier one is refused.
//
// # The parts
//
//   - Config and Join (config.go, join.go, store.go, address.go): how processes find
//     one another. Everything that they must agree about is in the hello, and checked.
//   - Membership (group.go, sample.go): a process's side.
//   - core (core.go, forming.go, standing.go): what the coordinator decides,
//     as a function of events and times. The scripts under testdata/core are its
//     specification by example.
//   - coordinator and link (coordinator.go, link.go): goroutines and sockets around
//     the core and the membership.
//   - wire.go, cause.go: the messages, and the errors in them.
package membership
