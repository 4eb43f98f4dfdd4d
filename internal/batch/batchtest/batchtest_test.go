package batchtest_test

import (
	"testing"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

// recorder is a testing.TB that records failures and cleanups instead of passing them to the
// test.
type recorder struct {
	testing.TB
	cleanups []func()
	failures int
}

func (r *recorder) Cleanup(f func())      { r.cleanups = append(r.cleanups, f) }
func (r *recorder) Errorf(string, ...any) { r.failures++ }
func (r *recorder) Helper()               {}

func TestAllocatorReportsALeak(t *testing.T) {
	r := &recorder{TB: t}
	mem := batchtest.Allocator(r)
	arr := batch.NewVectorArray(mem, []float64{1}, 1)
	r.cleanups[0]()
	require.Positive(t, r.failures)

	r.failures = 0
	arr.Release()
	r.cleanups[0]()
	require.Zero(t, r.failures)
}

func TestEqualSeesADifference(t *testing.T) {
	mem := memory.NewGoAllocator()
	schema := batchtest.Schema(t, "x float64", "v vector[1] null")
	a := batchtest.Record(t, mem, schema, `[{"x": 0, "v": [1]}, {"x": "NaN"}]`)
	b := batchtest.Record(t, mem, schema, `[{"x": -0.0, "v": [1]}, {"x": "NaN"}]`)
	r := &recorder{TB: t}
	batchtest.Equal(r, a, a)
	batchtest.Equal(r, a, batchtest.WithOffset(t, mem, a))
	require.Zero(t, r.failures)
	batchtest.Equal(r, a, b)
	require.Equal(t, 1, r.failures)
	require.Equal(t, []string{"0 | [1]", "NaN | null"}, batchtest.Rows(a))
	require.Equal(t, 3, batchtest.WithOffset(t, mem, a).Column(0).Data().Offset())
}
