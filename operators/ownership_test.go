package operators

import (
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// TestBorrowedBatches requires that, if the function of MapBatch releases a borrowed batch, the
// error recommends Retain, and other operators that read the same rows do not fail.
func TestBorrowedBatches(t *testing.T) {
	kept := map[int]engine.Batch{}
	for name, c := range map[string]struct {
		f    func(c *engine.Context, rows engine.Batch) (engine.Batch, error)
		want string
	}{
		"returned": {func(_ *engine.Context, rows engine.Batch) (engine.Batch, error) { return rows, nil },
			"the function returned the batch that it was given, which is borrowed, without retaining it: call Retain on it first"},
		"returned with an error": {func(_ *engine.Context, rows engine.Batch) (engine.Batch, error) { return rows, errBoom }, "boom"},
		"released": {func(_ *engine.Context, rows engine.Batch) (engine.Batch, error) {
			rows.Release()
			return engine.Batch{}, nil
		}, "the function released the batch that it was given, which is borrowed"},
		"released, another returned": {func(c *engine.Context, rows engine.Batch) (engine.Batch, error) {
			part, err := rows.Slice(0, 1)
			rows.Release()
			return part, err
		}, "the function released the batch that it was given, which is borrowed"},
		"retained too late": {func(c *engine.Context, rows engine.Batch) (engine.Batch, error) {
			last := kept[c.Subtask]
			kept[c.Subtask] = rows
			return last, nil
		}, "the batch returned: it was released already: whoever keeps a batch calls Retain on it"},
	} {
		t.Run(name, func(t *testing.T) {
			clear(kept)
			forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
				if name == "retained too late" {
					opts = append(opts, engine.Parallelism(1), engine.BatchRows(2)) // this misuse needs a shard with several batches
				}
				err := runError(t, func(b *engine.Builder) *engine.Dataset {
					rows := FromSlice(b, flowers(100))
					return Union(MapBatch(rows, engine.Schema{}, c.f), Map(rows, func(f flower) flower { return f }))
				}, opts...)
				require.ErrorContains(t, err, "operator MapBatch (ownership_test.go:")
				require.ErrorContains(t, err, c.want)
			})
		})
	}
}

// TestBorrowedSideBatches requires the same as TestBorrowedBatches for batches of side inputs.
func TestBorrowedSideBatches(t *testing.T) {
	for name, c := range map[string]struct {
		f    func(c *engine.Context, rows engine.Batch, side []engine.Batch) (engine.Batch, error)
		want string
	}{
		"returned": {func(_ *engine.Context, _ engine.Batch, side []engine.Batch) (engine.Batch, error) {
			return side[1], nil
		},
			"the function returned a batch of the side input, which is borrowed, without retaining it: call Retain on it first"},
		"released": {func(_ *engine.Context, _ engine.Batch, side []engine.Batch) (engine.Batch, error) {
			side[0].Release()
			return engine.Batch{}, nil
		},
			"the function released a batch of the side input, which is borrowed"},
	} {
		t.Run(name, func(t *testing.T) {
			forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
				err := runError(t, func(b *engine.Builder) *engine.Dataset {
					return MapBatchWith(FromSlice(b, flowers(100)), FromSlice(b, flowers(100)), engine.Schema{}, c.f)
				}, opts...)
				require.ErrorContains(t, err, "operator MapBatchWith (ownership_test.go:")
				require.ErrorContains(t, err, c.want)
			})
		})
	}
}

// TestRetainedBatches requires that a function may return a borrowed batch several times if it
// retains the batch each time, even a batch of a side input.
func TestRetainedBatches(t *testing.T) {
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		lines := rowsOf(t, func(b *engine.Builder) *engine.Dataset {
			rows := FromSlice(b, []int64{1, 2, 3, 4})
			return MapBatchWith(rows, FromSlice(b, []int64{5}), engine.Schema{}, func(_ *engine.Context, rows engine.Batch, side []engine.Batch) (engine.Batch, error) {
				made := rows
				if arrowrows.Record(rows).Column(0).(*array.Int64).Value(0) > 2 {
					made = side[0]
				}
				made.Retain()
				return made, nil
			})
		}, opts...)
		require.Contains(t, lines, int64(1))
		require.Contains(t, lines, int64(5))
	})
}

// rowsOf runs a job of int64 rows.
func rowsOf(t *testing.T, build func(b *engine.Builder) *engine.Dataset, opts ...engine.Option) []int64 {
	t.Helper()
	result, err := engine.Run(t.Context(), engine.Anonymous(func(b *engine.Builder) error {
		engine.Collect(build(b), "out")
		return nil
	}), struct{}{}, opts...)
	require.NoError(t, err)
	defer result.Release()
	rows, err := engine.Rows[int64](result, "out")
	require.NoError(t, err)
	return rows
}
