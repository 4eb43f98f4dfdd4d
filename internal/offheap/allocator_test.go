package offheap

import (
	"math"
	"runtime/debug"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
)

// TestAllocator requires that small buffers are allocated and freed by the other allocator, and
// large buffers by the system.
func TestAllocator(t *testing.T) {
	small := memory.NewCheckedAllocator(memory.NewGoAllocator())
	defer small.AssertSize(t, 0)
	a := NewAllocator(small)
	var all [][]byte
	want := int64(0)
	for i, n := range []int{0, 1, least - 1, least, least + 3, 3 * least} {
		b := a.Allocate(n)
		require.Len(t, b, n)
		for k := range b {
			b[k] = byte(i)
		}
		if n >= least && canMap {
			want += int64(n+wordBytes-1) / wordBytes * wordBytes
		}
		all = append(all, b)
	}
	require.Equal(t, want, a.Held())
	for i, b := range all {
		for k := range b {
			if b[k] != byte(i) {
				t.Fatalf("byte %d of buffer %d is %d", k, i, b[k])
			}
		}
		if i%2 == 1 {
			n := len(b)
			b = a.Reallocate(n+2*least, b)
			require.Len(t, b, n+2*least)
			require.Equal(t, byte(i), b[n-1])
		}
		a.Free(b)
	}
	require.Zero(t, a.Held())
}

// TestAllocatorOfABatch requires that a buffer is freed when the last reference to it is released.
func TestAllocatorOfABatch(t *testing.T) {
	a := NewAllocator(memory.NewGoAllocator())
	build := array.NewFloat64Builder(a)
	build.Reserve(least)
	for i := range least {
		build.UnsafeAppend(float64(i))
	}
	column := build.NewFloat64Array()
	build.Release()
	part := array.NewSlice(column, least-2, least)
	column.Release()
	if canMap {
		require.GreaterOrEqual(t, a.Held(), int64(8*least))
	}
	require.Equal(t, []float64{least - 2, least - 1}, part.(*array.Float64).Float64Values())
	part.Release()
	require.Zero(t, a.Held())
}

// TestBuffersCountInTheLimit requires that buffers reduce the runtime's memory limit by their size
// until they are freed.
func TestBuffersCountInTheLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	limit := func() int64 { return debug.SetMemoryLimit(-1) }
	take := func(n int64) *Buffer {
		b, err := New(int(n / wordBytes))
		require.NoError(t, err)
		return b
	}
	n := int64(4 * least)
	taken := func(n int64) int64 {
		if canMap {
			return n
		}
		return 0
	}
	debug.SetMemoryLimit(math.MaxInt64)
	unlimited := take(n)
	require.Equal(t, int64(math.MaxInt64), limit())
	unlimited.Free()
	debug.SetMemoryLimit(1 << 40)
	one, two := take(n), take(2*n)
	require.Equal(t, 1<<40-taken(3*n), limit())
	one.Free()
	require.Equal(t, 1<<40-taken(2*n), limit())
	three, four := take(n), (*Buffer)(nil)
	debug.SetMemoryLimit(1 << 41) // a caller sets another limit meanwhile
	four = take(n)
	require.Equal(t, 1<<41-taken(4*n), limit())
	SetLimit(1 << 42)
	require.Equal(t, 1<<42-taken(4*n), limit())
	two.Free()
	three.Free()
	debug.SetMemoryLimit(4 * n) // buffers never take more than half of the limit
	five := take(2 * n)
	require.Equal(t, 4*n-taken(2*n), limit())
	four.Free()
	five.Free()
	require.Equal(t, 4*n, limit())
}
