package tree

import (
	"math"
	"math/big"
	"math/bits"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// worth returns the expected score of a row of which only the features in the set known are
// known. It is computed from the definition of the game whose Shapley values are the tree SHAP
// values.
func worth(e *Ensemble, row []float64, known uint, output int) float64 {
	sum, trees := 0.0, 0.0
	for t := range e.Trees {
		tree := &e.Trees[t]
		if tree.Values == nil && int(tree.Output) != output {
			continue
		}
		trees++
		var expect func(at int32) float64
		expect = func(at int32) float64 {
			n := &tree.Nodes[at]
			switch {
			case n.Leaf() && tree.Values != nil:
				return tree.Values[int(at)*e.Outputs+output]
			case n.Leaf():
				return n.Value
			case known>>n.Feature&1 == 0:
				left, right := shares(n.Cover, tree.Nodes[n.Left].Cover, tree.Nodes[n.Right].Cover)
				return left*expect(n.Left) + right*expect(n.Right)
			case tree.Left(at, row[n.Feature], e.Single):
				return expect(n.Left)
			}
			return expect(n.Right)
		}
		sum += tree.Weight * expect(0)
	}
	if e.Average && trees > 0 {
		sum /= trees
	}
	return e.Base[output] + sum
}

// choose returns the weight, in Shapley's formula, of a coalition of k out of n other features.
func choose(k, n int) float64 {
	f := func(n int) *big.Int { return new(big.Int).MulRange(1, int64(n)) }
	w, _ := new(big.Rat).SetFrac(new(big.Int).Mul(f(k), f(n-k)), f(n+1)).Float64()
	return w
}

// shapley computes the values and interactions of one row and output by enumerating all sets of
// features.
func shapley(e *Ensemble, row []float64, output int) (values []float64, pairs [][]float64) {
	d := len(e.Features)
	all := make([]float64, 1<<d)
	for set := range all {
		all[set] = worth(e, row, uint(set), output)
	}
	values, pairs = make([]float64, d+1), make([][]float64, d+1)
	for i := range pairs {
		pairs[i] = make([]float64, d+1)
	}
	values[d], pairs[d][d] = all[0], all[0]
	for set := range all {
		k := bits.OnesCount(uint(set))
		for i := range d {
			if set>>i&1 == 1 {
				continue
			}
			values[i] += choose(k, d-1) * (all[set|1<<i] - all[set])
			for j := range d {
				if j != i && set>>j&1 == 0 {
					pairs[i][j] += choose(k, d-2) / 2 * (all[set|1<<i|1<<j] - all[set|1<<i] - all[set|1<<j] + all[set])
				}
			}
		}
	}
	for i := range d {
		pairs[i][i] = values[i]
		for j := range d {
			if j != i {
				pairs[i][i] -= pairs[i][j]
			}
		}
	}
	return values, pairs
}

// TestShapley compares values and interactions with the sums over all sets of features, for
// every shape of ensembles.
func TestShapley(t *testing.T) {
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) {
			s.features, s.trees, s.leaves = min(s.features, 6), 5, min(s.leaves, 20)
			e := valid(t, 1, s)
			x, err := e.Explainer(ExplainOptions{})
			require.NoError(t, err)
			r := rand.New(rand.NewPCG(1, 2))
			row := make([]float64, s.features)
			width := s.features + 1
			got, gotPairs := make([]float64, e.Outputs*width), make([]float64, e.Outputs*width*width)
			for range 4 {
				randomRow(r, s, row)
				x.Values(row, got)
				x.Interactions(row, gotPairs)
				for o := range e.Outputs {
					values, pairs := shapley(e, row, o)
					require.InDeltaSlice(t, values, got[o*width:][:width], 1e-12)
					for i, want := range pairs {
						require.InDeltaSlice(t, want, gotPairs[(o*width+i)*width:][:width], 1e-12)
					}
				}
			}
		})
	}
}

// TestValuesAddUp requires that values add up to scores, and interactions to values, also for
// trees with too many features to enumerate their sets.
func TestValuesAddUp(t *testing.T) {
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) {
			s.features, s.trees = min(s.features, 30), min(s.trees, 10)
			e := valid(t, 2, s)
			x, err := e.Explainer(ExplainOptions{})
			require.NoError(t, err)
			r := rand.New(rand.NewPCG(1, 2))
			width, k := s.features+1, e.Outputs
			const n = 3
			rows := make([]float64, n*s.features)
			randomRow(r, s, rows)
			values, pairs := make([]float64, n*k*width), make([]float64, n*k*width*width)
			x.DenseValues(rows, n, values, 2)
			x.DenseInteractions(rows, n, pairs, 2)
			one := make([]float64, k*width)
			for i := range n {
				row := rows[i*s.features:][:s.features]
				x.Values(row, one)
				require.Equal(t, allBits(one), allBits(values[i*k*width:][:k*width]))
				for o, want := range plainScores(e, row) {
					require.InDelta(t, want, total(one[o*width:][:width]), 1e-11)
					matrix := pairs[(i*k+o)*width*width:][:width*width]
					for f := range width {
						require.InDelta(t, one[o*width+f], total(matrix[f*width:][:width]), 1e-11)
						for g := range width {
							require.Equal(t, matrix[f*width+g], matrix[g*width+f])
						}
					}
				}
			}
		})
	}
}

func total(x []float64) float64 {
	sum := 0.0
	for _, v := range x {
		sum += v
	}
	return sum
}

// TestGauss compares integrals of powers with their exact values.
func TestGauss(t *testing.T) {
	for _, n := range []int{1, 2, 3, 4, 5, 8, 16, 33, 100} {
		points, weights := gauss(n)
		for k := range 2 * n {
			sum := 0.0
			for q, p := range points {
				sum += weights[q] * math.Pow(p, float64(k))
			}
			require.InEpsilon(t, 1/float64(k+1), sum, 1e-12, "%d points, power %d", n, k)
		}
		for i := range points {
			require.InDelta(t, 1, points[i]+points[n-1-i], 1e-15)
			require.True(t, i == 0 || points[i] > points[i-1])
		}
	}
}
