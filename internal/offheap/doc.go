// Package offheap gives large buffers without pointers straight from the operating
// system, for those who know when they are done with them.
//
//	b, err := offheap.New(n)
//	words := b.Words() // n zeroed words, until Free
//	...
//	b.Free()
//
// Why not make: the runtime clears a large slice that takes the place of an old one in
// one go. While it does, a collection of garbage that began meanwhile waits for that
// goroutine, spinning on another processor of the runtime's. On a machine with much
// more to run than cores, the two can keep a process of two processors from everything
// else for as long as the clearing takes, which for half a gigabyte is several seconds:
// long enough for its signs of life to fail to appear, and for others to take it for
// dead. Memory of the system's comes cleared, page by page where it is first used; it is
// no burden on the collector, and is gone when it is freed.
//
// Where the runtime's memory has a limit (GOMEMLIMIT), what buffers take comes off it until
// they are freed.
//
// Buffers of less than a megabyte are the heap's, as are all where the system has no
// such call, and under the race detector, which knows nothing of other memory.
package offheap
