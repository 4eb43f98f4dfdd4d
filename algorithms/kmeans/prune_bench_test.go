package kmeans

import (
	"fmt"
	"testing"
	"time"

	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// blobs returns n rows around the given number of centres. With 0 centres it returns uniform
// noise.
func blobs(n, d, centers int, noise float64) []float64 {
	r := sharding.NewRandom(1, "blobs", 0, 0)
	x := make([]float64, n*d)
	if centers == 0 {
		for i := range x {
			x[i] = r.Float64()
		}
		return x
	}
	means := make([]float64, centers*d)
	for i := range means {
		means[i] = r.NormFloat64()
	}
	for i := range n {
		a := r.IntN(centers)
		for j := range d {
			x[i*d+j] = means[a*d+j] + noise*r.NormFloat64()
		}
	}
	return x
}

func BenchmarkSupersteps(b *testing.B) {
	for _, s := range []struct{ n, d, k int }{{200_000, 16, 10}, {100_000, 32, 64}, {20_000, 100, 256}} {
		for _, noise := range []float64{0, 0.3, 0.7} {
			centers := s.k * 3 / 4
			if noise == 0 {
				centers = 0
			}
			x := blobs(s.n, s.d, centers, noise)
			for _, mode := range []string{"kernel", "pruned"} {
				b.Run(fmt.Sprintf("n=%d d=%d k=%d noise=%g %s", s.n, s.d, s.k, noise, mode), func(b *testing.B) {
					for b.Loop() {
						var p *pruner[float64]
						groups := groupsFor(s.k, s.d, 8)
						p = newPruner[float64](s.k, s.d, groups)
						for i := range 256 {
							p.sample = append(p.sample, x[i*(s.n/256)*s.d:][:s.d]...)
						}
						near, low := make([]int32, s.n), p.newBounds(s.n)
						c := kernel.NewAssigner[float64](s.k, s.d)
						centers := append([]float64(nil), x[:s.k*s.d]...)
						sums := make([]float64, s.k*(s.d+1))
						var began time.Time
						var steps string
						var total time.Duration
						for range 21 {
							began = time.Now()
							clear(sums)
							if mode == "kernel" {
								c.Set(centers)
								c.Accumulate(x, s.n, nil, near, sums, 0)
							} else {
								p.set(centers)
								p.accumulate(x, s.n, nil, near, low, sums)
							}
							for a := range s.k {
								for j := range s.d {
									if w := sums[a*(s.d+1)+s.d]; w > 0 {
										centers[a*s.d+j] = sums[a*(s.d+1)+j] / w
									}
								}
							}
							took := time.Since(began)
							total += took
							steps += fmt.Sprintf(" %.0f", 1e9*took.Seconds()/float64(s.n))
						}
						b.Log(steps)
						b.ReportMetric(0, "ns/op")
						b.ReportMetric(1e9*total.Seconds()/float64(s.n)/21, "ns/row")
					}
				})
			}
		}
	}
}
