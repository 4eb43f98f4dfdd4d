package memrange

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
)

// heap makes the compiler allocate the memory that onHeap returns outside of stacks.
var heap atomic.Pointer[[]byte]

// onHeap returns memory that keeps its address. Memory on a stack, where the compiler places small
// buffers, moves when the stack grows.
func onHeap(size int) []byte {
	memory := make([]byte, size)
	heap.Store(&memory)
	return memory
}

// TestContains adds and removes random pieces of memory, and compares the set with a list of the
// pieces that it should contain.
func TestContains(t *testing.T) {
	const pieces, size = 64, 64
	memory := onHeap(pieces * size)
	var s Set
	require.False(t, s.Contains(memory), "an empty set must contain nothing")
	added := make([]bool, pieces)
	draws := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		i := draws.IntN(pieces)
		piece := memory[i*size : i*size+size : i*size+size]
		if added[i] {
			s.Remove(piece)
		} else {
			s.Add(piece)
		}
		added[i] = !added[i]
		at := draws.IntN(len(memory))
		require.Equal(t, added[at/size], s.Contains(memory[at:]), "the set must contain byte %d exactly if its piece was added", at)
		require.False(t, s.Contains(memory[at:at]), "the set must not contain the empty slice at byte %d", at)
	}
}

// TestConcurrentUse uses a set in several goroutines, so that the race detector can find races.
func TestConcurrentUse(t *testing.T) {
	var s Set
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			own := onHeap(100)
			for range 100 {
				s.Add(own)
				if !s.Contains(own[50:]) {
					t.Error("the set must contain memory that this goroutine has just added")
				}
				s.Remove(own)
			}
		})
	}
	all.Wait()
}
