package batch_test

import (
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch"
)

// limited is an allocator that panics after a given number of calls.
type limited struct {
	memory.Allocator
	left int
}

func (l *limited) Allocate(n int) []byte {
	if l.left--; l.left < 0 {
		panic("no room")
	}
	return l.Allocator.Allocate(n)
}

func (l *limited) Reallocate(n int, b []byte) []byte {
	if l.left--; l.left < 0 {
		panic("no room")
	}
	return l.Allocator.Reallocate(n, b)
}

// TestConcatWithoutRoom requires that Concat releases its earlier allocations if the allocator
// panics.
func TestConcatWithoutRoom(t *testing.T) {
	type wide struct {
		N      *int64
		Text   string
		List   []float64
		Sparse batch.SparseVector
	}
	codec, err := batch.NewCodec[wide]()
	require.NoError(t, err)
	rows := func() arrow.Record {
		app := codec.Appender(memory.NewGoAllocator())
		defer app.Release()
		for i := range int64(9) {
			w := wide{&i, "text", []float64{1, 2}, batch.SparseVector{Indices: []int32{1}, Values: []float64{3}}}
			if i == 4 {
				w.N = nil
			}
			require.NoError(t, app.AppendFrom(&w))
		}
		return app.NewRecord()
	}
	recs := []arrow.Record{rows(), rows()}
	mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
	refused := 0
	for left := 0; ; left++ {
		room := &limited{mem, left}
		out, done := arrow.Record(nil), false
		func() {
			defer func() { _ = recover() }()
			out, err = batch.ConcatApart(room, mem, recs)
			done = true
		}()
		if done {
			require.NoError(t, err)
			out.Release()
			mem.AssertSize(t, 0)
			break
		}
		mem.AssertSize(t, 0)
		refused++
	}
	require.Greater(t, refused, 5)
}
