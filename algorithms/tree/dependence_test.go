package tree

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDependence(t *testing.T) {
	for name, s := range shapes {
		t.Run(name, func(t *testing.T) {
			s.features = min(s.features, 6)
			e := valid(t, 1, s)
			r := rand.New(rand.NewPCG(1, 2))
			const n = 70
			x := make([]float64, n*s.features)
			randomRow(r, s, x)
			features := []int{3, 1}
			points := make([]float64, 2*5)
			randomRow(r, s, points)
			want := make([]float64, 0, 5*e.Outputs)
			row := make([]float64, s.features)
			for p := range 5 {
				sums := make([]float64, e.Outputs)
				for i := range n {
					copy(row, x[i*s.features:])
					row[3], row[1] = points[2*p], points[2*p+1]
					for o, v := range plainScores(e, row) {
						sums[o] += v
					}
				}
				for o := range sums {
					want = append(want, sums[o]/n)
				}
			}
			got := make([]float64, len(want))
			for threads := range 4 {
				e.Scorer().Dependence(x, n, features, points, got, threads)
				require.Equal(t, allBits(want), allBits(got))
			}

			explainer, err := e.Explainer(ExplainOptions{})
			require.NoError(t, err)
			explainer.Dependence(features, points, got, 2)
			for p := range 5 {
				row[3], row[1] = points[2*p], points[2*p+1]
				for o := range e.Outputs {
					require.InDelta(t, worth(e, row, 1<<3|1<<1, o), got[p*e.Outputs+o], 1e-12)
				}
			}
		})
	}
}
