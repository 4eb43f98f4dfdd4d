// Package offheap allocates large buffers without pointers directly from the operating system,
// for owners that free them explicitly.
//
//	b, err := offheap.New(n)
//	words := b.Words() // n zeroed words, until Free
//	...
//	b.Free()
//
// Why not make: the runtime clears a large slice that reuses old memory in one go. A garbage
// collection that begins meanwhile waits for that goroutine, spinning on another processor of
// the runtime. On an overloaded machine the two can keep a process of two processors from all
// other work until the clearing ends. For half a gigabyte that takes several seconds: long
// enough that its signs of life fail to appear, and others take it for dead. The system's
// memory is cleared page by page at its first use, is no burden on the collector, and is
// returned when it is freed.
//
// If the runtime's memory has a limit (GOMEMLIMIT), the limit is reduced by the size of the
// buffers until they are freed.
//
// Buffers of less than a megabyte are on the heap. So are all buffers if the system has no such
// call, and under the race detector, which does not track other memory.
package offheap
