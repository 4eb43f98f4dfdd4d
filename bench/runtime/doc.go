// Package runtime measures the engine itself: rows per second through chains and
// exchanges, and the latency of supersteps.
//
//	go test -run '^$' -bench . ./bench/runtime
//
// Where a figure needs a yardstick, both are measured in the same benchmark, in
// turn, and the ratio is reported beside the time.
package runtime
