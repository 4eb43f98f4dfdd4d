// Command curves draws what AllReduces cost on simulated networks, tells where one
// becomes cheaper than another, and compares prices and choices with measurements.
//
//	go run ./bench/collective/curves                                  # pictures and tables of docs/collectives.md
//	go run ./bench/collective/curves --network net.json --ranks 4,48  # of another network
//	go run ./bench/collective/curves compare --measured runs.jsonl    # prices beside measurements
//	go run ./bench/collective/curves choice --measured runs.jsonl     # choices beside measurements
//
// # Pictures and tables
//
// For each network there are three pictures, in --out: time against size at --at ranks,
// and time against the number of ranks for a short and a long vector. The tables, on
// standard output in Markdown, give the cheapest algorithm for each size, with the
// sizes at which that changes found by bisection (an algorithm keeps its place until another
// is 3 per cent cheaper); one table is for all algorithms, one
// for those that fold in the canonical order, among which a choice changes no bit.
//
// On networks with racks, algorithms that take dimensions are given those of the racks,
// as a tuner would.
//
// # Comparison
//
// The measurements are lines of JSON as `superstep bench collective --json` prints
// them:
//
//	{"collective":"allreduce","algorithm":"ring","ranks":4,"bytes":1048576,"p50_us":1234.5}
//	{"kind":"ping-pong","bytes":8,"p50_us":21.3}
//
// Lines with a kind (ping-pong, stream, fold, copy: see simulate.Kind) are what the
// network is fitted to, and with --fit-ranks the runs among so many ranks too; without
// any, the network is taken as it is. All runs are priced on it, and lines about
// anything else skipped. The report has the error of the price at 2 ranks from 1 MiB up, and the
// share of the pairs of different programs, of those that differ by more than 20 per cent when
// measured at one size and number of ranks, that prices put in the same order. With
// --check the exit code is 1 where an error exceeds 30 per cent or the share is below
// 80.
//
// # Choice
//
// Of measurements in which what the group chose ran beside algorithms by name, in turn
// (--algorithm chosen,all --rounds 31), choice tells how far the chosen one was from the
// best, for each number of ranks and size: from the best of those that a group chooses
// among, and from the best of all. What counts of a line is the median of the medians of
// its rounds: where two ranks may be on one core or on two, a round of one program takes
// up to nine times as long as the next, and the least tells who was lucky. A choice is of
// an algorithm, and counts with the rounds of that by its name, too. A group chooses among
// algorithms that fold in the canonical order for that number of ranks, since a choice
// must not change a bit; of collectives that do not fold, among all. With --check the exit
// code is 1 where less than 90 per cent of the choices take at most 1.2 times as long as
// the best among which they were made.
package main
