// Package offheap allocates large buffers without pointers directly from the operating system,
// for owners that free them explicitly.
//
//	b, err := offheap.New(n)
//	words := b.Words() // n zeroed words, valid until Free
//	...
//	b.Free()
//
// The builtin function make is not used, because the runtime must clear a large slice if its
// memory was used before, and the goroutine cannot be preempted until the slice is cleared. A
// garbage collection that begins meanwhile waits for that goroutine, spinning on another P of
// the scheduler. So on an overloaded machine a process with GOMAXPROCS=2 can do no other work
// until the slice is cleared. For half a gigabyte that takes several seconds: the process
// misses its heartbeats, and other processes take it for dead. Memory from the system is
// cleared page by page at its first use, does not burden the garbage collector, and is returned
// to the system by Free.
//
// If the runtime has a memory limit (GOMEMLIMIT), the limit is reduced by the size of the buffers
// until they are freed.
//
// Buffers of less than a mebibyte are on the heap. All buffers are on the heap on systems other
// than Linux, and under the race detector, which tracks only memory of the heap.
package offheap
