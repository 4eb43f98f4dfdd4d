// Command samebits runs fixed workloads at many settings. It prints digests of all parts of the
// results that a caller can see, so that a test can require them to be the same.
//
//	go run ./tests/samebits --workload operators --parallelism 1,3 --shards 8 --batch-rows 7
//
// prints, for each setting and each piece of the result, one line with a JSON object:
//
//	{"workload":"operators","shards":8,"parallelism":1,"batchRows":7,"procs":2,"round":0,"piece":"rows grouped","sum":"…","size":512}
//
// A piece is one of the following: the rows collected under a name, with their shards and with
// all bits of floats; the folded accumulators; the values that a queue reported for every
// superstep; or a file that a sink wrote. With --out DIR, the bytes of each piece are written
// to a file in DIR that is named by the digest, so that different bytes can be compared.
//
// Values have magnitudes from 1e-8 to 1e16, so that sums in another order have other bits. With
// --jitter, the workload's own functions are delayed differently in every round. The delays
// change the order in which subtasks proceed, and must not change the results.
//
// With --forget, queues forget between supersteps all objects except those that a checkpoint
// would restore. Forgetting them must not change the results either.
//
// Without --workload, the program prints one line for each workload, with a JSON object of its
// properties:
//
//	{"name":"sums","dependsOnParallelism":false,"queues":1,"size":"small"}
//
// The program also fails if a subtask that owns rows did nothing, because equal results prove
// little if one subtask has done all the work.
package main
