// Command curves draws what AllReduces cost on simulated networks, computes where one becomes
// cheaper than another, and compares prices and choices with measurements.
//
//	go run ./bench/collective/curves                                  # pictures and tables of docs/collectives.md
//	go run ./bench/collective/curves --network net.json --ranks 4,48  # of another network
//	go run ./bench/collective/curves compare --measured runs.jsonl    # prices beside measurements
//	go run ./bench/collective/curves choice --measured runs.jsonl     # choices beside measurements
//
// # Pictures and tables
//
// For each network, --out gets three pictures: time against size at --at ranks, and time
// against the number of ranks for a short and a long vector. The tables on standard output, in
// Markdown, give the cheapest algorithm for each size. Bisection finds the sizes at which it
// changes; an algorithm keeps its place until another is 3 per cent cheaper. One table is for
// all algorithms, and one for those that fold in the canonical order: a choice among these
// changes no bit.
//
// On networks with racks, algorithms that take dimensions get those of the racks, as from a
// tuner.
//
// # Comparison
//
// The measurements are lines of JSON as `superstep bench collective --json` prints
// them:
//
//	{"collective":"allreduce","algorithm":"ring","ranks":4,"bytes":1048576,"p50_us":1234.5}
//	{"kind":"ping-pong","bytes":8,"p50_us":21.3}
//
// The network is fitted to the lines with a kind (ping-pong, stream, fold, copy: see
// simulate.Kind), and with --fit-ranks also to the runs among so many ranks. Without such lines
// the network is taken as it is. All runs are priced on it, and other lines are skipped. The
// report has the error of the prices at 2 ranks from 1 MiB up. It also has the share of pairs
// that prices put in the measured order, among pairs of different programs whose measurements
// at one size and number of ranks differ by more than 20 per cent. With --check the exit code
// is 1 if an error exceeds 30 per cent or the share is below 80.
//
// # Choice
//
// The choice command needs measurements of the group's choice beside algorithms by name, in
// turn (--algorithm chosen,all --rounds 31). For each number of ranks and size it reports how
// far the chosen algorithm was from the best that a group may choose, and from the best of all.
// A line counts with the median of the medians of its rounds. Where two ranks may be on one
// core or on two, a round of one program takes up to nine times as long as the next, and the
// least time is a matter of luck. A choice is an algorithm, so rounds of that algorithm by its
// name count for it too. A group chooses among algorithms that fold in the canonical order for
// that number of ranks, since a choice must not change a bit. For collectives that do not fold,
// it chooses among all. With --check the exit code is 1 if fewer than 90 per cent of the
// choices take at most 1.2 times as long as the best that the group may choose.
package main
