// Package membership keeps track of the processes of a group of ranks: their addresses, and
// whether they are alive. When a process or a rank fails, all processes get the same cause,
// which is the first failure.
//
// A group consists of processes, and each process hosts some of the ranks. A process takes part
// in a group as follows:
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
// connections, a heartbeat is sent in every eighth of the detection time, by goroutines that do
// nothing else. The first failure that is reported to the coordinator, or that it detects, is
// the group's cause. The coordinator sends the cause to all processes. Later failures, which
// mostly follow from the first, change nothing. If a process cannot reach the coordinator, its
// cause is the loss of the coordinator. If a process receives heartbeats of the coordinator but
// no answer to its report, its cause is the failure that it reported.
//
// The coordinator itself detects these failures:
//
//   - A process dies. Its connection ends, which happens at once when the process ends, or the
//     process is silent for the detection time, which happens when the process or its machine
//     is stopped or disconnected from the network. A process that continues after such a
//     silence receives the group's cause, and its own messages are ignored.
//   - Ranks disagree: they are, or were, in different operations with the same sequence number.
//     Processes read the states of their ranks every 20 ms. If a rank is in the same operation
//     at two consecutive times, the operation is reported at once. The latest operations of all
//     ranks are reported with every heartbeat, since a rank that only sends may have finished
//     an operation in which other ranks wait.
//   - The group makes no progress: all ranks are in operations, and no rank sends or receives a
//     byte.
//   - A rank waits for a rank that has left.
//
// While a process is itself stopped, or gets no processor time, it receives nothing. So only
// time in which the process itself runs, according to its own ticks, counts as silence of other
// processes.
//
// # Attempts
//
// A later attempt of a group at the same port of process 0 replaces the earlier attempt. If the
// earlier attempt has not failed, it ends with ErrReplaced. Processes and their ports can be
// used for several attempts: the processes that survived the failure of an attempt join the
// next attempt, with replacements for those that were lost. Messages of an earlier attempt that
// arrive late are refused.
//
// # The parts
//
//   - Config and Join (config.go, join.go, store.go, address.go): how processes find one
//     another. The coordinator checks a process's hello, which has everything that the
//     processes must agree about.
//   - Membership (group.go, sample.go): the part of each process.
//   - core (core.go, forming.go, ranks.go): the decisions of the coordinator, as a function
//     of events and times. The scripts under testdata/core specify them by examples.
//   - coordinator and link (coordinator.go, link.go): the goroutines and sockets that the core
//     and the membership use.
//   - wire.go, encoding.go, cause.go: the messages, and the errors in them.
package membership
