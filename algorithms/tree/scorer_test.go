package tree

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// allBits are the bits of numbers, for comparisons that tell 0 from -0.
func allBits(x []float64) []uint64 {
	all := make([]uint64, len(x))
	for i, v := range x {
		all[i] = math.Float64bits(v)
	}
	return all
}

// TestScores compares every way to predict with the walk from node to node, bit for bit.
func TestScores(t *testing.T) {
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(3) {
				e := valid(t, seed, s)
				r := rand.New(rand.NewPCG(seed, 2))
				n := 64 + 64 + 13 + int(seed)
				x := make([]float64, n*s.features)
				var want []float64
				var leaves []int32
				for i := range n {
					row := x[i*s.features:][:s.features]
					randomRow(r, s, row)
					want = append(want, plainScores(e, row)...)
					for j := range e.Trees {
						leaves = append(leaves, e.Trees[j].Leaf(row, e.Single))
					}
				}
				checkScorer(t, e, x, n, want, leaves)
			}
		})
	}
}

func checkScorer(t *testing.T, e *Ensemble, x []float64, n int, want []float64, leaves []int32) {
	t.Helper()
	s, d, k := e.Scorer(), len(e.Features), e.Outputs
	got := make([]float64, n*k)
	for i := range n {
		s.Scores(x[i*d:(i+1)*d], got[i*k:(i+1)*k])
	}
	require.Equal(t, allBits(want), allBits(got), "row by row")
	for _, threads := range []int{0, 1, 2, 3} {
		clear(got)
		s.Dense(x, n, got, threads)
		require.Equal(t, allBits(want), allBits(got), "%d threads", threads)
		numbers := make([]int32, n*len(e.Trees))
		s.DenseLeaves(x, n, numbers, threads)
		require.Equal(t, leaves, numbers)
	}
	for _, size := range []int{1, 7, 12, 65} {
		clear(got)
		for from := 0; from < n; from += size {
			to := min(from+size, n)
			s.Dense(x[from*d:to*d], to-from, got[from*k:to*k], 1)
		}
		require.Equal(t, allBits(want), allBits(got), "batches of %d", size)
	}
}
