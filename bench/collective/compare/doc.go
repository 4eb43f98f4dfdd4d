// Command compare measures our collectives beside those of Gloo and Open MPI, and beside plain
// TCP, on one machine in one run.
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
//   - Gloo, with its best algorithm for the size. Its rank waits in a thread's epoll (async),
//     in read (sync) or polling (busy);
//   - Open MPI, over TCP and in shared memory, out of place or in place, whichever is faster.
//     It is told to yield if there are more ranks than cores;
//   - raw TCP: each of two processes of our command sends as many bytes as the collective has,
//     and receives as many at the same time. An allreduce of two ranks must move at least that.
//
// For every collective, number of ranks and size, all contestants take turns, each in its own
// process group. Every round begins with another contestant, so that a busy machine treats them
// alike. The first round measures all configurations of a peer, and later rounds only its
// --keep best. A figure is the median over the rounds of the median time of an operation. The
// time of an operation is that of its slowest rank; before each operation, all ranks leave a
// barrier of the library. For ours, too, the faster of out of place and in place counts. A
// ratio is the median over rounds of our time divided by that of the peer with the best median:
// under 1 we are faster.
//
// # What does not end
//
// A contestant that takes longer than --limit for one run is ended with its process group and
// given up. For all remaining points the table then says that it "gave up after" so many
// seconds. The others go on. If SIGINT, SIGTERM or --deadline ends the comparison early, it
// prints what it has measured.
//
// # Waiting
//
// Polling makes small operations fast, but uses a core all the time. So the comparison measures
// once, for each contestant, the processor time of waiting: during barriers it stops one rank
// for a second, and the table shows how much processor time the busiest other rank used in that
// second. A contestant that used more than a twentieth of a second polls, and does not count in
// the ratio to the best quiet peer. The measurement needs Linux's /proc.
package main
