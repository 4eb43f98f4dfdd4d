package objective_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// design is a combination of options for rows and objective.
type design struct {
	sparse, weighted, shifted, noIntercept, noStandardize bool
}

func (d design) String() string {
	return fmt.Sprintf("sparse=%v weighted=%v offset=%v noIntercept=%v noStandardize=%v", d.sparse, d.weighted, d.shifted, d.noIntercept, d.noStandardize)
}

func designs() []design {
	return []design{
		{}, {sparse: true}, {weighted: true}, {noIntercept: true}, {noStandardize: true},
		{sparse: true, weighted: true, shifted: true},
		{sparse: true, noIntercept: true, noStandardize: true},
		{weighted: true, shifted: true, noIntercept: true},
	}
}

// tableFor returns rows with labels that are valid for a loss. The features have different
// scales and locations, and one of them is constant.
func tableFor(l kind, d design) trial.Table {
	table := trial.Gaussian(9, 90, 5)
	r := sharding.NewRandom(4, "table", 0, 0)
	for i := range table.N {
		row := table.Row(i)
		row[0] = 3 + 0.1*row[0]
		row[1] *= 20
		row[2] = 2
		if i%2 == 0 {
			row[3] = 0
		}
		table.Label = append(table.Label, l.label(r.Float64()))
		if d.weighted {
			table.Weight = append(table.Weight, math.Floor(4*r.Float64()))
		}
		if d.shifted && l.k == 1 {
			table.Offset = append(table.Offset, 0.3*r.NormFloat64())
		}
	}
	table.Sparse = d.sparse
	return table
}

// parametersFor returns n parameters for which margins are moderate.
func parametersFor(n int) []float64 {
	v := make([]float64, n)
	r := sharding.NewRandom(11, "parameters", 0, 0)
	for i := range v {
		v[i] = 0.4 * r.NormFloat64()
	}
	return v
}

// reference computes the weighted sum of losses by simple loops. c has coefficients of the
// unscaled features.
func reference(table trial.Table, l kind, c objective.Coefficients) float64 {
	var sum float64
	for i := range table.N {
		m := make([]float64, 0, l.k)
		for a := range c.Margins {
			margin := c.Intercepts[a]
			for j, x := range table.Row(i) {
				margin += x * c.Weights[a*c.D+j]
			}
			if table.Offset != nil {
				margin += table.Offset[i]
			}
			m = append(m, margin)
		}
		m = append(m, c.Constants...)
		w := 1.0
		if table.Weight != nil {
			w = table.Weight[i]
		}
		sum += w * l.naive(m, table.Label[i], 1)
	}
	return sum
}

func TestEvaluateIsTheSumOfLosses(t *testing.T) {
	for i, l := range kinds() {
		if _, smooth := l.loss.(objective.Smooth); smooth {
			continue // the naive definition of a smooth loss searches a grid, which is not exact enough
		}
		for j, d := range designs() {
			if (i+j)%everyDesign != 0 {
				continue
			}
			t.Run(fmt.Sprint(l.loss, " ", d), func(t *testing.T) {
				table := tableFor(l, d)
				linear := objective.Linear{Loss: l.loss, NoIntercept: d.noIntercept, NoStandardize: d.noStandardize}
				with(t, table, linear, func(o opened) {
					v := parametersFor(o.e.Dim)
					c, err := o.linear.Coefficients(o.facts, v)
					require.NoError(t, err)
					got := o.evaluate(t, v)
					want := reference(table, l, c)
					require.InEpsilon(t, want, got[0], 1e-11)
					checkGradient(t, o, v, got, l.kinked)
					if !l.kinked {
						checkHessian(t, o, v, got)
					}
				})
			})
		}
	}
}

