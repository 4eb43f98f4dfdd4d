// Package runtime measures the engine itself: rows per second through chains and
// exchanges, and the latency of supersteps.
//
//	go test -run '^$' -bench . -benchtime 7x ./bench/runtime
//
// Where a figure needs a yardstick, the benchmark runs the measured code and the yardstick in
// turn. It reports the median of the ratios, and the medians of both times. A ratio is the time
// of the measured code divided by the time of the yardstick, so lower is better. A speedup is
// the inverse.
//
//	BenchmarkChain      operators chained, against a loop over the same rows
//	BenchmarkExchange   each exchange, against one goroutine that partitions the rows by hand
//	BenchmarkBroadcast  a broadcast variable
//	BenchmarkScaling    a hash exchange behind busy sources at parallelism 2 over 1: at least
//	                    1.6 where two processors are free, which speedup-machine tells
//	BenchmarkSpill      a shuffle beyond its memory budget, against one within; it fails
//	                    where the process holds over 100 MiB more than the budget
//	BenchmarkSuperstep  supersteps of a queue, against a bare barrier: an empty one among 8
//	                    subtasks at most 5 times as long, one with an AllReduce of 8 values
//	                    at most 20 times, without allocations
//
// Benchmarks that report memory run in child processes of the test binary.
package runtime
