package offheap

import (
	"fmt"
	"runtime"
	"unsafe"
)

// least is the number of bytes from which a buffer is the system's. Below it the heap
// is as good, and a mapping of its own costs more than it saves.
const least = 1 << 20

// Buffer is memory for words. It is the owner's who made it; the words are not to be
// used after Free, nor after the last use of the Buffer itself: a Buffer that is
// forgotten is freed.
type Buffer struct {
	words   []uint64
	mapped  bool
	cleanup runtime.Cleanup
}

// New makes a buffer of n zeroed words. The first one is at the start of a cache line.
// The error says that the system has no such memory left.
func New(n int) (*Buffer, error) {
	if n < 0 || n > maxWords {
		return nil, fmt.Errorf("a buffer of %d words", n)
	}
	if n*wordBytes < least || !canMap {
		return &Buffer{words: make([]uint64, n)}, nil
	}
	memory, err := mapMemory(n * wordBytes)
	if err != nil {
		return nil, fmt.Errorf("no memory for a buffer of %d MiB: %w", n*wordBytes>>20, err)
	}
	b := &Buffer{words: unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(memory))), n), mapped: true}
	b.cleanup = runtime.AddCleanup(b, unmapMemory, memory)
	return b, nil
}

const (
	wordBytes = 8
	maxWords  = 1 << 50 / wordBytes // more than any machine has
)

// Words are the buffer's; no buffer has none, and neither has one after Free.
func (b *Buffer) Words() []uint64 {
	if b == nil {
		return nil
	}
	return b.words
}

// Len is their number.
func (b *Buffer) Len() int { return len(b.Words()) }

// Free gives the memory back. Freeing again, or no buffer, does nothing.
func (b *Buffer) Free() {
	if b == nil || b.words == nil {
		return
	}
	words := b.words
	b.words = nil
	if b.mapped {
		b.cleanup.Stop()
		unmapMemory(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*wordBytes))
	}
}
