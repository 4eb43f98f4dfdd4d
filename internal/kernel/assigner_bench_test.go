package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// uniform returns n rows from the uniform distribution in the unit cube, and the first k rows
// as centres.
func uniform(n, d, k int) (x, centers []float64) {
	x, _ = blobs(n, d, 1, 0)
	r := rand.New(rand.NewPCG(1, 2))
	for i := range x {
		x[i] = r.Float64()
	}
	return x, x[:k*d]
}

// BenchmarkAssigner measures a pass over rows that fit in the second-level cache, with right
// guesses. The rows form clusters that are far apart or near each other, or no clusters.
func BenchmarkAssigner(b *testing.B) {
	for _, s := range []struct{ n, d, k int }{{4096, 16, 10}, {4096, 32, 64}, {1024, 100, 256}} {
		for _, noise := range []float64{0, 0.3, 0.5, 1} {
			x, centers := blobs(s.n, s.d, s.k, noise)
			if noise == 0 {
				x, centers = uniform(s.n, s.d, s.k)
			}
			sums := make([]float64, s.k*(s.d+1))
			for _, form := range forms[1:] {
				near := make([]int32, s.n)
				b.Run(fmt.Sprintf("d=%d/k=%d/noise=%g/%s/float64", s.d, s.k, noise, form.name), func(b *testing.B) {
					a := newAssigner[float64](form.k, s.k, s.d)
					a.Set(centers)
					a.Accumulate(x, s.n, nil, near, sums, 0)
					for b.Loop() {
						a.Accumulate(x, s.n, nil, near, sums, 0)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(s.n), "ns/row")
				})
				b.Run(fmt.Sprintf("d=%d/k=%d/noise=%g/%s/float32", s.d, s.k, noise, form.name), func(b *testing.B) {
					a := newAssigner[float32](form.k, s.k, s.d)
					a.Set(centers)
					y := make([]float32, len(x))
					for i, v := range x {
						y[i] = float32(v)
					}
					a.Accumulate(y, s.n, nil, near, sums, 0)
					for b.Loop() {
						a.Accumulate(y, s.n, nil, near, sums, 0)
					}
					b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(s.n), "ns/row")
				})
			}
		}
	}
}
