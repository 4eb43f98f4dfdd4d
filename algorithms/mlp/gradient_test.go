package mlp

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/nonconvex"
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// opened returns the evaluator with which the optimiser minimises the loss. It has one shard of
// n random rows, with d features and 3 classes.
func opened(t testing.TB, p Params, n, d int, sparse bool) optim.Evaluator {
	return openedClasses(t, p, n, d, 3, sparse)
}

// openedClasses does what opened does, for any number of classes.
func openedClasses(t testing.TB, p Params, n, d, classes int, sparse bool) optim.Evaluator {
	r := sharding.NewRandom(p.Seed, "rows", 0, 0)
	b := &rows.Block{N: n, D: d}
	f := &rows.Facts{Declared: d, Rows: int64(n), Classes: []string{"0", "1", "2"}[:classes]}
	b.Sparse.RowPtr = []int64{0}
	for range n {
		for j := range d {
			x := 2*r.Float64() - 1
			if r.IntN(3) == 0 {
				x = 0
			}
			if !sparse {
				b.Dense = append(b.Dense, x)
			} else if x != 0 {
				b.Sparse.Col, b.Sparse.Val = append(b.Sparse.Col, int32(j)), append(b.Sparse.Val, x)
			}
		}
		b.Sparse.RowPtr = append(b.Sparse.RowPtr, int64(len(b.Sparse.Col)))
		b.Label = append(b.Label, math.Floor(float64(classes)*r.Float64()))
		b.Weight = append(b.Weight, 0.5+r.Float64())
		f.Weight += b.Weight[len(b.Weight)-1]
	}
	for j := range d {
		f.Mean, f.Std, f.MaxAbs = append(f.Mean, 0.1*float64(j)), append(f.Std, 0.5+0.1*float64(j)), append(f.MaxAbs, 1)
	}
	l, err := newLoss(p.withDefaults(1), f, sparse)
	require.NoError(t, err)
	return nonconvex.Over(l, p.Task, f, 0, []*rows.Block{b})
}

// TestGradient compares the gradient with finite differences of the loss, for all activations,
// tasks and numbers of layers.
func TestGradient(t *testing.T) {
	for _, p := range []Params{
		{Seed: 1, Hidden: []int{4}, Activation: Tanh},
		{Seed: 2, Hidden: []int{3, 5}, Activation: Logistic, Task: Classification, L2: 0.3},
		{Seed: 3, Hidden: []int{}, L2: 0.1},
		{Seed: 4, Hidden: []int{6, 2}, Task: Classification, NoStandardize: true},
		{Seed: 5, Hidden: []int{5}, L2: 0.2},
		{Seed: 7, Hidden: []int{4}, Task: Classification, Activation: Tanh},
	} {
		for _, sparse := range []bool{false, true} {
			e := openedClasses(t, p, 70, 4, 2+int(p.Seed%2), sparse) // 70 rows are more than a chunk
			n := e.Dim
			r := sharding.NewRandom(9, "point", 0, 0)
			v := make([]float64, n)
			for i := range v {
				v[i] = 0.3 * (r.Float64() - 0.5)
			}
			value := func() float64 {
				out := make([]float64, 1+n)
				require.NoError(t, e.Evaluate(0, v, out))
				return out[0]
			}
			got := make([]float64, 1+n)
			require.NoError(t, e.Evaluate(0, v, got))
			for i := range v {
				const h = 1e-6
				at := v[i]
				v[i] = at + h
				above := value()
				v[i] = at - h
				below := value()
				v[i] = at
				require.InDelta(t, (above-below)/(2*h), got[1+i], 1e-5, "parameter %d of %+v", i, p)
			}
			// A minibatch that has all rows, in another order, must give the same sums.
			var list []int32
			for i := range int32(70) {
				list = append(list, (i*3+1)%70)
			}
			sampled := make([]float64, 2+n)
			require.NoError(t, e.Minibatch.Evaluate(0, list, v, sampled))
			require.InDeltaSlice(t, got, sampled[:1+n], 1e-11)
			require.InDelta(t, e.Weight, sampled[1+n], 1e-12)
			require.Equal(t, 70, e.Minibatch.Rows(0))
		}
	}
}

func BenchmarkEvaluate(b *testing.B) {
	e := opened(b, Params{Seed: 6, Hidden: []int{64}, Task: Classification}, 4096, 32, false)
	v, out := make([]float64, e.Dim), make([]float64, 1+e.Dim)
	b.ReportAllocs()
	for b.Loop() {
		if err := e.Evaluate(0, v, out); err != nil {
			b.Fatal(err)
		}
	}
	// The forward pass has two matrix products. Back-propagation has one product for the errors
	// and two products for the weights.
	flops := 2 * 4096 * float64(2*32*64+3*64*3)
	b.ReportMetric(flops*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "Gflop/s")
}
