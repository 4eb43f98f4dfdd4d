package objective_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"gonum.org/v1/gonum/mat"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/objective"
)

// minimize moves v to the minimum of the mean loss plus penalty by damped Newton steps.
func (o opened) minimize(t *testing.T, v []float64, l2 float64) {
	n := o.e.Dim
	value := func(sums, at []float64) float64 {
		f := sums[0] / o.e.Weight
		for j, x := range at {
			f += l2 / 2 * square(o.e.PenaltyFactors[j]*x)
		}
		return f
	}
	const damping = 1e-3 // without damping, the intercept has no curvature if no row is near a kink
	for range 400 {
		sums := o.sum(t, 1+n+n*(n+1)/2, func(shard int, out []float64) error { return o.e.Hessian(shard, v, out) })
		g := mat.NewVecDense(n, nil)
		h := mat.NewSymDense(n, nil)
		norm := 0.0
		for a := range n {
			f := l2 * square(o.e.PenaltyFactors[a])
			g.SetVec(a, sums[1+a]/o.e.Weight+f*v[a])
			norm = math.Max(norm, math.Abs(g.AtVec(a)))
			for b := range a + 1 {
				h.SetSym(a, b, sums[1+n+a*(a+1)/2+b]/o.e.Weight)
			}
			h.SetSym(a, a, h.At(a, a)+f+damping)
		}
		if norm < 1e-9 {
			return
		}
		var chol mat.Cholesky
		require.True(t, chol.Factorize(h))
		var p mat.VecDense
		require.NoError(t, chol.SolveVecTo(&p, g))
		now := value(sums, v)
		moved := false
		for length := 1.0; length > 1e-9 && !moved; length /= 2 {
			u := make([]float64, n)
			for j := range u {
				u[j] = v[j] - length*p.AtVec(j)
			}
			if value(o.evaluate(t, u), u) < now {
				copy(v, u)
				moved = true
			}
		}
		if !moved { // only rounding errors are left
			return
		}
	}
}

func TestRoundsCloseTheDualityGap(t *testing.T) {
	for i, l := range []kind{kinds()[3], kinds()[5], kinds()[8]} {
		for j, d := range []design{{}, {sparse: true, weighted: true, shifted: true}, {noIntercept: true}} {
			for k, l2 := range []float64{0.001, 0.1, 3} {
				if (i+j+k)%everyDesign != 0 {
					continue
				}
				table := tableFor(l, d)
				smooth := objective.Smooth{Loss: l.loss.(objective.Kinked), Mu: 0.2}
				with(t, table, objective.Linear{Loss: smooth, NoIntercept: d.noIntercept}, func(o opened) {
					v := make([]float64, o.e.Dim)
					var gaps []float64
					for range 10 {
						o.minimize(t, v, l2)
						sums := o.sum(t, o.e.Smoothing.BoundLen, func(shard int, out []float64) error { return o.e.Smoothing.Bound(shard, v, out) })
						value, bound := o.e.Smoothing.Gap(v, sums, 0, l2)
						require.LessOrEqual(t, bound, value+1e-12)
						c, err := o.linear.Coefficients(o.facts, v)
						require.NoError(t, err)
						want := reference(table, l, c) / o.e.Weight
						for j := range o.e.PenaltyFactors {
							want += l2 / 2 * square(o.e.PenaltyFactors[j]*v[j])
						}
						require.InEpsilon(t, want, value, 1e-9)
						gaps = append(gaps, value-bound)
						if value-bound < 1e-7 {
							break
						}
						require.NoError(t, o.ctx.ForShards(o.e.Smoothing.Refine))
					}
					require.Less(t, gaps[len(gaps)-1], 1e-6, "%v %v %v: %.1e", l.loss, d, l2, gaps)
					require.Greater(t, gaps[0], 1e-6) // the first gap must be larger: smoothing without rounds is not exact
				})
			}
		}
	}
}

func TestBoundsHoldAnywhere(t *testing.T) {
	// The labels are classes, and the intercept moves the margins of all rows. Away from the
	// minimum, the slopes of all rows do not add up to 0. Only slopes that add up to 0 give a
	// bound.
	table := trial.TableOf([]float64{0, 1, 1, 1}, []float64{1}, []float64{2}, []float64{2.5}, []float64{4})
	with(t, table, objective.Linear{Loss: objective.Smooth{Loss: objective.Hinge{}}}, func(o opened) {
		bounds := func(v []float64) (float64, float64) {
			sums := o.sum(t, o.e.Smoothing.BoundLen, func(shard int, out []float64) error { return o.e.Smoothing.Bound(shard, v, out) })
			return o.e.Smoothing.Gap(v, sums, 0, 1)
		}
		least := math.Inf(1)
		var all []float64
		for i := range 41 {
			for j := range 41 {
				value, bound := bounds([]float64{float64(i-20) / 10, float64(j-20) / 10})
				least, all = math.Min(least, value), append(all, bound)
			}
		}
		for _, bound := range all {
			require.LessOrEqual(t, bound, least+1e-12)
		}
	})
}

// TestBoundOfOtherLosses requires that the functions of Smoothing return errors for losses that
// are not Smooth, and that Refine returns an error before Bound has run.
func TestBoundOfOtherLosses(t *testing.T) {
	table := tableFor(kinds()[0], design{})
	with(t, table, objective.Linear{Loss: objective.Squared{}}, func(o opened) {
		require.Zero(t, o.e.Smoothing.BoundLen)
		require.Nil(t, o.e.Smoothing.Bound)
	})
	with(t, table, objective.Linear{Loss: objective.Smooth{Loss: objective.EpsilonInsensitive{}}}, func(o opened) {
		require.ErrorContains(t, o.e.Smoothing.Refine(o.ctx.Shards().Lo), "none was found")
	})
}

func TestGapWithoutPenalty(t *testing.T) {
	table := trial.TableOf([]float64{0, 1, 2}, []float64{1}, []float64{2}, []float64{4})
	with(t, table, objective.Linear{Loss: objective.Smooth{Loss: objective.EpsilonInsensitive{}}}, func(o opened) {
		v := make([]float64, 2)
		sums := o.sum(t, o.e.Smoothing.BoundLen, func(shard int, out []float64) error { return o.e.Smoothing.Bound(shard, v, out) })
		value, bound := o.e.Smoothing.Gap(v, sums, 0, 0)
		require.InDelta(t, 1, value, 1e-15)
		require.True(t, math.IsInf(bound, -1))
	})
}
