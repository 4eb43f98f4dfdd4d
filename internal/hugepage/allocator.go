package hugepage

import (
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow/memory"
)

// Least is the number of bytes of the smallest buffer for which huge pages are requested; for
// smaller buffers the call costs more than it saves. It is low enough for the rows of a shard:
// they take hundreds of kilobytes if all shards together do not fit in a cache.
const Least = 128 << 10

// Allocator allocates on Go's heap, as Arrow's memory.GoAllocator does. Until it is closed, it
// requests huge pages for buffers of at least Least bytes. Any number of goroutines may use it.
// The garbage collector frees the memory; Free does nothing.
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

// Reallocate returns size bytes that begin with the bytes of b. It returns b itself, resliced, if
// its capacity is large enough.
func (a *Allocator) Reallocate(size int, b []byte) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	larger := a.Allocate(size)
	copy(larger, b)
	return larger
}

// Close withdraws the requests for huge pages. Huge pages in use remain. The allocator can still be
// used, but makes no more requests. Close may be called again.
func (a *Allocator) Close() { a.pages.close() }
