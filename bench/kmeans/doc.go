// Command kmeans compares k-means on this engine with a loop written by hand
// over the same kernel, and with scikit-learn.
//
//	go run ./bench/kmeans
//	go run ./bench/kmeans --python bench/.venv/bin/python --rounds 7 --check
//	go run ./bench/kmeans --python bench/.venv/bin/python --uniform --single \
//	    --shapes 1000000x32x64,200000x100x256,1000000x16x10 --noise 0.5 --rounds 3
//	go run ./bench/kmeans --json > bench/results/kmeans.json
//
// scikit-learn takes part where --python names a Python that has it:
//
//	python3 -m venv bench/.venv && bench/.venv/bin/pip install scikit-learn
//
// # What is compared
//
// Every contestant reads the same file of rows, starts from the same centres (the
// first k rows), moves them the same number of times, and evaluates the last ones
// in one more pass:
//
//   - loop: one pass over all rows after the other, one block, one accumulator, on
//     one goroutine: what a programmer would write who has the kernel and no engine;
//   - loop split by hand: the same over halves of the rows on two goroutines;
//   - engine: algorithms/kmeans at parallelism 1 and 2, fed by a source that reads
//     its shards of the file;
//   - with --single, the engine with float32 rows and distances;
//   - scikit-learn: its algorithms "lloyd" and "elkan" with one and two threads.
//
// Each runs in a process of its own, so that its memory can be told, and all take
// turns, in another order every round, so that a busy machine treats them alike.
// The table has medians over the rounds, and the best pass beside. A ratio is that
// of the time per pass to the loop's with as many threads in the same round.
//
// Time per pass excludes reading and setting up: for loops and engine it is the
// time of all passes divided by their number, for scikit-learn, whose set-up is
// within its fit, the difference of two fits of different length. Processor time
// per pass is such a difference for all; other programs on the machine disturb it
// least, but it does not show waiting. The total is from the first byte read to
// the model; processes start before.
//
// The rows are a mixture of spherical normal distributions, around means drawn
// from the standard normal distribution, with a standard deviation of --noise in
// each feature. There are fewer --components than clusters, so that some are split
// and centres go on moving for long. Rows much closer to their centre than it is
// to its neighbours need one distance to be assigned, others all k: the table says
// what share of rows is settled so. With --uniform there is a table of rows that are
// uniform in the unit cube: there is nothing to find, and bounds rule out least. The last
// column of a table with scikit-learn says how many passes a contestant makes while the
// quicker of its two algorithms makes one.
//
// # Budgets
//
// The engine at parallelism 1 and 2 is to stay within 1.05 of the loop on as many
// goroutines (the COST of McSherry, Isard and Murray, HotOS 2015), and its process
// within 1.3 times the size of the data and 100 MB. With --check a median beyond
// that makes the exit code 1. The sum of squared distances of every contestant
// must agree with the loop's in any case; where a cluster of the loop is empty, which it
// leaves so while the others give it a row, with the engine's.
//
// In-process versions on fewer rows are in the package's benchmarks:
//
//	go test -run '^$' -bench . -benchtime 9x ./bench/kmeans
package main
