package hugepage

import (
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow/memory"
)

// Least is the number of bytes from which a buffer is worth the question. Where all shards
// together are more than a cache holds, the rows of one are hundreds of kilobytes.
const Least = 128 << 10

// Allocator is Arrow's allocator on Go's heap, with huge pages under buffers of at least
// Least bytes until it is closed. Any number of goroutines may use it. Memory is collected as
// garbage; Free does nothing.
type Allocator struct {
	memory.GoAllocator
	pages adviser
}

// NewAllocator returns an allocator to be closed.
func NewAllocator() *Allocator {
	a := &Allocator{}
	s, ok := theSystem()
	a.pages.system, a.pages.closed = s, !ok
	return a
}

// Allocate returns size bytes, the first of which is at the start of a cache line.
func (a *Allocator) Allocate(size int) []byte {
	b := a.GoAllocator.Allocate(size)
	a.pages.advise(uintptr(unsafe.Pointer(unsafe.SliceData(b))), uintptr(size))
	return b
}

// Reallocate returns size bytes that begin as b does, in its place if it has room.
func (a *Allocator) Reallocate(size int, b []byte) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	larger := a.Allocate(size)
	copy(larger, b)
	return larger
}

// Close tells the system that small pages do again, which leaves those in use as they are. The
// allocator goes on without huge pages. It may be closed again.
func (a *Allocator) Close() { a.pages.close() }
