package kernel

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// blobs returns n rows around k centres, which it draws from a normal distribution. If noise is
// small, the clusters are well separated.
func blobs(n, d, k int, noise float64) (x, centers []float64) {
	rng := rand.New(rand.NewPCG(1, 2))
	centers = make([]float64, k*d)
	for i := range centers {
		centers[i] = rng.NormFloat64()
	}
	x = make([]float64, n*d)
	for i := range n {
		c := centers[rng.IntN(k)*d:]
		for j := range d {
			x[i*d+j] = c[j] + noise*rng.NormFloat64()
		}
	}
	return x, centers
}

// reportPair reports the nanoseconds per feature of a (row, centre) pair.
func reportPair(b *testing.B, pairs int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(pairs), "ns/pair·feature")
}

func BenchmarkAssign(b *testing.B) {
	for _, s := range []struct{ d, k int }{{2, 3}, {16, 10}, {32, 64}, {100, 200}} {
		for _, noise := range []float64{0.1, 0.5, 1} {
			n := 4096
			x, centers := blobs(n, s.d, s.k, noise)
			c := NewCenters(s.k, s.d)
			c.Set(centers)
			assign, dist := make([]int32, n), make([]float64, n)
			sums := make([]float64, s.k*(s.d+1))
			for _, form := range forms {
				b.Run(fmt.Sprintf("fused/d=%d/k=%d/noise=%g/%s", s.d, s.k, noise, form.name), func(b *testing.B) {
					a := newAssigner[float64](form.k, s.k, s.d)
					a.Set(centers)
					for b.Loop() {
						a.Accumulate(x, n, nil, assign, sums, 0)
					}
					reportPair(b, n*s.d*s.k)
				})
				b.Run(fmt.Sprintf("unguided/d=%d/k=%d/noise=%g/%s", s.d, s.k, noise, form.name), func(b *testing.B) {
					saved := append([]uint64(nil), c.reach...)
					clear(c.reach)
					for b.Loop() {
						assignEuclidean(form.k, x, n, c, assign, dist)
					}
					copy(c.reach, saved)
					reportPair(b, n*s.d*s.k)
				})
			}
			b.Run(fmt.Sprintf("naive/d=%d/k=%d/noise=%g", s.d, s.k, noise), func(b *testing.B) {
				for b.Loop() {
					for i := range n {
						best := math.Inf(1)
						for a := range s.k {
							if v := SquaredDistance(x[i*s.d:(i+1)*s.d], centers[a*s.d:(a+1)*s.d]); v < best {
								best, assign[i] = v, int32(a)
							}
						}
					}
				}
				reportPair(b, n*s.d*s.k)
			})
		}
	}
}
