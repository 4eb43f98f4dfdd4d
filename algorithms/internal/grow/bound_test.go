package grow

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/bins"
)

// extremeProblem returns a problem with n rows, which all have the largest absolute gradient
// and hessian. It has a feature in a column of bytes, a feature in a column of two bytes and a
// sparse feature. In the second target, the signs of gradients depend on the first feature.
func extremeProblem(n int) *problem {
	x := &problem{trees: 2, bag: make([][]int32, 2), g: make([][]float64, 2), h: make([][]float64, 2)}
	for f := range 3 {
		x.features = append(x.features, bins.Feature{Number: f, Bins: 2, Cuts: []float32{0}, Column: -1, Slot: -1, Implicit: -1})
	}
	x.features[2].Implicit = 0
	for r := range n {
		x.bins = append(x.bins, []int{r % 2, r % 2, r / 2 % 2})
		x.g[0], x.g[1] = append(x.g[0], -4), append(x.g[1], float64(4-8*(r%2)))
		x.h[0], x.h[1] = append(x.h[0], 8), append(x.h[1], 8)
	}
	return x
}

// TestSumsAtTheBound requires that sums do not overflow if all rows have the largest gradient
// and hessian. The sums are then at most 2^62, and equal to 2^62 if the number of rows is a
// power of two. They must be right in roots, histograms, children and leaves.
func TestSumsAtTheBound(t *testing.T) {
	rng := rand.New(rand.NewPCG(51, 52))
	for _, n := range []int{1, 2, 3, 4, 5, 64, 65, 1000, 1024, 1 << 14} {
		x := extremeProblem(n)
		for i, params := range []Params{{MaxDepth: 2}, {MaxDepth: 2, MinRows: 2}} {
			x.large = n == 1<<14 // the largest number of rows with which fine pairs of float32 have largeBits bits
			l := x.layout(rng, []int{asColumn, asWide, asSparse})
			got, _ := x.run(t, params, l, 1+i%2, 1)
			for k, tree := range got.trees {
				what := fmt.Sprint(n, " ", i, " ", k)
				require.Equal(t, float64(8*n), tree.Nodes[0].Cover, what)
				if k == 0 {
					require.Len(t, tree.Nodes, 1, what)
					require.Equal(t, 0.5, tree.Nodes[0].Value, what)
					continue
				}
				require.Equal(t, n >= 2*params.minRows(), len(tree.Nodes) == 3, what)
				for side, leaf := range tree.Nodes[1:] {
					require.Equal(t, float64(side)-0.5, leaf.Value, what)
					require.Equal(t, float64(8*((n+1-side)/2)), leaf.Cover, what)
				}
			}
			if n <= 65 {
				x.compare(t, params, l, 1+i%2, 1, fmt.Sprint(n, " ", i))
			}
		}
	}
}

// TestBitsOfPairs requires that fine pairs have as many bits as their sums allow.
func TestBitsOfPairs(t *testing.T) {
	most := new(big.Int).Lsh(big.NewInt(1), 62)
	for _, n := range []int64{1, 2, 3, 4, 1 << 16, 1<<16 + 1, 1_000_000, 1 << 40} {
		x := Target{}
		x.reset(2, false)
		x.Set(0, []float64{0.75, -1}, []float64{3, 5})
		require.NoError(t, x.quantise([2]float64{1, 6}, n))
		sum := func(unit, value float64) *big.Int {
			one, _ := new(big.Float).SetFloat64(value / unit).Int(nil)
			return one.Mul(one, big.NewInt(n))
		}
		for _, v := range [][2]float64{{x.fine.g, 1}, {x.fine.h, 8}} { // 8 is the smallest power of two that is not below 6
			s := sum(v[0], v[1])
			require.LessOrEqual(t, s.Cmp(most), 0, n)
			require.Equal(t, 1, s.Lsh(s, 1).Cmp(most), n)
		}
		require.Equal(t, []int64{int64(0.75 / x.fine.g), int64(3 / x.fine.h), int64(-1 / x.fine.g), int64(5 / x.fine.h)}, x.wide)
	}
}
