package fm

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/nonconvex"
	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// opened returns the loss over one shard of n random rows of d features, the rows, and the
// optimiser's evaluator of the loss.
func opened(p Params, n, d int, sparse bool) (*loss, *rows.Block, optim.Evaluator) {
	r := sharding.NewRandom(p.Seed, "rows", 0, 0)
	b := &rows.Block{N: n, D: d}
	f := &rows.Facts{Declared: d, Rows: int64(n), Classes: []string{"0", "1"}}
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
		b.Label = append(b.Label, math.Floor(2*r.Float64()))
		b.Weight = append(b.Weight, 0.5+r.Float64())
		f.Weight += b.Weight[len(b.Weight)-1]
	}
	if sparse {
		b.Dense = nil
	}
	l := newLoss(p.withDefaults(1), f)
	return l, b, nonconvex.Over(l, p.Task, f, 0, []*rows.Block{b})
}

// TestGradient compares the gradient with finite differences, with and without penalties and
// intercept.
func TestGradient(t *testing.T) {
	for _, p := range []Params{
		{Seed: 1, Factors: 3, InitialSpread: 0.5},
		{Seed: 2, Factors: 2, InitialSpread: 0.5, Task: Classification, L2: 0.3, L2Factors: 0.7},
		{Seed: 3, Factors: -1, L2: 0.1},
		{Seed: 4, Factors: 1, InitialSpread: 1, NoIntercept: true, Task: Classification},
	} {
		for _, sparse := range []bool{false, true} {
			_, _, e := opened(p, 7, 4, sparse)
			n := e.Dim
			r := sharding.NewRandom(9, "point", 0, 0)
			v := make([]float64, n)
			for i := range v {
				v[i] = r.Float64() - 0.5
			}
			if p.NoIntercept {
				v[0] = 0
			}
			value := func() float64 {
				out := make([]float64, 1+n)
				require.NoError(t, e.Evaluate(0, v, out))
				return out[0]
			}
			got := make([]float64, 1+n)
			require.NoError(t, e.Evaluate(0, v, got))
			for i := range v {
				if i == 0 && p.NoIntercept {
					require.Zero(t, got[1])
					continue
				}
				const h = 1e-5
				at := v[i]
				v[i] = at + h
				above := value()
				v[i] = at - h
				below := value()
				v[i] = at
				require.InDelta(t, (above-below)/(2*h), got[1+i], 1e-7, "parameter %d of %+v", i, p)
			}
			// A minibatch of all rows in another order must give the same sums.
			sampled := make([]float64, 2+n)
			require.NoError(t, e.Minibatch.Evaluate(0, []int32{6, 0, 1, 2, 3, 4, 5}, v, sampled))
			require.InDeltaSlice(t, got, sampled[:1+n], 1e-12)
			require.InDelta(t, e.Weight, sampled[1+n], 1e-12)
			require.Equal(t, 7, e.Minibatch.Rows(0))
		}
	}
}

// TestMargin compares the margin, which is computed in linear time, with the sum over pairs.
func TestMargin(t *testing.T) {
	l, b, _ := opened(Params{Seed: 5, Factors: 3, InitialSpread: 1}, 5, 6, false)
	v := slices.Clone(l.first)
	for i := range v[:7] {
		v[i] += float64(i) - 2.5
	}
	l.Move(v)
	for i := range b.N {
		x := b.Dense[i*6 : (i+1)*6]
		want := l.machine.parameters[0] + kernel.Dot(l.machine.parameters[1:7], x)
		for a := range 6 {
			for c := range a {
				want += kernel.Dot(l.machine.parameters[7+a*3:10+a*3], l.machine.parameters[7+c*3:10+c*3]) * x[a] * x[c]
			}
		}
		require.InDelta(t, want, l.machine.margin(nil, x, l.sums), 1e-12)
	}
}

func BenchmarkEvaluate(b *testing.B) {
	_, block, e := opened(Params{Seed: 6, Factors: 8}, 10000, 30, true)
	v, out := make([]float64, e.Dim), make([]float64, 1+e.Dim)
	b.ReportAllocs()
	for b.Loop() {
		if err := e.Evaluate(0, v, out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(block.Sparse.Val)*8), "ns/entry·factor")
}