// checkGradient compares a gradient with central differences of the objective.
func checkGradient(t *testing.T, o opened, v, got []float64, kinked bool) {
	h := 1e-5
	if kinked { // the steps h must be so small that no row moves across a kink
		h = 1e-7
	}
	for j := range v {
		u := append([]float64(nil), v...)
		u[j] = v[j] + h
		up := o.evaluate(t, u)[0]
		u[j] = v[j] - h
		down := o.evaluate(t, u)[0]
		require.InDelta(t, (up-down)/(2*h), got[1+j], 1e-4*(1+math.Abs(got[1+j])), "parameter %d", j)
	}
}

// checkHessian compares the matrix with central differences of gradients. It compares loss and
// gradient with the results of Evaluate.
func checkHessian(t *testing.T, o opened, v, got []float64) {
	const h = 1e-5
	n := len(v)
	hessian := o.sum(t, 1+n+n*(n+1)/2, func(shard int, out []float64) error { return o.e.Hessian(shard, v, out) })
	require.Equal(t, got, hessian[:1+n])
	triangle := hessian[1+n:]
	for a := range v {
		u := append([]float64(nil), v...)
		u[a] = v[a] + h
		up := o.evaluate(t, u)
		u[a] = v[a] - h
		down := o.evaluate(t, u)
		for b := range a + 1 {
			value := triangle[a*(a+1)/2+b]
			require.InDelta(t, (up[1+b]-down[1+b])/(2*h), value, 1e-4*(10+math.Abs(value)), "parameters %d and %d", a, b)
		}
	}
}

func TestKeptMarginsGiveWhatEvaluateGives(t *testing.T) {
	for _, l := range kinds() {
		for _, d := range []design{{}, {sparse: true, weighted: true, shifted: true}} {
			table := tableFor(l, d)
			with(t, table, objective.Linear{Loss: l.loss}, func(o opened) {
				v, p := parametersFor(o.e.Dim), parametersFor(o.e.Dim)
				for i := range p {
					p[i] = 0.5 - p[i]
				}
				at := func(step float64) []float64 {
					u := make([]float64, len(v))
					for i := range u {
						u[i] = v[i] + step*p[i]
					}
					return o.evaluate(t, u)
				}
				near := func(want, got []float64) {
					t.Helper()
					for i := range want {
						require.InDelta(t, want[i], got[i], 1e-10*(1+math.Abs(want[0])+math.Abs(want[i])), "%v %v: %d", l.loss, d, i)
					}
				}
				n := 1 + o.e.Dim
				start := o.sum(t, n, func(shard int, out []float64) error { return o.e.Margins.Start(shard, v, out) })
				require.Equal(t, at(0), start)
				near(at(1), o.sum(t, n, func(shard int, out []float64) error { return o.e.Margins.Direction(shard, p, 1, out) }))
				near(at(0.25), o.sum(t, n, func(shard int, out []float64) error { return o.e.Margins.Gradient(shard, 0.25, out) }))
				steps := []float64{0, 0.25, 1, -0.5}
				trials := o.sum(t, 2*len(steps), func(shard int, out []float64) error { return o.e.Margins.Trials(shard, steps, out) })
				for i, step := range steps {
					full := at(step)
					var slope float64
					for j, g := range full[1:] {
						slope += g * p[j]
					}
					near([]float64{full[0]}, trials[2*i:2*i+1])
					require.InDelta(t, slope, trials[2*i+1], 1e-9*(1+math.Abs(full[0])), "%v %v", l.loss, d)
				}
				require.NoError(t, o.ctx.ForShards(func(shard int) error { return o.e.Margins.Advance(shard, 0.25) }))
				near(at(0.25), o.sum(t, n, func(shard int, out []float64) error { return o.e.Margins.Gradient(shard, 0, out) }))
			})
		}
	}
}

