package tree

import (
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestNoAllocation requires that rows are scored and explained without allocations.
func TestNoAllocation(t *testing.T) {
	for name, s := range shapes {
		e := valid(t, 1, s)
		scorer := e.Scorer()
		explainer, err := e.Explainer(ExplainOptions{})
		require.NoError(t, err)
		const n = 130
		x, x32 := make([]float64, n*s.features), make([]float32, s.features)
		out, leaves := make([]float64, n*e.Outputs), make([]int32, n*len(e.Trees))
		values := make([]float64, e.Outputs*(s.features+1))
		col, val := []int32{0, 2}, []float64{1, 2}
		for what, f := range map[string]func(){
			"Scores":       func() { scorer.Scores(x, out) },
			"Scores32":     func() { scorer.Scores32(x32, out) },
			"ScoresSparse": func() { scorer.ScoresSparse(col, val, AbsentIsZero, out) },
			"Leaves":       func() { scorer.Leaves(x, leaves) },
			"Values":       func() { explainer.Values(x, values) },
		} {
			require.Zero(t, testing.AllocsPerRun(5, f), "%s of %s", what, name)
		}
		// A batch needs a few allocations, regardless of the numbers of rows and trees.
		require.LessOrEqual(t, testing.AllocsPerRun(5, func() { scorer.Dense(x, n, out, 1) }), 2.0, name)
	}
}

// TestConcurrent requires that one Scorer and one Explainer give correct results in many
// goroutines.
func TestConcurrent(t *testing.T) {
	for _, name := range []string{"everything", "deepSingle", "forest"} {
		s := shapes[name]
		e := valid(t, 1, s)
		scorer := e.Scorer()
		explainer, err := e.Explainer(ExplainOptions{})
		require.NoError(t, err)
		const n, some = 40, 3
		x := make([]float64, n*s.features)
		for i := range x {
			x[i] = float64(i%23) / 4
		}
		want := make([]float64, n*e.Outputs)
		wantValues := make([]float64, some*e.Outputs*(s.features+1))
		scorer.Dense(x, n, want, 1)
		explainer.DenseValues(x, some, wantValues, 1)
		var all sync.WaitGroup
		for g := range 8 {
			all.Go(func() {
				out, values := make([]float64, n*e.Outputs), make([]float64, len(wantValues))
				scorer.Dense(x, n, out, 1+g%3)
				if g%2 == 0 {
					for i := range n {
						scorer.Scores(x[i*s.features:], out[i*e.Outputs:])
					}
				}
				explainer.DenseValues(x, some, values, 1+g%2)
				if !slices.Equal(allBits(want), allBits(out)) || !slices.Equal(allBits(wantValues), allBits(values)) {
					t.Error("the result differs when other goroutines use the same Scorer and Explainer")
				}
			})
		}
		all.Wait()
	}
}
