// Command compare puts our collectives beside those of Gloo and Open MPI, and
// beside what plain TCP does, on one machine in one go.
//
//	go build -o bin/ ./cmd/superstep && make -C bench/collective/peers
//	go run ./bench/collective/compare --superstep bin/superstep
//	go run ./bench/collective/compare --superstep bin/superstep --json > bench/results/collective.json
//	bin/superstep bench collective --collective exchange
//
// The last measures plain TCP alone. A program that is not there does not take part: without --superstep the peers
// are compared with each other, without mpirun Open MPI is left out.
//
// # What is compared
//
// The contestants, all between processes over loopback TCP unless it says
// otherwise:
//
//   - superstep: `superstep bench collective`, and with --algorithm also each
//     algorithm asked for;
//   - superstep in one process: its ranks as goroutines;
//   - Gloo, its rank waiting in a thread's epoll (async), in read (sync) or
//     polling (busy), with its best algorithm for the size;
//   - Open MPI, over TCP and in shared memory, out of place or in place, whatever
//     is faster, told to yield where there are more ranks than cores;
//   - raw TCP: two processes of our command, each of which sends as many bytes as the
//     collective has and receives as many at the same time: what an allreduce of
//     two ranks must move at least.
//
// For every collective, number of ranks and size, all take turns, a process group
// each, and another begins every round, so that a busy machine treats them alike.
// The first round measures all configurations of a peer, later ones only its best
// --keep. A figure is the median over the rounds of the median time of an
// operation, which is that of its slowest rank; before each, all ranks leave a
// barrier of the library. Of ours, too, the faster of out of place and in place
// counts. A ratio is the median of the ratios within rounds, of ours to the peer
// that is best in the median: under 1 we are faster.
//
// # What does not end
//
// A contestant that takes longer than --limit for one run is ended, with its process
// group, and given up: at the points that are left it "gave up after" so many seconds.
// The others go on. What was measured is printed, too, when the comparison is ended by
// SIGINT or SIGTERM or by its --deadline.
//
// # Waiting
//
// Polling makes small operations fast and costs a core all the time. So each
// contestant is asked once what waiting costs: in the midst of barriers one rank is
// stopped for a second, and the table says how much processor time the worst of the
// others used meanwhile. Who used more than a twentieth of it polls, and does not count for
// the ratio to the best quiet peer. This needs Linux's /proc.
package main
