// Command compare compares the collectives of Superstep with the collectives of Gloo and Open
// MPI, and with plain TCP, on one machine in one run.
//
//	go build -o bin/ ./cmd/superstep && make -C bench/collective/peers
//	go run ./bench/collective/compare --superstep bin/superstep
//	go run ./bench/collective/compare --superstep bin/superstep --json > bench/results/collective.json
//	bin/superstep bench collective --collective exchange
//
// The last command measures plain TCP alone. A contestant whose program is missing does not
// take part: without --superstep the peers are compared with each other, and without mpirun
// Open MPI is left out.
//
// # What is compared
//
// The contestants run in separate processes over loopback TCP, unless noted otherwise:
//
//   - superstep: `superstep bench collective`, and each algorithm that --algorithm names;
//   - superstep in one process: its ranks are goroutines;
//   - Gloo, with its fastest algorithm for the size, in three modes: a waiting rank sleeps
//     until a thread returns from epoll (async), blocks in read (sync) or polls (busy);
//   - Open MPI, over TCP and in shared memory, out of place or in place, whichever is faster.
//     If there are more ranks than cores, its ranks yield the core while they poll
//     (mpi_yield_when_idle);
//   - raw TCP: two processes of the command superstep send each other the bytes of the
//     collective's size at the same time. An allreduce between two ranks must send at least
//     this number of bytes.
//
// For every collective, number of ranks and size, all contestants take turns, each in its own
// process group. Every round begins with another contestant than the round before, so that
// other load on the machine affects all contestants alike. The first round measures all
// configurations of a peer, and later rounds measure only the --keep best configurations. A
// figure is the median over the rounds of the median time of an operation. The time of an
// operation is the time on its slowest rank; before each operation, all ranks pass a barrier of
// the library. The figure of a contestant is the figure of its best configuration; for
// Superstep the configurations of allreduce are out of place and in place. A ratio is the
// median over rounds of Superstep's time divided by the time of the peer with the best figure.
// If it is below 1, Superstep is faster.
//
// # Time limits
//
// A contestant that takes longer than --limit for one run is terminated with its process group,
// and does not run again. For this collective, number of ranks and size, and for all later
// ones, the table shows "gave up after" and the number of seconds for this contestant. The
// other contestants continue. If SIGINT, SIGTERM or --deadline ends the comparison early, it
// prints what it has measured.
//
// # Waiting
//
// Polling makes small operations fast, but uses a core all the time. The comparison therefore
// measures once, for each contestant, the processor time of waiting. While two ranks run
// barriers, it stops the process of one rank for a second, so that the other rank waits. The
// table shows the processor time that the busiest other process used in that second. If it is
// more than 0.05 s, the contestant is assumed to poll, and is left out of the ratio to the best
// quiet peer. The measurement needs Linux's /proc.
package main
