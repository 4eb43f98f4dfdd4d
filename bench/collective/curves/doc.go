// Command curves draws the prices of AllReduce algorithms on simulated networks; a price is a
// simulated time. It also computes the sizes at which another algorithm becomes the cheapest,
// and compares prices and choices of algorithms with measurements.
//
//	go run ./bench/collective/curves                                  # pictures and tables of docs/collectives.md
//	go run ./bench/collective/curves --network net.json --ranks 4,48  # of another network
//	go run ./bench/collective/curves compare --measured runs.jsonl    # prices beside measurements
//	go run ./bench/collective/curves choice --measured runs.jsonl     # choices beside measurements
//
// # Pictures and tables
//
// For each network, the program writes three pictures into the folder --out: time against size
// at --at ranks, and time against the number of ranks for a short and a long vector. The tables
// on standard output, in Markdown, give the cheapest algorithm for each size. Bisection finds
// the sizes at which the cheapest algorithm changes. An algorithm counts as the cheapest until
// another algorithm is 3 per cent cheaper. One table is for all algorithms, and one for the
// algorithms that fold in the canonical order, whose results are equal in every bit.
//
// On networks with racks, algorithms that take dimensions get dimensions that follow the racks,
// as a tuner would set them.
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
// simulate.Kind), and with --fit-ranks also to the runs with these numbers of ranks. Without
// such lines the network is used as it is. All runs are priced on the network. Lines with
// neither a kind nor an algorithm are skipped. The report has the errors of the prices at 2
// ranks for sizes from 1 MiB up. It also considers the pairs of runs with the same number of
// ranks and size, but different programs, whose measured times differ by more than 20 per cent.
// It has the share of these pairs whose prices have the same order as the measured times. With
// --check the exit code is 1 if an error exceeds 30 per cent or the share is below 80 per cent.
//
// # Choice
//
// The choice command needs measurements in which the algorithm that the group chooses and all
// algorithms by name take turns (--algorithm chosen,all --rounds 31). For each number of ranks
// and size it reports two ratios: the time of the chosen algorithm divided by the time of the
// best algorithm that a group may choose, and divided by the time of the best of all
// algorithms. The time of a line is the median of the medians of its rounds. The least time
// would depend on chance: if the system may place two ranks on one core or on two cores, one
// round of a program takes up to nine times as long as the next. The time of the choice is
// computed from its own rounds and from the rounds in which the same algorithm ran by its name.
// A group chooses among the algorithms that fold in the canonical order for that number of
// ranks, because the choice must not change any bit of the result. For collectives that do not
// fold, it chooses among all algorithms. With --check the exit code is 1 if fewer than 90 per
// cent of the choices take at most 1.2 times as long as the best algorithm that the group may
// choose.
package main
