package operators

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
)

func TestFromSlice(t *testing.T) {
	for _, n := range []int{0, 1, 3, 8, 100} {
		var want []string
		for i, f := range flowers(n) {
			want = append(want, f.text(place(i, n)))
		}
		requireRows(t, flowerColumns, want, func(b *engine.Builder) *engine.Dataset {
			return FromSlice(b, flowers(n))
		})
	}
}

func TestFromSliceRoundTrip(t *testing.T) {
	rows := flowers(50)
	result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		engine.Collect(FromSlice(b, rows), "rows")
		return nil
	}), struct{}{}, engine.Allocator(batchtest.Allocator(t)))
	require.NoError(t, err)
	defer result.Release()
	got, err := engine.Rows[flower](result, "rows")
	require.NoError(t, err)
	require.Equal(t, rows, got)
}

func TestFromSliceMisuse(t *testing.T) {
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return FromSlice(b, []struct{ F func() }{{}})
	}, "from_slice_test.go:", "FromSlice", "func()")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		rows := flowers(9)
		rows[7].Size = nil
		return FromSlice(b, rows)
	}, "FromSlice: row 7", `column "size"`)
	requireMisuse(t, func(*engine.Builder) *engine.Dataset {
		return FromSlice(nil, flowers(1))
	}, "from_slice_test.go:", "the builder is nil")
}

func TestFromSliceNoticesOtherRows(t *testing.T) {
	builds := 0.0
	err := runError(t, func(b *engine.Builder) *engine.Dataset {
		builds++
		return FromSlice(b, []float64{1, 2, builds})
	})
	var differs *engine.DifferenceError
	require.ErrorAs(t, err, &differs)
	require.ErrorContains(t, err, "content")
}

// TestHashSliceTellsRowsApart requires that hashes of slices are equal if and only if the rows
// are equal.
func TestHashSliceTellsRowsApart(t *testing.T) {
	type row struct {
		Text string
		Some *int64
		Real float64
	}
	codec, ok := outputRows[row]("FromSlice", nil)
	require.True(t, ok)
	hash := func(rows []row) string {
		h, err := hashSlice(codec, rows)
		require.NoError(t, err)
		return h
	}
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) []row {
			return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) row {
				return row{
					Text: rapid.StringMatching("[ab]{0,2}").Draw(t, "text"),
					Some: rapid.Ptr(rapid.Int64Range(0, 1), true).Draw(t, "some"),
					Real: rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1}).Draw(t, "real"),
				}
			}), 0, 3).Draw(t, name)
		}
		text := func(rows []row) (s string) {
			for _, r := range rows {
				s += r.Text + ","
				if r.Some != nil {
					s += line(*r.Some)
				}
				s += "," + line(math.Float64bits(r.Real)) + ";"
			}
			return s
		}
		a, b := draw("a"), draw("b")
		require.Equal(t, text(a) == text(b), hash(a) == hash(b))
	})
}

func TestCut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		shards := 1 << rapid.IntRange(0, 12).Draw(t, "log shards")
		n := rapid.OneOf(rapid.Int64Range(0, 100), rapid.Int64Range(0, math.MaxInt64)).Draw(t, "rows")
		end := int64(0)
		for i := range shards {
			lo, hi := cut(n, shards, i)
			require.Equal(t, end, lo)
			require.GreaterOrEqual(t, hi, lo)
			require.InDelta(t, float64(n)/float64(shards), float64(hi-lo), 1+1e-9*float64(n))
			if n < 1<<40 {
				require.Equal(t, int64(i)*n/int64(shards), lo)
			}
			end = hi
		}
		require.Equal(t, n, end)
	})
}
