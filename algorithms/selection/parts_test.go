package selection

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestPermutationIsOne(t *testing.T) {
	for n := int64(1); n < 200; n++ {
		p := newPermutation(uint64(n), "test", 0, n)
		seen := make([]bool, n)
		for i := range n {
			at := p.at(i)
			require.False(t, seen[at])
			seen[at] = true
		}
	}
}

// TestPermutationIsUniform requires that every row is equally likely at every position, and
// that rows 0 and 1 are equally likely in either order.
func TestPermutationIsUniform(t *testing.T) {
	const n, draws = 6, 12_000
	var place [n][n]float64
	ordered := 0.0
	for seed := range uint64(draws) {
		p := newPermutation(seed, "test", 3, n)
		for i := range int64(n) {
			place[i][p.at(i)]++
		}
		if p.at(0) < p.at(1) {
			ordered++
		}
	}
	for i := range place {
		for _, count := range place[i] {
			require.InDelta(t, draws/n, count, 5*math.Sqrt(draws/n))
		}
	}
	require.InDelta(t, draws/2, ordered, 5*math.Sqrt(draws/4))
}

func TestSharesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Int64Range(1, 1<<40).Draw(t, "n")
		of := rapid.Int64Range(0, n).Draw(t, "of")
		upTo := rapid.Int64Range(0, n).Draw(t, "upTo")
		require.Equal(t, int64(0), share(of, 0, n))
		require.Equal(t, of, share(of, n, n))
		require.InDelta(t, float64(of)*(float64(upTo)/float64(n)), float64(share(of, upTo, n)), 0.5+1e-15*float64(n))
	})
}

func TestScoresRankByMean(t *testing.T) {
	nan := math.NaN()
	rows := scores([]string{"a", "b", "c", "d"}, []Metric{{Name: "r2"}, {Name: "mse", LessIsBetter: true}}, [][][]float64{
		{{1, 2}, {4, 2}}, {{2, 2}, {1, 1}}, {{1, 2}, {nan, 1}}, {{nan, 1}, {5, 5}},
	})
	require.Len(t, rows, 16)
	var ranks []int64
	for _, r := range rows {
		if r.Fold == 0 {
			ranks = append(ranks, r.Rank)
		}
	}
	require.Equal(t, []int64{2, 2, 1, 1, 2, 4, 4, 3}, ranks)
	require.Equal(t, []float64{1.5, 0.5}, []float64{rows[0].Mean, rows[0].Std})
	table := &Table{Scores: rows}
	require.Equal(t, "b", table.Best().Candidate)
	require.Equal(t, "rank  candidate  r2         mse\n2     a          1.5 ± 0.5  3 ± 1\n1     b          2 ± 0      1 ± 0\n2     c          1.5 ± 0.5  NaN ± NaN\n4     d          NaN ± NaN  5 ± 0\n", table.String())
	for i := range table.Scores {
		table.Scores[i].Mean = nan
	}
	require.Nil(t, table.Best())
}
