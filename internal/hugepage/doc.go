// Package hugepage asks the operating system for huge pages under large buffers of Go's
// heap.
//
//	mem := hugepage.NewAllocator() // an Arrow allocator
//	defer mem.Close()
//	rows := mem.Allocate(1 << 20)
//
// Iterative training reads the same rows again and again, of which there are more than any
// cache holds. With pages of 4 KiB the processor looks up an address for every 64 cache
// lines, fetches ahead no farther than the end of each page, and the first use of each is a
// fault; with pages of 2 MiB all three happen five hundred times less often. Where Linux
// gives them to those who ask, Go's heap does not ask; where it gives them to everybody, or to
// nobody, or GODEBUG has disablethp=1, nothing happens here.
//
// They have a price. Linux makes a page that was asked for huge again in the background where
// Go has given most of it back, and Go does not know: what a process holds can go back up to
// the most it ever held. So the advice is for as long as a run takes, and is taken back when
// the allocator is closed; what it was given for is then as any memory of the heap is.
package hugepage
