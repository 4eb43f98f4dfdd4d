package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// BenchmarkWideGram measures the matrix of second derivatives for very many features. For 5,000
// features the matrix takes 100 MB, so that the time depends on the number of passes over it as
// well as on the products.
func BenchmarkWideGram(b *testing.B) {
	rng := rand.New(rand.NewPCG(61, 62))
	var g Gram
	for _, s := range []struct{ n, d int }{{64, 5000}, {256, 5000}, {256, 1000}, {128, 300}} {
		n, d := s.n, s.d
		x, h, gram := mixed[float64](rng, n*d, 0, 0), mixed[float64](rng, n, 0, 0), make([]float64, d*(d+1)/2)
		benchForms(b, fmt.Sprintf("GramRows/n=%d,d=%d", n, d), 8*n*d, n*d*(d+1), func(f dispatch) { gramRows(f, &g, x, n, d, h, gram) })
	}
}
