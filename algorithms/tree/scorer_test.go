package tree

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/internal/testsize"
)

// allBits returns the bits of numbers, so that comparisons distinguish 0 from -0.
func allBits(x []float64) []uint64 {
	all := make([]uint64, len(x))
	for i, v := range x {
		all[i] = math.Float64bits(v)
	}
	return all
}

// TestScores compares the results of all methods that predict with the results of walking from
// node to node, bit for bit.
func TestScores(t *testing.T) {
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) {
			for seed := range testsize.Raced[uint64](3, 1) {
				e := valid(t, seed, s)
				r := rand.New(rand.NewPCG(seed, 2))
				n := 64 + 64 + 13 + int(seed)
				if seed == 0 {
					n += groupBlocks * lanes // so that there are more rows than in one group
				}
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

// TestSparse requires the same scores for sparse rows whose entries are shuffled and include
// features that the ensemble does not have.
func TestSparse(t *testing.T) {
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) {
			e := valid(t, 1, s)
			r := rand.New(rand.NewPCG(1, 2))
			const n = 90
			var all [2][]float64
			m := CSR{RowPtr: []int64{0}}
			row := make([]float64, s.features)
			for range n {
				randomRow(r, s, row)
				dense := [2][]float64{make([]float64, s.features), make([]float64, s.features)}
				for f := range row {
					dense[AbsentIsMissing][f] = math.NaN()
				}
				for _, f := range r.Perm(s.features + 1)[:r.IntN(s.features+1)] {
					m.Col, m.Val = append(m.Col, int32(f)), append(m.Val, 7)
					if f < s.features {
						m.Col, m.Val = append(m.Col, int32(f)), append(m.Val, row[f])
						dense[0][f], dense[1][f] = row[f], row[f]
					}
				}
				m.Col, m.Val = append(m.Col, -1, math.MaxInt32), append(m.Val, 1, 1)
				m.RowPtr = append(m.RowPtr, int64(len(m.Col)))
				all[0], all[1] = append(all[0], dense[0]...), append(all[1], dense[1]...)
			}
			scorer := e.Scorer()
			explainer, err := e.Explainer(ExplainOptions{})
			require.NoError(t, err)
			for _, absent := range []Absent{AbsentIsMissing, AbsentIsZero} {
				k, trees, width := e.Outputs, len(e.Trees), e.Outputs*(s.features+1)
				want, got := make([]float64, n*k), make([]float64, n*k)
				wantLeaves, leaves := make([]int32, n*trees), make([]int32, n*trees)
				scorer.Dense(all[absent], n, want, 1)
				scorer.Sparse(m, absent, got, 2)
				require.Equal(t, allBits(want), allBits(got))
				scorer.DenseLeaves(all[absent], n, wantLeaves, 1)
				scorer.SparseLeaves(m, absent, leaves, 2)
				require.Equal(t, wantLeaves, leaves)
				for i := range n {
					from, to := m.RowPtr[i], m.RowPtr[i+1]
					scorer.ScoresSparse(m.Col[from:to], m.Val[from:to], absent, got[i*k:(i+1)*k])
				}
				require.Equal(t, allBits(want), allBits(got), "row by row")
				const some = 3
				wantValues, values := make([]float64, some*width), make([]float64, some*width)
				explainer.DenseValues(all[absent], some, wantValues, 1)
				explainer.SparseValues(CSR{m.RowPtr[:some+1], m.Col, m.Val}, absent, values, 1)
				require.Equal(t, allBits(wantValues), allBits(values))
			}
		})
	}
	valid(t, 1, shapes["small"]).Scorer().Sparse(CSR{}, AbsentIsZero, nil, 4)
}

// TestFloat32 requires that rows of float32 have the same scores as rows with the same values
// as float64.
func TestFloat32(t *testing.T) {
	for name, s := range shapes {
		e := valid(t, 1, s)
		r := rand.New(rand.NewPCG(1, 2))
		const n = 100
		x32, x := make([]float32, n*s.features), make([]float64, n*s.features)
		randomRow(r, s, x)
		for i, v := range x {
			x32[i] = float32(v)
			x[i] = float64(x32[i])
		}
		want, got := make([]float64, n*e.Outputs), make([]float64, n*e.Outputs)
		scorer := e.Scorer()
		scorer.Dense(x, n, want, 1)
		scorer.Dense32(x32, n, got, 2)
		require.Equal(t, allBits(want), allBits(got), name)
		for i := range n {
			scorer.Scores32(x32[i*s.features:], got[i*e.Outputs:(i+1)*e.Outputs])
		}
		require.Equal(t, allBits(want), allBits(got), name)
	}
}

// TestEmpty requires that an ensemble without trees has its Base as scores, and that zero rows
// can be scored.
func TestEmpty(t *testing.T) {
	e := &Ensemble{Features: []string{"a"}, Outputs: 2, Base: []float64{1, 2}}
	for _, average := range []bool{false, true} {
		e.Average = average
		s := e.Scorer()
		out := make([]float64, 2)
		s.Scores([]float64{1}, out)
		require.Equal(t, e.Base, out)
		all := make([]float64, 200)
		s.Dense(make([]float64, 100), 100, all, 2)
		for i, v := range all {
			require.Equal(t, e.Base[i%2], v)
		}
		s.Dense(nil, 0, nil, 2)
		x, err := e.Explainer(ExplainOptions{})
		require.NoError(t, err)
		values := make([]float64, 4)
		x.Values([]float64{1}, values)
		require.Equal(t, []float64{0, 1, 0, 2}, values)
		require.Equal(t, []Importance{{Feature: "a"}}, e.Importances())
		require.Zero(t, e.Importances()[0].Gain())
	}
}

// TestShortRowPanics requires that the caller can recover the panic about a row that is too
// short, also with several threads.
func TestShortRowPanics(t *testing.T) {
	s := valid(t, 1, shapes["depth"]).Scorer()
	require.Panics(t, func() { s.Scores(nil, make([]float64, 1)) })
	require.Panics(t, func() { s.Dense(make([]float64, 28*200), 1000, make([]float64, 1000), 3) })
	x := make([]float64, 28*100)
	s.Dense(x, 100, make([]float64, 100), 2)
}
