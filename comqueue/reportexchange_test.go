package comqueue

import (
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// FuzzLetters decodes arbitrary bytes as a reportRound, with and without the reports. It
// requires that encoding and decoding the result again does not change it.
func FuzzLetters(f *testing.F) {
	whole, err := roundCodec{}.Append(nil, reportRound{Next: 3, Reports: []shardReport{{Step: 7, Name: "loss", Level: 1, Index: 2, Value: 0.5}}})
	require.NoError(f, err)
	f.Add(whole)
	f.Add([]byte{maxLag})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		few, fewErr := roundCodec{}.Decode(data)
		all, err := roundCodec{reports: true}.Decode(data)
		if err != nil {
			return
		}
		require.NoError(t, fewErr)
		require.Equal(t, reportRound{Next: all.Next}, few)
		again, err := roundCodec{}.Append(nil, all)
		require.NoError(t, err)
		same, err := roundCodec{reports: true}.Decode(again)
		require.NoError(t, err)
		once, err := roundCodec{}.Append(nil, same)
		require.NoError(t, err)
		require.Equal(t, again, once)
	})
}

// TestReportedNaNsAreTheSame requires that a reported NaN has the same bits whether its subtask
// is in the process of subtask 0 or not.
func TestReportedNaNsAreTheSame(t *testing.T) {
	other := math.Float64frombits(0xfff8000000000123)
	for _, f := range []fold{foldSum, foldMax} {
		m := &reportExchange{undelivered: []shardReport{{Step: 1, Name: "loss", Fold: f, Level: 1, Index: 0, Value: other}, {Step: 1, Name: "loss", Fold: f, Level: 1, Index: 1, Value: 1}}}
		told := 0
		require.NoError(t, m.deliver(newReports(4, 1), func(_ string, _ int, value float64) {
			told++
			require.Equal(t, math.Float64bits(math.NaN()), math.Float64bits(value))
		}))
		require.Equal(t, 1, told)
	}
}

// TestReportsAreThoseOfTheirShards requires that the reports of shards in a superstep are
// folded up the tree, within one process and over several processes. A series without reports
// in a superstep must have no value there: neither 0 nor the value of another superstep.
func TestReportsAreThoseOfTheirShards(t *testing.T) {
	const shards, steps = 8, 6
	series := map[string]fold{"loss": foldSum, "most": foldMax}
	type value struct {
		name string
		step int
		bits uint64
	}
	other := math.Float64frombits(0xfff8000000000123)
	rapid.Check(t, func(t *rapid.T) {
		subtasks := rapid.IntRange(1, shards).Draw(t, "subtasks")
		r, m := newReports(shards, subtasks), &reportExchange{}
		var want, told, mailed []value
		note := func(to *[]value) func(string, int, float64) {
			return func(name string, step int, v float64) { *to = append(*to, value{name, step, math.Float64bits(v)}) }
		}
		for step := 1; step <= steps; step++ {
			for subtask := range subtasks {
				r.begin(subtask, step)
			}
			for _, name := range slices.Sorted(maps.Keys(series)) {
				var leaves []sharding.Entry[float64]
				for subtask := range subtasks {
					for shard := r.ranges[subtask].Lo; shard < r.ranges[subtask].Hi; shard++ {
						v := rapid.SampledFrom([]float64{-1, math.Copysign(0, -1), 1, 1e16, -1e16, other}).Draw(t, "value")
						if rapid.IntRange(0, 4).Draw(t, "reports") == 0 {
							require.NoError(t, r.add(subtask, name, series[name], shard, v))
							leaves = append(leaves, sharding.Entry[float64]{Node: sharding.Leaf(shard), Value: v})
						}
					}
				}
				v, ok, err := sharding.MergeForests(shards, leaves, series[name].merge)
				require.NoError(t, err)
				if ok {
					note(&want)(name, step, kernel.OneNaNOf(v))
				}
			}
			for subtask := range subtasks {
				m.collect(r, subtask, step)
			}
			require.NoError(t, r.flush(step, note(&told)))
		}
		m.undelivered = m.unsent
		slices.Reverse(m.undelivered)
		require.NoError(t, m.deliver(newReports(shards, subtasks), note(&mailed)))
		require.Equal(t, want, told)
		require.Equal(t, want, mailed)
	})
}
