package hugepage

import (
	"bytes"
	"fmt"
	"sync"
	"testing"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
)

var sizes = []int{0, 1, 63, 64, 4097, Least - 1, Least, Least + 1, 3*pageSize + 77}

func TestBuffersAreZeroAndBeginACacheLine(t *testing.T) {
	var mem memory.Allocator = NewAllocator()
	for _, n := range sizes {
		for range 3 {
			b := mem.Allocate(n)
			require.Len(t, b, n)
			require.Zero(t, uintptr(unsafe.Pointer(unsafe.SliceData(b)))%64)
			require.True(t, bytes.Equal(b, make([]byte, n)))
			for i := range b {
				b[i] = 0xff
			}
			mem.Free(b)
		}
	}
}

func TestBuffersThatGrowKeepWhatTheyHave(t *testing.T) {
	var mem memory.Allocator = NewAllocator()
	for _, from := range sizes {
		for _, to := range sizes {
			b := mem.Allocate(from)
			for i := range b {
				b[i] = byte(i*7 + 1)
			}
			grown := mem.Reallocate(to, b)
			require.Len(t, grown, to)
			both := min(from, to)
			require.True(t, bytes.Equal(b[:both], grown[:both]))
			require.True(t, bytes.Equal(grown[both:], make([]byte, to-both)))
		}
	}
}

func TestManyMayAllocateAtOnce(t *testing.T) {
	mem := NewAllocator()
	defer mem.Close()
	var all sync.WaitGroup
	for g := range 4 {
		all.Go(func() {
			for round := range 20 {
				b := mem.Allocate(Least + round)
				for i := range b {
					b[i] = byte(g)
				}
				for _, v := range b {
					if v != byte(g) {
						t.Errorf("the memory of goroutine %d has the value %d of another goroutine", g, v)
						return
					}
				}
			}
		})
	}
	all.Wait()
}

func ExampleAllocator() {
	mem := NewAllocator()
	defer mem.Close()
	b := array.NewFloat64Builder(mem)
	defer b.Release()
	b.AppendValues(make([]float64, 1<<20), nil)
	column := b.NewArray()
	defer column.Release()
	fmt.Println(column.Len(), column.DataType() == arrow.PrimitiveTypes.Float64)
	// Output: 1048576 true
}