// TestKeptMarginsGiveSecondDerivatives requires that the functions of Margins give the same
// results as Hessian if out is long enough for second derivatives.
func TestKeptMarginsGiveSecondDerivatives(t *testing.T) {
	for _, l := range []kind{kinds()[1], kinds()[2], kinds()[13]} {
		for _, sparse := range []bool{false, true} {
			with(t, tableFor(l, design{sparse: sparse, weighted: true}), objective.Linear{Loss: l.loss}, func(o opened) {
				n := o.e.Dim
				v, p := parametersFor(n), parametersFor(n)
				for i := range p {
					p[i] = 0.5 - p[i]
				}
				long := 1 + n + n*(n+1)/2
				near := func(step float64, f func(shard int, out []float64) error) {
					t.Helper()
					u := make([]float64, n)
					for i := range u {
						u[i] = v[i] + step*p[i]
					}
					want := o.sum(t, long, func(shard int, out []float64) error { return o.e.Hessian(shard, u, out) })
					got := o.sum(t, long, f)
					for i := range want {
						require.InDelta(t, want[i], got[i], 1e-10*(1+math.Abs(want[0])+math.Abs(want[i])), "%v: %d", l.loss, i)
					}
				}
				near(0, func(shard int, out []float64) error { return o.e.Margins.Start(shard, v, out) })
				near(0.5, func(shard int, out []float64) error { return o.e.Margins.Direction(shard, p, 0.5, out) })
				near(0.25, func(shard int, out []float64) error { return o.e.Margins.Gradient(shard, 0.25, out) })
			})
		}
	}
}

func TestTrialsHaveTheBitsOfDirection(t *testing.T) {
	table := tableFor(kinds()[1], design{weighted: true})
	with(t, table, objective.Linear{Loss: objective.Logistic{}}, func(o opened) {
		v := parametersFor(o.e.Dim)
		n := 1 + len(v)
		o.sum(t, n, func(shard int, out []float64) error { return o.e.Margins.Start(shard, make([]float64, len(v)), out) })
		along := o.sum(t, n, func(shard int, out []float64) error { return o.e.Margins.Direction(shard, v, 0.7, out) })
		again := o.sum(t, n, func(shard int, out []float64) error { return o.e.Margins.Gradient(shard, 0.7, out) })
		trials := o.sum(t, 2, func(shard int, out []float64) error { return o.e.Margins.Trials(shard, []float64{0.7}, out) })
		require.Equal(t, along, again)
		require.Equal(t, along[0], trials[0])
	})
}

func TestSparseRowsAreDenseRows(t *testing.T) {
	for _, l := range kinds() {
		var results [2][]float64
		for i, sparse := range []bool{false, true} {
			table := tableFor(l, design{sparse: sparse, weighted: true})
			with(t, table, objective.Linear{Loss: l.loss}, func(o opened) {
				c, err := o.linear.Coefficients(o.facts, make([]float64, o.e.Dim))
				require.NoError(t, err)
				for j := range c.Weights {
					c.Weights[j] = 0.05 * float64(j%3)
				}
				for j := range c.Intercepts {
					c.Intercepts[j] = 0.2 * float64(j)
				}
				v, err := o.linear.Parameters(o.facts, c)
				require.NoError(t, err)
				back, err := o.linear.Coefficients(o.facts, v)
				require.NoError(t, err)
				require.InDelta(t, c.Weights[0], back.Weights[0], 1e-15)
				results[i] = o.evaluate(t, v)[:1]
			})
		}
		require.InEpsilon(t, 1+results[0][0], 1+results[1][0], 1e-12, "%v: class weights must have the effect of row weights", l.loss)
	}
}

func TestSampledRows(t *testing.T) {
	for _, l := range kinds() {
		for _, d := range []design{{weighted: true}, {sparse: true, shifted: true}} {
			table := tableFor(l, d)
			with(t, table, objective.Linear{Loss: l.loss}, func(o opened) {
				v := parametersFor(o.e.Dim)
				n := 2 + len(v)
				rows := 0
				all := o.sum(t, n, func(shard int, out []float64) error {
					var indices []int32
					for i := range o.e.Minibatch.Rows(shard) {
						indices = append(indices, int32(i))
					}
					rows += len(indices)
					return o.e.Minibatch.Evaluate(shard, indices, v, out)
				})
				require.Equal(t, table.N, rows)
				require.Equal(t, o.evaluate(t, v), all[:n-1], "%v: a minibatch of all rows must have the loss and gradient of all rows", l.loss)
				require.InDelta(t, o.e.Weight, all[n-1], 1e-12)
				// A row that is drawn twice must be added twice.
				twice := o.sum(t, n, func(shard int, out []float64) error { return o.e.Minibatch.Evaluate(shard, []int32{1, 1}, v, out) })
				once := o.sum(t, n, func(shard int, out []float64) error { return o.e.Minibatch.Evaluate(shard, []int32{1}, v, out) })
				for i := range once {
					require.InDelta(t, 2*once[i], twice[i], 1e-12*(1+math.Abs(once[i])))
				}
			})
		}
	}
}

