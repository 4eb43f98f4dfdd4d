// Package hugepage asks the operating system for huge pages under large buffers of Go's
// heap.
//
//	mem := new(hugepage.Allocator) // an Arrow allocator
//	rows := mem.Allocate(1 << 20)
//
// Iterative training reads the same rows again and again, of which there are more than any
// cache holds. With pages of 4 KiB the processor looks up an address for every 64 cache
// lines, fetches ahead no farther than the end of each page, and the first use of each is a
// fault; with pages of 2 MiB all three happen five hundred times less often. Linux gives them
// to those who ask, on most distributions to nobody else, and Go's heap does not ask.
//
// Only time depends on it: where the system has no huge pages, or none left, nothing happens.
package hugepage
