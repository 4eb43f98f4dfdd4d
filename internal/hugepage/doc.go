// Package hugepage requests huge pages from the operating system for large buffers on Go's heap.
//
//	mem := hugepage.NewAllocator() // an Arrow allocator
//	defer mem.Close()
//	rows := mem.Allocate(1 << 20)
//
// Iterative training reads the same rows again and again, and they do not fit in any cache. With
// pages of 4 KiB the processor translates an address for every 64 cache lines, stops prefetching at
// the end of each page, and takes a page fault at the first use of each page. With pages of 2 MiB
// all three happen about five hundred times less often. Linux can be configured to give huge pages
// only on request (madvise), and Go's heap does not request them. If Linux gives huge pages always
// or never, or if GODEBUG has disablethp=1, this package does nothing.
//
// Huge pages have a cost. After Go has returned most of a requested page to the system, Linux may
// back the whole page with memory again in the background, without Go's knowledge. So the resident
// memory of a process can rise to its former maximum. Therefore the requests hold only for a run:
// they are withdrawn when the allocator is closed, and the memory is ordinary heap memory again.
package hugepage
