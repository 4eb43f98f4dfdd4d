// Package membership keeps track of the processes of a group of ranks: their addresses and
// whether they are alive. Once one fails, it tells the first cause to all.
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
// Process 0 hosts the coordinator. Every other process has one control connection to its port
// (internal/peerlink), apart from all data connections. On it, goroutines that do nothing else
// send a sign of life every eighth of the detection time. The first failure that the
// coordinator hears of is the cause; it tells all. Later failures, which mostly follow from the
// first, change nothing. For a process that cannot reach the coordinator, that is the cause; if
// it hears the coordinator but gets no answer, the cause is what it found itself.
//
// The coordinator finds out by itself:
//
//   - that a process died: its connection ends, which happens at once when a process ends, or
//     it is silent for the detection time, when a process or machine is stopped or cut off. A
//     process that wakes from such a silence finds the group's cause waiting, and its own
//     messages are ignored;
//   - that ranks disagree: they are, or were, in different operations of the same number. A
//     rank that is in the same operation at two looks, 20 ms apart, reports that operation.
//     Every rank reports once a beat its latest operations, as one that only sends may have
//     finished an operation in which others wait;
//   - that the group stands still: all ranks are in operations, and none makes progress;
//   - that a rank waits for one that has left.
//
// A process that was itself stopped or starved has received nothing in that time. Only time in
// which it got its turns, as its own ticks show, counts as silence of others.
//
// # Attempts
//
// A later attempt of a group, at the same port of process 0, replaces the earlier one, which
// ends with ErrReplaced if it has not failed. Processes and their ports stay: those that
// survived the failure of an attempt join the next one, with replacements for those that were
// lost. Late messages of the earlier attempt are refused.
//
// # The parts
//
//   - Config and Join (config.go, join.go, store.go, address.go): how processes find one
//     another. The hello has everything that they must agree about, and it is checked.
//   - Membership (group.go, sample.go): a process's side.
//   - core (core.go, forming.go, standing.go): what the coordinator decides,
//     as a function of events and times. The scripts under testdata/core are its
//     specification by example.
//   - coordinator and link (coordinator.go, link.go): goroutines and sockets around
//     the core and the membership.
//   - wire.go, cause.go: the messages, and the errors in them.
package membership
