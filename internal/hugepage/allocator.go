package hugepage

import (
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow/memory"
)

// Least is the number of bytes from which a request for a buffer is worth its cost. If all
// shards together do not fit in a cache, the rows of one shard take hundreds of kilobytes.
const Least = 128 << 10

// Allocator is Arrow's allocator on Go's heap, with huge pages under buffers of at least
// Least bytes until it is closed. Any number of goroutines may use it. Memory is collected as
// garbage; Free does nothing.
type Allocator struct {
	memory.GoAllocator
	pages adviser
}

// NewAllocator returns an allocator. The caller closes it.
func NewAllocator() *Allocator {
	a := &Allocator{}
	s, ok := theSystem()
	a.pages.system, a.pages.closed = s, !ok
	return a
}

// Allocate returns size bytes that begin at a cache line.
func (a *Allocator) Allocate(size int) []byte {
	b := a.GoAllocator.Allocate(size)
	a.pages.advise(uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(size))
	return b
}

// Reallocate returns size bytes that begin with those of b, in the same place if there is room.
func (a *Allocator) Reallocate(size int, b []byte) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	larger := a.Allocate(size)
	copy(larger, b)
	return larger
}

// Close withdraws the requests; huge pages in use stay. The allocator goes on without huge
// pages. It may be closed again.
func (a *Allocator) Close() { a.pages.close() }
