package offheap

import (
	"fmt"
	"math"
	"runtime"
	"runtime/debug"
	"sync"
	"unsafe"

	"github.com/superstep-ml/superstep/internal/memrange"
)

// least is the number of bytes of the smallest buffer that comes from the system. For smaller
// buffers a mapping costs more than it saves.
const least = 1 << 20

// Buffer is memory for 64-bit words. The caller of New owns it. The words must not be used after
// Free, nor after the last use of the Buffer itself, because an unreachable Buffer is freed.
type Buffer struct {
	words   []uint64
	mapped  bool
	cleanup runtime.Cleanup
}

// New returns a buffer of n zeroed words. The first word of a buffer from the system is at the start
// of a cache line. New fails if n is invalid or if the system has not enough memory left.
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
	makeRoom(len(memory))
	live.Add(memory)
	b := &Buffer{words: unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(memory))), n), mapped: true}
	b.cleanup = runtime.AddCleanup(b, giveBack, memory)
	return b, nil
}

const (
	wordBytes = 8
	maxWords  = 1 << 50 / wordBytes // more than any machine has
)

// Words returns the buffer's words. It returns nil for a nil Buffer and after Free.
func (b *Buffer) Words() []uint64 {
	if b == nil {
		return nil
	}
	return b.words
}

// Len returns the number of words.
func (b *Buffer) Len() int { return len(b.Words()) }

// Free frees the memory. Freeing again, or freeing a nil Buffer, does nothing.
func (b *Buffer) Free() {
	if b == nil || b.words == nil {
		return
	}
	words := b.words
	b.words = nil
	if b.mapped {
		b.cleanup.Stop()
		giveBack(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), len(words)*wordBytes))
	}
}

// giveBack unmaps the memory of a buffer and raises the runtime's memory limit again.
func giveBack(memory []byte) {
	live.Remove(memory)
	unmapMemory(memory)
	makeRoom(-len(memory))
}

// live has the memory of all buffers that are mapped.
var live memrange.Set

// Contains reports whether b lies in a Buffer that Free unmaps.
func Contains(b []byte) bool { return live.Contains(b) }

// room records how buffers have changed the runtime's memory limit.
var room struct {
	sync.Mutex
	taken int64 // total bytes of mapped buffers
	base  int64 // the limit without buffers
	set   int64 // the limit that makeRoom set last
}

// SetLimit sets the memory limit of the process. The limit of the runtime is less if there are buffers.
func SetLimit(limit int64) {
	room.Lock()
	room.base, room.set = limit, limit
	debug.SetMemoryLimit(limit)
	room.Unlock()
	makeRoom(0)
}

// makeRoom reduces the runtime's memory limit by n bytes, if there is a limit. That is necessary
// because the limit is meant for the whole process, but the runtime does not count memory that it
// did not map itself. The limit is never reduced below half, because the runtime would then spend
// all its time on garbage collection.
func makeRoom(n int) {
	room.Lock()
	defer room.Unlock()
	room.taken += int64(n)
	if limit := debug.SetMemoryLimit(-1); limit != room.set {
		room.base = limit // the program has set another limit
	}
	room.set = room.base
	if room.base != math.MaxInt64 {
		room.set = max(room.base-room.taken, room.base/2)
		debug.SetMemoryLimit(room.set)
	}
}
