package kmeans

import (
	"cmp"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared"
	"github.com/superstep-ml/superstep/shared/sharding"
)

func TestLocateWalksTheCosts(t *testing.T) {
	costs := []float64{0, 2, 0, 3, 1, 0}
	for target, want := range map[float64]place{
		0: {1, 0}, 1.5: {1, 1.5}, 2: {3, 0}, 4.75: {3, 2.75}, 5: {4, 0}, 5.5: {4, 0.5},
		6: {4, math.Inf(1)}, 7: {4, math.Inf(1)}, // by rounding errors, a target may exceed the sum of the costs
	} {
		require.Equal(t, want, locate(costs, target), "the place of the target %v is wrong", target)
	}
	b := &block{n: 4, w: []float64{0, 2, 1, 1}}
	rows := []float64{math.Inf(1), 1, 0, 4} // costs 0, 2, 0, 4: a row without weight is never drawn
	for rest, want := range map[float64]int{0: 1, 1.9: 1, 2: 3, 5.9: 3, 6: 3, math.Inf(1): 3} {
		require.Equal(t, want, place{0, rest}.row(b, rows), "the row for the rest %v is wrong", rest)
	}
}

func TestSparseDistanceHasTheBitsOfTheDense(t *testing.T) {
	component := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(-1e9, 1e9))
	sparse := func(v []float64) (col []int32, val []float64) {
		for j, x := range v {
			if x != 0 {
				col, val = append(col, int32(j)), append(val, x)
			}
		}
		return col, val
	}
	rapid.Check(t, func(t *rapid.T) {
		d := rapid.IntRange(0, 9).Draw(t, "d")
		x := rapid.SliceOfN(component, d, d).Draw(t, "x")
		y := rapid.SliceOfN(component, d, d).Draw(t, "y")
		xc, xv := sparse(x)
		yc, yv := sparse(y)
		require.Equal(t, math.Float64bits(kernel.SquaredDistance(x, y)), math.Float64bits(squaredDistance(xc, xv, yc, yv)))
	})
}

func TestListsKeepTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(0, 6).Draw(t, "kept")
		values := rapid.SliceOfN(rapid.IntRange(0, 4), 0, 30).Draw(t, "values")
		var far []farRow
		var heap []pick
		var all []farRow
		var picks []pick
		for i, v := range values {
			r, p := farRow{i % 3, i, float64(v)}, pick{float64(v), i % 3, i}
			all, picks = append(all, r), append(picks, p)
			far, heap = insert(far, n, r), keepSmallest(heap, n, p)
		}
		slices.SortFunc(all, func(a, b farRow) int {
			return cmp.Or(cmp.Compare(b.cost, a.cost), cmp.Compare(a.shard, b.shard), cmp.Compare(a.row, b.row))
		})
		slices.SortFunc(picks, pick.compare)
		slices.SortFunc(heap, pick.compare)
		require.True(t, slices.Equal(all[:min(n, len(all))], far))
		require.True(t, slices.Equal(picks[:min(n, len(picks))], heap))
	})
}

func TestUnitVectorsOfAnyMagnitude(t *testing.T) {
	for _, scale := range []float64{1, 1e-300, 1e300, 5e-324, math.MaxFloat64 / 4} {
		dst := make([]float64, 3)
		unit([]float64{scale, -scale, 0}, dst)
		require.InDeltaSlice(t, []float64{math.Sqrt2 / 2, -math.Sqrt2 / 2, 0}, dst, 1e-15)
	}
}

// TestStatesSurviveTheirCodecs requires that the state of each queue is unchanged after
// encoding and decoding, as checkpoints need.
func TestStatesSurviveTheirCodecs(t *testing.T) {
	requireCodec(t, &lloydState{Updates: 3, Settled: true, Sizes: []float64{1, 2}, Inertia: 4, History: []Superstep{{5, 6}, {4, 0}}})
	requireCodec(t, &batchesState{Dim: 1, Before: []float64{0, 2}, Centers: []float64{3}, Sums: []float64{4, 5}, Batches: 6, Smoothed: 7, Least: 8, Since: 9, Settled: true})
	requireCodec(t, &bisectingState{Dim: 1, Leaves: []bisectLeaves{{[]float64{1}, 2, 3, true}}, Phase: cut, Target: 4, Cuts: 5,
		Trials: []bisectTrial{{[]float64{6, 7}, 8, 2, true}}, Best: 9, Updates: 10, Moves: 11, Done: true})
	requireCodec(t, &plusPlusState{Dim: 2, Centers: []float64{1, 2}, Shards: []float64{3}})
	requireCodec(t, &parallelInitState{Dim: 1, Rounds: 2, Candidates: []float64{7}, Mass: []float64{8}, Cost: 9, Enough: true})
}

func requireCodec[T any](t *testing.T, want T) {
	t.Helper()
	codec := shared.Msgpack[T]()
	text, err := codec.Append(nil, want)
	require.NoError(t, err)
	got, err := codec.Decode(text)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

// TestRowsByLeaf requires that listByLeaf makes the rows of each leaf adjacent and ascending,
// as they are after leaves have been divided.
func TestRowsByLeaf(t *testing.T) {
	order, span := listByLeaf([]int64{1, 0, 2, 1, 1, 0}, 4, 5)
	require.Equal(t, []int32{1, 5, 0, 3, 4, 2}, order)
	require.Equal(t, []sharding.Range{{Lo: 0, Hi: 2}, {Lo: 2, Hi: 5}, {Lo: 5, Hi: 6}, {Lo: 6, Hi: 6}}, span)
}
