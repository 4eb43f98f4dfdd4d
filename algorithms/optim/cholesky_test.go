package optim

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/superstep-ml/superstep/shared"
)

// gram returns the packed triangle of Xᵀ·X, of n rows in d columns.
func gram(n, d int) []float64 {
	r := shared.NewRandom(1, "gram", 0, 0)
	packed, x := make([]float64, triangle(d)), make([]float64, d)
	for range n {
		for j := range x {
			x[j] = r.NormFloat64()
		}
		for i := range d {
			for j := range i + 1 {
				packed[triangle(i)+j] += x[i] * x[j]
			}
		}
	}
	return packed
}

// TestCholeskySolves: directions equal those of gonum, at sizes around the band.
func TestCholeskySolves(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 5, band - 1, band, band + 1, band + 5, 3 * band, 101} {
		packed := gram(2*n+3, n)
		g, out, factors := make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range g {
			g[i], factors[i] = math.Sin(float64(i)), float64(i%3)
		}
		space := newBlocks(n, 8)
		p := &penalty{l2: 0.1, factors: factors, space: &space}
		newCholesky(n, true).solve(packed, 7, p, g, out)
		if n == 0 {
			continue
		}
		h := mat.NewSymDense(n, nil)
		for i := range n {
			for j := range i + 1 {
				v := packed[triangle(i)+j] / 7
				if i == j {
					v += 0.1 * factors[i] * factors[i]
				}
				h.SetSym(i, j, v)
			}
		}
		var want mat.VecDense
		require.NoError(t, want.SolveVec(h, mat.NewVecDense(n, g)))
		for i, v := range out {
			require.InDelta(t, -want.AtVec(i), v, 1e-8*mat.Norm(&want, 2), "n = %d", n)
		}
	}
}

// TestCholeskyShifts: singular, indefinite, negative and empty matrices give directions
// that descend.
func TestCholeskyShifts(t *testing.T) {
	for name, packed := range map[string][]float64{
		"singular":   {1, 1, 1, 0, 0, 2},
		"zero":       {0, 0, 0, 0, 0, 0},
		"negative":   {-1, 0, -2, 0, 0, -3},
		"indefinite": {1, 5, 1, 0, 7, 1},
		"tiny":       {1e-200, 0, 1e-200, 0, 0, 1e-200},
	} {
		g, out := []float64{1, -2, 3}, make([]float64, 3)
		space := newBlocks(3, 1)
		newCholesky(3, true).solve(packed, 1, &penalty{factors: make([]float64, 3), space: &space}, g, out)
		slope := space.dot(g, out)
		require.Negative(t, slope, name)
		require.True(t, finite(slope), name)
	}
}

func BenchmarkCholesky(b *testing.B) {
	for _, n := range []int{50, 500, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			packed := make([]float64, triangle(n))
			for i := range n {
				for j := range i {
					packed[triangle(i)+j] = math.Sin(float64(i + j))
				}
				packed[triangle(i)+i] = float64(n)
			}
			g, out := make([]float64, n), make([]float64, n)
			g[0] = 1
			c := newCholesky(n, true)
			p := &penalty{factors: make([]float64, n)}
			for b.Loop() {
				c.solve(packed, 1, p, g, out)
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/(float64(n)*float64(n)*float64(n)/6)*1e9, "ns/product")
		})
	}
}
