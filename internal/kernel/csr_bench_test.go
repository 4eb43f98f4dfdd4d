package kernel

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func BenchmarkCSR(b *testing.B) {
	for _, s := range []struct{ n, d, entries int }{{20_000, 10_000, 50}, {20_000, 1_000_000, 30}, {100_000, 120, 5}} {
		rng := rand.New(rand.NewPCG(65, 66))
		x := CSR{RowPtr: []int64{0}}
		for range s.n {
			from := len(x.Col)
			for range s.entries {
				x.Col = append(x.Col, int32(rng.IntN(s.d)))
				x.Val = append(x.Val, rng.NormFloat64())
			}
			slices.Sort(x.Col[from:])
			x.RowPtr = append(x.RowPtr, int64(len(x.Col)))
		}
		w, coef := mixed[float64](rng, s.d, 0, 0), mixed[float64](rng, s.n, 0, 0)
		out := make([]float64, s.n)
		for _, f := range []struct {
			name string
			run  func()
		}{
			{"DotCSR", func() { DotCSR(x, w, out) }},
			{"AddScaledCSR", func() { AddScaledCSR(x, coef, w) }},
		} {
			b.Run(fmt.Sprintf("%s/d=%d,entries=%d", f.name, s.d, s.entries), func(b *testing.B) {
				b.SetBytes(int64(12 * len(x.Val)))
				for b.Loop() {
					f.run()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(x.Val)), "ns/entry")
			})
		}
	}
}
