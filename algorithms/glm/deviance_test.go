package glm_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/objective"
)

// at evaluates a loss of k margins for one row with the label y. The first margin is margin;
// the others are 0.
func at(l objective.Loss, k int, y, margin float64) objective.Batch {
	b := objective.Batch{
		N: 1, K: k, Label: []float64{y}, Margin: make([]float64, k), Loss: []float64{math.NaN()}, Slope: make([]float64, k),
		Curve: make([]float64, k*(k+1)/2), Work: make([]float64, k),
	}
	b.Margin[0] = margin
	l.At(&b)
	return b
}

// TestDerivatives compares slopes with differences of the loss. It compares the information
// with its definition: the expected square of the slope over the distribution of labels, times
// the dispersion.
func TestDerivatives(t *testing.T) {
	for _, c := range []struct {
		p       glm.Params
		margins []float64
		labels  []float64
		inverse func(m float64) float64
		by      func(m float64) float64
		power   float64
	}{
		{glm.Params{}, []float64{-2, 0, 3}, []float64{-1, 0, 4}, func(m float64) float64 { return m }, func(float64) float64 { return 1 }, 0},
		{glm.Params{Link: glm.Log}, []float64{-1, 0.5}, []float64{-1, 0, 4}, math.Exp, math.Exp, 0},
		{glm.Params{Family: glm.Poisson}, []float64{-3, 0, 2}, []float64{0, 1, 7.5}, math.Exp, math.Exp, 1},
		{glm.Params{Family: glm.Poisson, Link: glm.Identity}, []float64{0.1, 3}, []float64{0, 1, 7}, func(m float64) float64 { return m }, func(float64) float64 { return 1 }, 1},
		{glm.Params{Family: glm.Gamma}, []float64{-3, 0, 2}, []float64{0.01, 1, 7}, math.Exp, math.Exp, 2},
		{glm.Params{Family: glm.Gamma, Link: glm.Identity}, []float64{0.2, 2}, []float64{0.01, 1, 7}, func(m float64) float64 { return m }, func(float64) float64 { return 1 }, 2},
		{glm.Params{Family: glm.Gamma, Link: glm.Inverse}, []float64{0.2, 2}, []float64{0.01, 1, 7}, func(m float64) float64 { return 1 / m }, func(m float64) float64 { return -1 / m / m }, 2},
		{glm.Params{Family: glm.Tweedie}, []float64{-3, 0, 2}, []float64{0, 1, 7}, math.Exp, math.Exp, 1.5},
		{glm.Params{Family: glm.Tweedie, Power: 3}, []float64{-1, 0, 2}, []float64{0.5, 1, 7}, math.Exp, math.Exp, 3},
		{glm.Params{Family: glm.Tweedie, Power: 1.2, Link: glm.Identity}, []float64{0.3, 2}, []float64{0, 1, 7}, func(m float64) float64 { return m }, func(float64) float64 { return 1 }, 1.2},
		{glm.Params{Family: glm.Binomial}, []float64{-30, -1, 0, 4}, []float64{0, 0.25, 1}, nil, nil, -1},
		{glm.Params{Family: glm.Binomial, Link: glm.Log}, []float64{-3, -0.2}, []float64{0, 0.25, 1}, math.Exp, math.Exp, -1},
		{glm.Params{Family: glm.Binomial, Link: glm.Identity}, []float64{0.1, 0.8}, []float64{0, 0.25, 1}, func(m float64) float64 { return m }, func(float64) float64 { return 1 }, -1},
	} {
		t.Run(fmt.Sprint(c.p.Family, " ", c.p.Link, " ", c.p.Power), func(t *testing.T) {
			if c.inverse == nil {
				c.inverse = func(m float64) float64 { return 1 / (1 + math.Exp(-m)) }
				c.by = func(m float64) float64 { p := c.inverse(m); return p * (1 - p) }
			}
			const shift = 0.0625
			plain, summed := glm.LossOf(c.p, shift, false), glm.LossOf(c.p, shift, true)
			for _, m := range c.margins {
				for _, y := range c.labels {
					require.Empty(t, plain.Refuses(y))
					got := at(plain, 1, y, m-shift)
					const h = 1e-6
					slope := (at(plain, 1, y, m-shift+h).Loss[0] - at(plain, 1, y, m-shift-h).Loss[0]) / (2 * h)
					require.InDelta(t, slope, got.Slope[0], 1e-7*(1+math.Abs(slope)+got.Loss[0]), "y %v, margin %v", y, m)
					require.GreaterOrEqual(t, got.Loss[0], -1e-12)
					mean, variance := c.inverse(m), 0.0
					if variance = math.Pow(mean, c.power); c.power < 0 {
						variance = mean * (1 - mean)
					}
					require.InEpsilon(t, c.by(m)*c.by(m)/variance, got.Curve[0], 1e-9)
					all := at(summed, 3, y, m-shift)
					require.Equal(t, got.Loss, all.Loss)
					require.Equal(t, []float64{got.Slope[0], 0, 0}, all.Slope)
					require.Equal(t, got.Curve[0], all.Curve[0])
					require.InDelta(t, (y-mean)*(y-mean)/variance, all.Curve[2], 1e-9*(1+all.Curve[2]))
					require.Zero(t, all.Curve[1])
					require.Zero(t, all.Curve[3])
					require.Zero(t, all.Curve[4])
					if c.p.Family == glm.Poisson {
						gamma, _ := math.Lgamma(y + 1)
						if y > 0 {
							gamma -= y*math.Log(y) - y
						}
						require.InDelta(t, gamma, all.Curve[5], 1e-12)
					}
				}
				if c.power != 0 && c.power > 0 { // the least loss is 0, at a mean equal to the label
					require.InDelta(t, 0, at(plain, 1, c.inverse(m), m-shift).Loss[0], 1e-14)
				}
			}
		})
	}
}

