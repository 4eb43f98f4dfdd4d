package offheap

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// sizes are lengths of buffers in words. They include 0, 1, the largest buffer on the heap, the
// smallest buffer from the system, and lengths that are not multiples of a page.
var sizes = []int{0, 1, 7, least/wordBytes - 1, least / wordBytes, least/wordBytes + 1, 3*least/wordBytes + 77}

func TestBuffersAreZeroAndTheOwnersAlone(t *testing.T) {
	var all []*Buffer
	for round := range 3 {
		for i, n := range sizes {
			b, err := New(n)
			require.NoError(t, err)
			require.Equal(t, n, b.Len())
			words := b.Words()
			require.Len(t, words, n)
			for k, w := range words {
				if w != 0 {
					t.Fatalf("round %d: word %d of %d is %d", round, k, n, w)
				}
				words[k] = uint64(round*len(sizes)+i+1)<<32 | uint64(k)
			}
			all = append(all, b)
		}
		for i, b := range all {
			for k, w := range b.Words() {
				if w != uint64(round*len(sizes)+i+1)<<32|uint64(k) {
					t.Fatalf("round %d: word %d of buffer %d is %x", round, k, i, w)
				}
			}
			b.Free()
			b.Free()
			require.Zero(t, b.Len())
			require.Empty(t, b.Words())
		}
		all = nil
	}
}

func TestLargeBuffersBeginACacheLine(t *testing.T) {
	b, err := New(least)
	require.NoError(t, err)
	defer b.Free()
	require.Zero(t, uintptr(unsafe.Pointer(&b.Words()[0]))%64)
}

func TestBuffersThatCannotBe(t *testing.T) {
	for _, n := range []int{-1, maxWords + 1} {
		_, err := New(n)
		require.ErrorContains(t, err, fmt.Sprint("a buffer of ", n, " words"))
	}
	var none *Buffer
	require.Zero(t, none.Len())
	require.Empty(t, none.Words())
	none.Free()
}

func TestMemoryThatTheSystemHasNot(t *testing.T) {
	if !canMap {
		return // a call of make with that size would end the process
	}
	_, err := New(maxWords) // a petabyte
	require.ErrorContains(t, err, "no memory for a buffer of 1073741824 MiB")
}

func ExampleNew() {
	b, err := New(4 << 20)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer b.Free()
	b.Words()[0] = 42
	fmt.Println(len(b.Words()), b.Words()[0], b.Words()[1])
	// Output: 4194304 42 0
}
