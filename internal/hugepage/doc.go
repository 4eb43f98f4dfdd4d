// Package hugepage asks the operating system for huge pages under large buffers of Go's
// heap.
//
//	mem := hugepage.NewAllocator() // an Arrow allocator
//	defer mem.Close()
//	rows := mem.Allocate(1 << 20)
//
// Iterative training reads the same rows again and again, and they do not fit in any cache.
// With pages of 4 KiB the processor translates an address for every 64 cache lines, prefetches
// no farther than the end of a page, and faults at the first use of each page; with pages of 2
// MiB all three happen five hundred times less often. If Linux gives huge pages only on
// request, Go's heap does not request them. If Linux gives them always or never, or if GODEBUG
// has disablethp=1, this package does nothing.
//
// Huge pages have a price. If Go has returned most of a requested page, Linux makes it huge
// again in the background without Go's knowledge: the memory of a process can rise to the most
// that it ever held. So the request holds only for a run, and is withdrawn when the allocator
// is closed; after that the memory is like any other of the heap.
package hugepage
