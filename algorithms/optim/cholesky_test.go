package optim

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// gram returns the packed triangle of Xᵀ·X for a matrix X of n rows and d columns.
func gram(n, d int) []float64 {
	r := sharding.NewRandom(1, "gram", 0, 0)
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

// TestCholeskySolves compares directions with the solutions of gonum, for numbers of columns
// around multiples of band.
func TestCholeskySolves(t *testing.T) {
	for _, n := range []int{0, 1, 2, 3, 5, band - 1, band, band + 1, band + 5, 3 * band, 101} {
		packed := gram(2*n+3, n)
		g, out, factors := make([]float64, n), make([]float64, n), make([]float64, n)
		for i := range g {
			g[i], factors[i] = math.Sin(float64(i)), float64(i%3)
		}
		space := newBlocks(n, 8)
		p := &penalty{l2: 0.1, factors: factors, space: &space}
		require.NoError(t, newCholesky(n, 1, true).solve(t.Context(), packed, 7, p, g, out))
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

// TestCholeskyLeavesIdleParametersAlone requires that parameters whose second derivatives are
// all 0 get a direction of 0, and that they change no bit of the other directions.
func TestCholeskyLeavesIdleParametersAlone(t *testing.T) {
	const n = 5
	solve := func(packed, g []float64) []float64 {
		space, out := newBlocks(len(g), 8), make([]float64, len(g))
		p := &penalty{factors: make([]float64, len(g)), space: &space}
		require.NoError(t, newCholesky(len(g), 1, true).solve(t.Context(), packed, 3, p, g, out))
		return out
	}
	packed, g := gram(2*n, n), []float64{1, -2, 3, 0, 5}
	want := solve(packed, g)
	for _, at := range []int{0, 2, n} {
		var wider []float64
		for i := range n + 1 {
			for j := range i + 1 {
				v := 0.0
				if i != at && j != at {
					from := func(k int) int {
						if k > at {
							return k - 1
						}
						return k
					}
					v = packed[triangle(from(i))+from(j)]
				}
				wider = append(wider, v)
			}
		}
		got := solve(wider, slices.Insert(slices.Clone(g), at, 0))
		require.Zero(t, got[at])
		require.Equal(t, want, slices.Delete(got, at, at+1), at)
	}
}

// TestCholeskyHasTheBitsOfTheLoop requires that the bits do not depend on tiles and workers. It
// compares the factor with the result of a plain loop.
func TestCholeskyHasTheBitsOfTheLoop(t *testing.T) {
	for _, n := range []int{1, 40, band, band + 1, 2*band + tileRows + 3, 2*band + tileColumns + 17} {
		packed := gram(n+3, n)
		p := &penalty{l2: 0.5, factors: make([]float64, n)}
		want := make([]float64, len(packed))
		for i := range n {
			for j := range i + 1 {
				sum := packed[triangle(i)+j] / 3
				for k := range j {
					sum -= float64(want[triangle(i)+k] * want[triangle(j)+k])
				}
				if i == j {
					want[triangle(i)+j] = math.Sqrt(sum)
				} else {
					want[triangle(i)+j] = sum / want[triangle(j)+j]
				}
			}
		}
		for _, workers := range []int{1, 2, 5} {
			c := newCholesky(n, workers, true)
			for range 2 {
				c.load(packed, 3, p, 0)
				ok, err := c.decompose(t.Context(), 0)
				require.NoError(t, err)
				require.True(t, ok)
				require.Equal(t, want, c.factor, "n = %d, %d workers", n, workers)
			}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := &penalty{factors: make([]float64, 2)}
	require.ErrorIs(t, newCholesky(2, 1, true).solve(ctx, []float64{1, 0, 1}, 1, p, []float64{1, 1}, make([]float64, 2)), context.Canceled)
}

// TestCholeskyShifts requires that the results for singular, indefinite, negative and empty
// matrices are descent directions.
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
		require.NoError(t, newCholesky(3, 2, true).solve(t.Context(), packed, 1, &penalty{factors: make([]float64, 3), space: &space}, g, out))
		slope := space.dot(g, out)
		require.Negative(t, slope, name)
		require.True(t, kernel.Finite(slope), name)
	}
}

func BenchmarkCholesky(b *testing.B) {
	for _, at := range []struct{ n, workers int }{{50, 1}, {500, 1}, {2000, 1}, {2000, 2}, {5000, 1}, {5000, 2}} {
		n := at.n
		b.Run(fmt.Sprintf("%d/%d", n, at.workers), func(b *testing.B) {
			packed := make([]float64, triangle(n))
			for i := range n {
				for j := range i {
					packed[triangle(i)+j] = math.Sin(float64(i + j))
				}
				packed[triangle(i)+i] = float64(n)
			}
			g, out := make([]float64, n), make([]float64, n)
			g[0] = 1
			c := newCholesky(n, at.workers, true)
			p := &penalty{factors: make([]float64, n)}
			for b.Loop() {
				if err := c.solve(b.Context(), packed, 1, p, g, out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N)/(float64(n)*float64(n)*float64(n)/6)*1e9, "ns/product")
		})
	}
}
