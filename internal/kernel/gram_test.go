package kernel

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWideGramEqualsDefinition compares AddRows for very many features with sums row by row. It
// tests every form, and numbers of features with full and partial panels.
func TestWideGramEqualsDefinition(t *testing.T) {
	rng := rand.New(rand.NewPCG(71, 72))
	var g Gram
	for _, s := range []struct{ n, d int }{{0, 300}, {1, wideGram - 1}, {2, wideGram}, {5, 2*panelColumns + 7}, {panelRows + 3, wideGram + 9}, {3, gramPart + 1}} {
		n, d := s.n, s.d
		x, h := mixed[float64](rng, n*d, 1, 0), mixed[float64](rng, n, 3, 0)
		start := mixed[float64](rng, d*(d+1)/2, 2, 0)
		for _, h := range [][]float64{h, nil} {
			want := append([]float64(nil), start...)
			for i := range n {
				weight := 1.0
				if h != nil {
					weight = h[i]
				}
				for a := range d {
					for b := range a + 1 {
						want[a*(a+1)/2+b] += float64(float64(weight*x[i*d+a]) * x[i*d+b])
					}
				}
			}
			compare(t, start, fmt.Sprintf("n=%d d=%d", n, d), func(f dispatch, out []float64) {
				gramRows(f, &g, x, n, d, h, out)
				require.True(t, equalBits(want, out), "n=%d d=%d %v", n, d, f)
			})
		}
	}
}

// TestWideGramAllocatesNothing requires that a Gram allocates nothing after its first use.
func TestWideGramAllocatesNothing(t *testing.T) {
	const n, d = 3, wideGram
	x, gram := make([]float64, n*d), make([]float64, d*(d+1)/2)
	var g Gram
	require.Zero(t, testing.AllocsPerRun(3, func() { g.AddRows(x, n, d, nil, gram) }))
}
