// Command kmeans compares k-means on this engine with a hand-written loop that uses the same
// kernel, and with scikit-learn.
//
//	go run ./bench/kmeans
//	go run ./bench/kmeans --python bench/.venv/bin/python --rounds 7 --check
//	go run ./bench/kmeans --python bench/.venv/bin/python --uniform --single \
//	    --shapes 1000000x32x64,200000x100x256,1000000x16x10 --noise 0.5 --rounds 3
//	go run ./bench/kmeans --json > bench/results/kmeans.json
//
// scikit-learn takes part if --python names a Python in which it is installed:
//
//	python3 -m venv bench/.venv && bench/.venv/bin/pip install scikit-learn
//
// # What is compared
//
// Every contestant reads the same file of rows, starts from the same centres (the first k rows)
// and moves them the same number of times. In one more pass it evaluates the last centres:
//
//   - loop: pass after pass over all rows, with one block and one accumulator, on one
//     goroutine. A programmer with the kernel and without an engine would write this;
//   - loop split by hand: the same over halves of the rows on two goroutines;
//   - engine: algorithms/kmeans at parallelism 1 and 2, fed by a source that reads
//     its shards of the file;
//   - with --single, the engine with float32 rows and distances;
//   - scikit-learn: its algorithms "lloyd" and "elkan" with one and two threads.
//
// Each contestant runs in a process of its own, so that its memory can be measured. The
// contestants take turns in an order that changes every round, so that other load on the
// machine affects all of them alike. The table has medians over the rounds, and the best time
// per pass. A ratio is the time per pass divided by the loop's time per pass in the same round,
// with the same number of threads.
//
// Time per pass excludes reading and setting up. For loops and engine it is the time of all
// passes divided by their number. scikit-learn sets up within its method fit, so its time per
// pass is computed from the difference of two fits with different numbers of passes. Processor
// time per pass is computed from such a difference for all contestants. Other programs on the
// machine influence processor time less than wall time, but processor time does not include
// waiting. The total is the time from the first byte read to the model. It does not include the
// start of the process.
//
// The rows are a mixture of spherical normal distributions, around means drawn from the
// standard normal distribution, with a standard deviation of --noise in each feature. By
// default there are fewer --components than clusters, so that several clusters share a
// component and the centres move for many passes. One distance is enough to assign a row if the
// row is nearer to its centre than half the distance from that centre to the nearest other
// centre. All k distances are needed for any other row. The table has the share of rows for
// which one distance is enough. With --uniform there is also a table of rows that are uniform
// in the unit cube. These rows have no clusters, so algorithms that skip distances by bounds
// skip the fewest. With scikit-learn, the last column has the number of passes that a
// contestant makes while the faster algorithm of scikit-learn makes one pass.
//
// # Budgets
//
// At parallelism 1 and 2, a pass of the engine should take at most 1.05 times as long as a pass
// of the loop on as many goroutines (the COST of McSherry, Isard and Murray, HotOS 2015). The
// memory of the engine's process should be at most 1.3 times the size of the data plus 100 MB.
// With --check, the exit code is 1 if a median exceeds one of these budgets. Even without
// --check, the sum of squared distances of every contestant must agree with the sum of the
// loop. If a cluster of the loop became empty, the sums of the other contestants must agree
// with the sum of the engine instead: the loop leaves such a cluster empty, and the other
// contestants move a row into it.
//
// The package's benchmarks compare the engine and the loop on fewer rows in one process:
//
//	go test -run '^$' -bench . -benchtime 9x ./bench/kmeans
package main
