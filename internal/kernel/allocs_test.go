package kernel

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestProductsAllocateNothing requires that the exported loops allocate nothing, for shapes
// that are not multiples of the tiles.
func TestProductsAllocateNothing(t *testing.T) {
	const n, d, k = 37, 21, 13
	rng := rand.New(rand.NewPCG(71, 72))
	x, rows, coef, h := mixed[float64](rng, n*d, 0, 0), mixed[float64](rng, k*d, 0, 0), mixed[float64](rng, n*k, 0, 0), mixed[float64](rng, n, 0, 0)
	x32, rows32 := mixed[float32](rng, n*d, 0, 0), mixed[float32](rng, k*d, 0, 0)
	w, c, p, p32 := NewPacked(k, d), NewCenters(k, d), NewPanels[float64](k, d), NewPanels[float32](k, d)
	var g Gram
	near, sums, gram := make([]int32, n), make([]float64, k*(d+1)), make([]float64, d*(d+1)/2)
	out, out32, wide := make([]float64, n), make([]float32, n), make([]float64, n*k)
	require.Zero(t, testing.AllocsPerRun(5, func() {
		w.Set(rows)
		c.Set(rows)
		p.Set(rows)
		p32.Set(rows32)
		DotRows(x, n, d, rows[:d], out)
		DotRows(x32, n, d, rows32[:d], out32)
		RowNorms(x, d, out)
		AddScaledRows(x, n, d, h, sums[:d])
		Axpy(2, rows, rows)
		Scale(0.5, rows32)
		AddTo(rows, rows)
		SumTo(rows, rows, rows)
		ProdTo(rows32, rows32)
		g.AddRows(x, n, d, h, gram)
		g.AddRows(x, n, d, nil, gram)
		MulRows(x, n, w, wide)
		AddOuterRows(x, n, d, coef, k, rows)
		p.To(x, wide)
		p32.To(x32, out32)
		OwnDistances(x, n, d, rows, near, out)
		OwnDistances(x32, n, d, rows32, near, out32)
		AccumulateCentroids(x, n, d, h, near, sums)
		AccumulateCentroids(x32, n, d, nil, near, sums)
		AssignEuclidean(x, n, c, near, out)
		for _, to := range []func(dst, src []float64){ExpTo, LogTo, SigmoidTo, SoftplusTo, TanhTo} {
			to(out, h)
		}
		powTo(active, out, x[:n], h)
		PowByTo(out, h, 1.5)
	}))
}
