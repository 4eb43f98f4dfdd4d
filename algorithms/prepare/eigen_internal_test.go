package prepare

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// matrix returns a symmetric matrix with the given upper triangle.
func matrix(n int, entry func(i, j int) float64) []float64 {
	a := make([]float64, n*n)
	for i := range n {
		for j := i; j < n; j++ {
			a[i*n+j] = entry(i, j)
			a[j*n+i] = a[i*n+j]
		}
	}
	return a
}

func TestSymmetricEigen(t *testing.T) {
	draws := sharding.NewRandom(5, "matrix", 0, 0)
	random := func(int, int) float64 { return 2*draws.Float64() - 1 }
	for name, c := range map[string]struct {
		n     int
		entry func(i, j int) float64
	}{
		"one number":  {1, func(int, int) float64 { return -3 }},
		"two by two":  {2, func(i, j int) float64 { return float64(1 + i + j) }},
		"zeros":       {4, func(int, int) float64 { return 0 }},
		"identity":    {5, func(i, j int) float64 { return float64((i + 1) / (j + 1) * (j + 1) / (i + 1)) }},
		"all ones":    {6, func(int, int) float64 { return 1 }},
		"random":      {30, random},
		"huge":        {9, func(i, j int) float64 { return 1e300 * random(i, j) }},
		"tiny":        {9, func(i, j int) float64 { return 1e-300 * random(i, j) }},
		"graded":      {8, func(i, j int) float64 { return math.Ldexp(1, -7*(i+j)) }},
		"hilbert":     {12, func(i, j int) float64 { return 1 / float64(1+i+j) }},
		"tridiagonal": {20, func(i, j int) float64 { return float64(max(0, 2-2*(j-i)) - min(1, j-i)*max(0, 2-(j-i))) }},
	} {
		t.Run(name, func(t *testing.T) {
			n := c.n
			a := matrix(n, c.entry)
			scale := 0.0
			for _, v := range a {
				scale = max(scale, math.Abs(v))
			}
			if scale == 0 {
				scale = 1
			}
			near1 := append([]float64(nil), a...) // gonum's solver accepts only matrices with entries near 1
			for i := range near1 {
				near1[i] /= scale
			}
			values, vectors, err := symmetricEigen(context.Background(), append([]float64(nil), a...), n)
			require.NoError(t, err)
			var solver mat.EigenSym
			require.True(t, solver.Factorize(mat.NewSymDense(n, near1), false))
			want := solver.Values(nil)
			for k := range n {
				require.InDelta(t, want[n-1-k], values[k]/scale, 1e-13*float64(n), "value %d", k)
				most := 0.0
				for i := range n {
					sum := 0.0
					for j := range n {
						sum += near1[i*n+j] * vectors[k][j]
					}
					require.InDelta(t, values[k]/scale*vectors[k][i], sum, 1e-13*float64(n))
					if math.Abs(vectors[k][i]) > math.Abs(most) {
						most = vectors[k][i]
					}
				}
				require.Positive(t, most)
				for l := range n {
					dot := 0.0
					for j := range n {
						dot += vectors[k][j] * vectors[l][j]
					}
					if k == l {
						dot--
					}
					require.InDelta(t, 0, dot, 1e-13*float64(n))
				}
			}
		})
	}
	_, _, err := symmetricEigen(context.Background(), []float64{math.NaN()}, 1)
	require.ErrorContains(t, err, "no finite number")
	stopped, stop := context.WithCancel(context.Background())
	stop()
	_, _, err = symmetricEigen(stopped, []float64{1, 2, 2, 1}, 2)
	require.ErrorIs(t, err, context.Canceled)
}

// BenchmarkSymmetricEigen measures symmetricEigen and gonum's solver on the same matrix.
func BenchmarkSymmetricEigen(b *testing.B) {
	for _, n := range []int{50, 500} {
		draws := sharding.NewRandom(5, "matrix", 0, 0)
		a := matrix(n, func(int, int) float64 { return 2*draws.Float64() - 1 })
		b.Run(fmt.Sprintf("ours/n=%d", n), func(b *testing.B) {
			for b.Loop() {
				if _, _, err := symmetricEigen(context.Background(), append([]float64(nil), a...), n); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(fmt.Sprintf("gonum/n=%d", n), func(b *testing.B) {
			for b.Loop() {
				var solver mat.EigenSym
				var vectors mat.Dense
				if !solver.Factorize(mat.NewSymDense(n, append([]float64(nil), a...)), true) {
					b.Fatal("gonum's solver gave up")
				}
				solver.VectorsTo(&vectors)
			}
		})
	}
}
