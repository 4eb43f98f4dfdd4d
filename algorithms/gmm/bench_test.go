package gmm

import (
	"testing"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// BenchmarkExpect runs the inner loop of an iteration with 10,000 rows of 10 features, 8
// components and one goroutine.
func BenchmarkExpect(b *testing.B) {
	const n, d, k = 10_000, 10, 8
	r := sharding.NewRandom(1, "bench", 0, 0)
	block := &rows.Block{N: n, D: d}
	for range n * d {
		block.Dense = append(block.Dense, r.NormFloat64())
	}
	for _, shape := range []Covariance{Full, Diagonal, Spherical, Tied} {
		b.Run(shape.String(), func(b *testing.B) {
			f := &fit{mix: newMixture(shape, k, d), work: newWork(chunk, k, d), r: make([]float64, chunk)}
			copy(f.mix.means, block.Dense)
			for c := range f.mix.weights {
				f.mix.weights[c] = 1. / k
			}
			for s := range f.mix.shapes() {
				cov := f.mix.covariance(s)
				for j := range cov {
					cov[j] = 1
				}
				if len(cov) == triangle(d) {
					clear(cov)
					for j := range d {
						cov[triangle(j)+j] = 1
					}
				}
			}
			if err := f.mix.prepare(); err != nil {
				b.Fatal(err)
			}
			out := make([]float64, 1+k*(1+d)+f.mix.shapes()*triangle(d))
			if f.mix.whiten == nil {
				out = out[:1+k*(1+d)+k*d]
			}
			b.ReportAllocs()
			for b.Loop() {
				for lo := 0; lo < n; lo += chunk {
					part := block.Rows(lo, min(lo+chunk, n))
					if err := f.expectRows(&part, lo, out); err != nil {
						b.Fatal(err)
					}
					f.addMoments(&part, out)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}