func TestFactorsOfThePenalty(t *testing.T) {
	table := tableFor(kinds()[0], design{})
	with(t, table, objective.Linear{Loss: objective.Squared{}}, func(o opened) {
		require.Equal(t, []float64{1, 1, 1, 1, 1, 0}, o.e.PenaltyFactors)
	})
	with(t, table, objective.Linear{Loss: objective.Squared{}, NoStandardize: true}, func(o opened) {
		v := parametersFor(6)
		c, err := o.linear.Coefficients(o.facts, v)
		require.NoError(t, err)
		for j, f := range o.e.PenaltyFactors[:5] {
			if j != 2 { // feature 2 is constant, so its coefficient is 0
				require.InEpsilon(t, c.Weights[j], f*v[j], 1e-15)
			}
		}
		require.Zero(t, c.Weights[2])
		require.Zero(t, o.e.PenaltyFactors[5])
	})
	// Without an intercept, a constant feature has influence.
	with(t, table, objective.Linear{Loss: objective.Squared{}, NoIntercept: true}, func(o opened) {
		c, err := o.linear.Coefficients(o.facts, []float64{0, 0, 3, 0, 0})
		require.NoError(t, err)
		require.Equal(t, 1.5, c.Weights[2])
	})
	with(t, tableFor(kinds()[13], design{}), objective.Linear{Loss: objective.AFT{}}, func(o opened) {
		require.Equal(t, []float64{1, 1, 1, 1, 1, 0, 0}, o.e.PenaltyFactors)
	})
}

func TestClassWeightsAreRowWeights(t *testing.T) {
	plain := tableFor(kinds()[1], design{weighted: true})
	weighted := plain
	weighted.Weight = append([]float64(nil), plain.Weight...)
	for i, y := range plain.Label {
		if y == 1 {
			weighted.Weight[i] *= 3
		}
	}
	var want, got []float64
	var total float64
	v := parametersFor(6)
	// The scales of features depend on row weights, but not on class weights. So the two
	// objectives are compared at the same coefficients of unscaled features.
	var c objective.Coefficients
	with(t, plain, objective.Linear{Loss: objective.Logistic{}, ClassWeights: map[string]float64{"1": 3}}, func(o opened) {
		var err error
		c, err = o.linear.Coefficients(o.facts, v)
		require.NoError(t, err)
		got, total = o.evaluate(t, v), o.e.Weight
	})
	with(t, weighted, objective.Linear{Loss: objective.Logistic{}}, func(o opened) {
		u, err := o.linear.Parameters(o.facts, c)
		require.NoError(t, err)
		want = o.evaluate(t, u)
		require.InEpsilon(t, o.e.Weight, total, 1e-15)
	})
	require.InEpsilon(t, want[0], got[0], 1e-12)

	with(t, plain, objective.Linear{Loss: objective.Logistic{}, Balanced: true}, func(o opened) {
		require.InEpsilon(t, o.facts.Weight, o.e.Weight, 1e-14)
		s := o.evaluate(t, make([]float64, 6)) // the loss of every row is log 2
		require.InEpsilon(t, o.facts.Weight*math.Ln2, s[0], 1e-14)
		require.InDelta(t, 0, s[6], 1e-12) // the gradients of both classes cancel at the intercept
	})
}
