package batch_test

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// TestWidenedRows reads vectors of float32 as float64, in any order. It requires the right
// values, which must remain valid after other rows are read. It also requires that the rows are
// not all converted at once.
func TestWidenedRows(t *testing.T) {
	type single struct {
		X []float32 `column:"x,dim=8"`
		Y []float32
	}
	type double struct{ X, Y []float64 }
	const n = 20_000
	rows := make([]single, n)
	for i := range rows {
		rows[i].X = make([]float32, 8)
		for k := range rows[i].X {
			rows[i].X[k] = float32(i*8+k) / 3
		}
		rows[i].Y = rows[i].X[:i%9]
	}
	mem := batchtest.Allocator(t)
	codec, err := batch.NewCodec[single]()
	require.NoError(t, err)
	rec, err := codec.Record(mem, rows)
	require.NoError(t, err)
	defer rec.Release()
	reads, err := batch.NewCodec[double]()
	require.NoError(t, err)
	reader, err := reads.Bind(rec.Schema())
	require.NoError(t, err)
	require.NoError(t, reader.Reset(rec))

	inOrder := make([]int, n)
	for i := range inOrder {
		inOrder[i] = i
	}
	backward := slices.Clone(inOrder)
	slices.Reverse(backward)
	for _, order := range [][]int{inOrder, inOrder, backward, rand.New(rand.NewPCG(1, 2)).Perm(n)} {
		read := make([]double, n)
		for _, i := range order {
			require.NoError(t, reader.Read(i, &read[i]))
		}
		for i := range rows {
			for k, x := range rows[i].X {
				require.Equal(t, float64(x), read[i].X[k])
			}
			require.Len(t, read[i].Y, i%9)
			for k, y := range rows[i].Y {
				require.Equal(t, float64(y), read[i].Y[k])
			}
		}
	}

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	require.NoError(t, reader.Reset(rec))
	var row double
	require.NoError(t, reader.Read(0, &row))
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(200_000), "the whole column takes 1.3 MB as float64, and must not be converted at once")
}
