package objective_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
)

// TestProbesAgreeWithDerivatives uses shards with so few rows that all rows are probed. Hessian
// of Subspace must then equal the products of the directions with the matrix of second
// derivatives. Slopes must equal the products of the directions with gradients.
func TestProbesAgreeWithDerivatives(t *testing.T) {
	for _, l := range []kind{kinds()[1], kinds()[2], kinds()[13]} {
		for _, sparse := range []bool{false, true} {
			table := tableFor(l, design{sparse: sparse, weighted: true})
			with(t, table, objective.Linear{Loss: l.loss}, func(o opened) {
				n := o.e.Dim
				at := parametersFor(n)
				axes := make([][]float64, 1+optim.LatestSteps+1) // one step more than is stored
				for k := range axes {
					axes[k] = make([]float64, n)
					for i := range axes[k] {
						axes[k][i] = 0.1 * float64((i*(k+2)+k)%7-3)
					}
				}
				none := func(f func(shard int) error) {
					o.sum(t, 0, func(shard int, _ []float64) error { return f(shard) })
				}
				out := make([]float64, 1+n)
				none(func(shard int) error { clear(out); return o.e.Margins.Start(shard, at, out) })
				for k := len(axes) - 1; k > 0; k-- { // the latest step is axis 1
					none(func(shard int) error { clear(out); return o.e.Margins.Direction(shard, axes[k], 1, out) })
					none(func(shard int) error { return o.e.Margins.Advance(shard, 0.5) })
					for i, p := range axes[k] {
						axes[k][i] = 0.5 * p
						at[i] += axes[k][i]
					}
				}
				hessian := o.sum(t, 1+n+n*(n+1)/2, func(shard int, out []float64) error { return o.e.Hessian(shard, at, out) })[1+n:]
				const dim = 1 + optim.LatestSteps
				bends := o.sum(t, dim*(dim+1)/2+1, func(shard int, out []float64) error {
					return o.e.Subspace.Hessian(shard, axes[0], optim.LatestSteps, out)
				})
				place := 0
				for a := range dim {
					for b := range a + 1 {
						var want, size float64
						for i := range n {
							for j := range n {
								term := axes[a][i] * axes[b][j] * hessian[max(i, j)*(max(i, j)+1)/2+min(i, j)]
								want += term
								size += max(term, -term)
							}
						}
						require.InDelta(t, want, bends[place], 1e-11*size, "%v: axes %d and %d", l.loss, a, b)
						place++
					}
				}
				require.InEpsilon(t, o.e.Weight, bends[place], 1e-12)

				mix, steps := []float64{0.7, -0.2, 0.3, 0.1}, []float64{0, 0.5, 2}
				slopes := o.sum(t, len(steps)+1, func(shard int, out []float64) error { return o.e.Subspace.Slopes(shard, mix, steps, out) })
				for s, step := range steps {
					point, along := make([]float64, n), make([]float64, n)
					for i := range point {
						for a, c := range mix {
							along[i] += c * axes[a][i]
						}
						point[i] = at[i] + step*along[i]
					}
					var want, size float64
					for i, g := range o.evaluate(t, point)[1:] {
						want += g * along[i]
						size += max(g*along[i], -g*along[i])
					}
					require.InDelta(t, want, slopes[s], 1e-10*size, "%v: step %v", l.loss, step)
				}
				require.InEpsilon(t, o.e.Weight, slopes[len(steps)], 1e-12)
			})
		}
	}
}

// TestPlanesSaveReads requires that searching the plane of the latest steps saves iterations
// and gives the same optimum.
func TestPlanesSaveReads(t *testing.T) {
	table := trial.Gaussian(8, 3000, 60)
	for i := range table.N {
		var m float64
		for j, x := range table.X[i*60 : (i+1)*60] {
			m += x * float64(j%9-4) / 8
		}
		label := 0.0
		if m+2*table.X[(i*61)%(60*table.N)] > 0 {
			label = 1
		}
		table.Label = append(table.Label, label)
	}
	result := func(hide bool) optim.Result {
		return trainAltered(t, table, rows.ClassLabel, objective.Logistic{}, optim.Settings{Method: optim.LBFGS, L2: 1e-3, Tol: 1e-9}, func(e *optim.Evaluator) {
			if hide {
				e.Subspace = optim.Subspace{}
			}
		})
	}
	probed, not := result(false), result(true)
	require.True(t, probed.Converged)
	require.InEpsilon(t, not.Loss, probed.Loss, 1e-12)
	require.Less(t, probed.Reads, not.Reads)
	close := func(r optim.Result) int {
		for i, it := range r.Record {
			if it.Loss <= r.Loss*(1+1e-6) {
				return i
			}
		}
		return -1
	}
	require.Less(t, close(probed), close(not))
}
