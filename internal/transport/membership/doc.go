// Package membership keeps track of the processes of a group of ranks: their addresses and
// whether they are alive. When a process or a rank fails, all processes get the same cause, the
// first failure.
//
// A group is a number of processes, each of which hosts some ranks. Each process takes part as
// follows:
//
//	m, err := membership.Join(ctx, membership.Config{
//		Process: 2, Processes: 4, Ranks: []int{4, 5}, Size: 8,
//		Port:        port,
//		Coordinator: "10.0.0.1:7000",     // or a Store that all processes can reach
//		State:       whereMyRanksStand,
//	})                                    // all processes have joined, and agree about the group
//	defer m.Close()
//	connect(m.Table())                    // ranks and data address of each process
//	...
//	case <-m.Failed():                    // end all waiting calls; m.Err() is the cause
//	...
//	return m.Fail(err)                    // reports a failure, and returns the group's cause
//	...
//	m.Leave(ctx)                          // this process takes part in no further operation
//
// # The coordinator
//
// Process 0 hosts the coordinator. Every other process has one control connection, separate
// from all data connections, to the port of process 0 (internal/peerlink). On control
// connections, goroutines that do nothing else send a heartbeat every eighth of the detection
// time. The first failure that the coordinator learns of is the group's cause, which it sends
// to all processes. Later failures, which mostly follow from the first, change nothing. For a
// process that cannot reach the coordinator, the loss of the coordinator is the cause. For a
// process that receives heartbeats of the coordinator but no answer to its report, the failure
// that it reported is the cause.
//
// The coordinator itself detects:
//
//   - that a process died. Its connection ends, as happens at once when a process ends, or it
//     is silent for the detection time, as happens when a process or machine is stopped or cut
//     off. A process that continues after such a silence receives the group's cause, and its
//     own messages are ignored;
//   - that ranks disagree: they are, or were, in different operations with the same sequence
//     number. Processes look at the states of their ranks every 20 ms. An operation in which a
//     rank is at two consecutive looks is reported at once. The latest operations of all ranks
//     are reported with every heartbeat, since a rank that only sends may have finished an
//     operation in which other ranks wait;
//   - that the group makes no progress: all ranks are in operations, and none sends or receives
//     a byte;
//   - that a rank waits for a rank that has left.
//
// A process that was itself stopped or got no processor has received nothing in that time. Only
// time in which the process itself ran, as its own ticks show, counts as silence of other
// processes.
//
// # Attempts
//
// A later attempt of a group, at the same port of process 0, replaces the earlier attempt,
// which ends with ErrReplaced if it has not failed. Processes and their ports can be used for
// several attempts: the processes that survived the failure of an attempt join the next
// attempt, with replacements for those that were lost. Late messages of an earlier attempt are
// refused.
//
// # The parts
//
//   - Config and Join (config.go, join.go, store.go, address.go): how processes find one
//     another. The coordinator checks a process's hello, which has everything that the
//     processes must agree about.
//   - Membership (group.go, sample.go): the part of each process.
//   - core (core.go, forming.go, standing.go): the decisions of the coordinator, as a function
//     of events and times. The scripts under testdata/core specify them by examples.
//   - coordinator and link (coordinator.go, link.go): the goroutines and sockets that the core
//     and the membership use.
//   - wire.go, encoding.go, cause.go: the messages, and the errors in them.
package membership