// TestMeansThatAreNone requires that the loss is infinite at a mean that the family cannot
// have.
func TestMeansThatAreNone(t *testing.T) {
	for _, c := range []struct {
		p      glm.Params
		margin float64
	}{
		{glm.Params{Family: glm.Poisson, Link: glm.Identity}, 0}, {glm.Params{Family: glm.Gamma, Link: glm.Inverse}, -1},
		{glm.Params{Family: glm.Gamma, Link: glm.Inverse}, 0}, {glm.Params{Family: glm.Binomial, Link: glm.Log}, 0},
		{glm.Params{Family: glm.Binomial, Link: glm.Identity}, 1.5}, {glm.Params{Family: glm.Tweedie, Link: glm.Identity}, -2},
	} {
		require.True(t, math.IsInf(at(glm.LossOf(c.p, 0, false), 1, 1, c.margin).Loss[0], 1), c)
	}
}

func TestLabelsThatAFamilyHasNot(t *testing.T) {
	for _, c := range []struct {
		p     glm.Params
		label float64
		text  string
	}{
		{glm.Params{Family: glm.Binomial}, 1.5, "no proportion"}, {glm.Params{Family: glm.Binomial}, -1, "no proportion"},
		{glm.Params{Family: glm.Poisson}, -1, "negative"}, {glm.Params{Family: glm.Gamma}, 0, "not above 0"},
		{glm.Params{Family: glm.Tweedie}, -0.5, "negative"}, {glm.Params{Family: glm.Tweedie, Power: 2.5}, 0, "not above 0"},
	} {
		require.Contains(t, glm.LossOf(c.p, 0, false).Refuses(c.label), c.text)
		table := counts(20, 2)
		for i := range table.Label {
			table.Label[i] = 0.5
		}
		table.Label[7] = c.label
		trial.Fails(t, trains(table, c.p), "the label", c.text)
	}
}
