// Package runtime has benchmarks of the engine itself: rows per second through chains and
// exchanges, and the latency of supersteps.
//
//	go test -run '^$' -bench . -benchtime 7x ./bench/runtime
//
// Most benchmarks compare the engine with simpler code, which is called the yardstick. They run
// the engine and the yardstick in turn, and report the median of the ratios and the medians of
// both times. A ratio is the time of the measured code divided by the time of the yardstick, so
// lower is better. A speedup is the inverse.
//
//	BenchmarkChain      chained operators, compared with a loop over the same rows
//	BenchmarkExchange   each exchange, compared with one goroutine that partitions the rows
//	BenchmarkBroadcast  reading a broadcast variable
//	BenchmarkScaling    the speedup from parallelism 1 to 2 of a hash exchange after busy
//	                    sources. It should be at least 1.6 where two processors are free; the
//	                    metric speedup-machine tells whether they are.
//	BenchmarkSpill      a shuffle of rows that exceed its memory budget, compared with a
//	                    shuffle within its budget. The benchmark fails if the process holds
//	                    over 100 MiB more than the budget.
//	BenchmarkSuperstep  supersteps of a queue, compared with a bare barrier. Among 8 subtasks,
//	                    an empty superstep should take at most 5 times as long, and a
//	                    superstep with an AllReduce of 8 values at most 20 times, without
//	                    allocations.
//
// Benchmarks that report memory run in child processes of the test binary.
package runtime
