package offheap

import (
	"sync"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow/memory"
)

// Allocator is an Arrow allocator whose large buffers are the system's, and whose small ones
// are another allocator's. It is for rows that are held long: on Go's heap they would let as
// much garbage grow beside them, and stay until it is collected. A buffer is gone when it is
// freed, which is when the last batch that refers to it is released: views of its rows are
// not to be used after that. Any number of goroutines may use it.
type Allocator struct {
	small memory.Allocator

	mu    sync.Mutex
	large map[*byte]*Buffer // by the first byte
}

// NewAllocator returns an Allocator that leaves small buffers to another.
func NewAllocator(small memory.Allocator) *Allocator {
	return &Allocator{small: small, large: map[*byte]*Buffer{}}
}

// Allocate returns size bytes, the first of which is at the start of a cache line. Where the
// system has none left they are the other allocator's.
func (a *Allocator) Allocate(size int) []byte {
	if size < least || !canMap {
		return a.small.Allocate(size)
	}
	buffer, err := New((size + wordBytes - 1) / wordBytes)
	if err != nil {
		return a.small.Allocate(size)
	}
	first := (*byte)(unsafe.Pointer(unsafe.SliceData(buffer.Words())))
	a.mu.Lock()
	a.large[first] = buffer
	a.mu.Unlock()
	return unsafe.Slice(first, buffer.Len()*wordBytes)[:size]
}

// Reallocate returns size bytes that begin as b does, in its place if it has room.
func (a *Allocator) Reallocate(size int, b []byte) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	larger := a.Allocate(size)
	copy(larger, b)
	a.Free(b)
	return larger
}

// Free gives a buffer back.
func (a *Allocator) Free(b []byte) {
	a.mu.Lock()
	buffer := a.large[unsafe.SliceData(b)]
	delete(a.large, unsafe.SliceData(b))
	a.mu.Unlock()
	if buffer == nil {
		a.small.Free(b)
		return
	}
	buffer.Free()
}

// Held returns the bytes of the large buffers that are not freed.
func (a *Allocator) Held() (n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, buffer := range a.large {
		n += int64(buffer.Len()) * wordBytes
	}
	return n
}
