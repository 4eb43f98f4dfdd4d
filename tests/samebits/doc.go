// Command samebits runs fixed workloads at many settings and prints a digest of
// every byte that a caller could see of their results, so that a test can require
// them to be the same.
//
//	go run ./tests/samebits --workload operators --parallelism 1,3 --shards 8 --batch-rows 7
//
// prints one JSON object a line for each setting and piece of result:
//
//	{"workload":"operators","shards":8,"parallelism":1,"batchRows":7,"procs":2,"round":0,"piece":"rows grouped","sum":"…","size":512}
//
// A piece is one of the following: the rows collected under a name, with their shards, and with
// floats in a form that shows all bits; the folded accumulators; the values that a queue
// reported for every superstep; or a file that a sink wrote. With --out DIR, the bytes of a
// piece are kept in DIR under their digest, so that different ones can be compared.
//
// Rows have magnitudes from 1e-8 to 1e16, so that sums in another order have other bits. With
// --jitter, every round delays the workload's own functions differently. That changes the order
// in which subtasks proceed, and must change nothing else.
//
// With --forget, queues forget between supersteps everything but what their keys keep, which
// must not change anything either.
//
// The program also fails if a subtask that owns rows did nothing: equal results would show
// little if one subtask did all the work.
package main
