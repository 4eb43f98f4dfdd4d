package offheap

import (
	"sync"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow/memory"
)

// Allocator is an Arrow allocator that takes large buffers from the operating system and small
// buffers from another allocator. It is meant for rows that are held for a long time. If such rows
// were on Go's heap, the garbage collector would let an equal amount of garbage accumulate (with
// GOGC=100), and would free the rows only at its next run. A buffer is freed when the last batch
// that refers to it is released. Views of its rows must not be used after that. Any number of
// goroutines may use an Allocator.
type Allocator struct {
	small memory.Allocator

	mu    sync.Mutex
	large map[*byte]*Buffer // by the address of the first byte
}

// NewAllocator returns an Allocator that takes small buffers from small.
func NewAllocator(small memory.Allocator) *Allocator {
	return &Allocator{small: small, large: map[*byte]*Buffer{}}
}

// Allocate returns size bytes that begin at a cache line. If the system has no memory left, it
// takes a large buffer from the other allocator too.
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

// Reallocate returns size bytes that begin with the bytes of b. It returns b itself, resliced, if
// its capacity is large enough.
func (a *Allocator) Reallocate(size int, b []byte) []byte {
	if size <= cap(b) {
		return b[:size]
	}
	larger := a.Allocate(size)
	copy(larger, b)
	a.Free(b)
	return larger
}

// Free frees a buffer.
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

// Held returns the total number of bytes of the large buffers that are not freed yet.
func (a *Allocator) Held() (n int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, buffer := range a.large {
		n += int64(buffer.Len()) * wordBytes
	}
	return n
}
