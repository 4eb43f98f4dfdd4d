package gbdt

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// termOf returns the loss of row 0 at its margins. It uses closed forms that are independent of
// the code under test.
func termOf(p *Params, r *Rows) float64 {
	m, y := r.Margin[0][0], r.Label[0]
	switch p.Objective {
	case Squared:
		return (m - y) * (m - y) / 2
	case Absolute:
		return math.Abs(m - y)
	case Huber:
		if d := math.Abs(m - y); d > p.HuberDelta {
			return p.HuberDelta * (d - p.HuberDelta/2)
		}
		return (m - y) * (m - y) / 2
	case Quantile:
		if y > m {
			return p.QuantileAt * (y - m)
		}
		return (1 - p.QuantileAt) * (m - y)
	case Logistic:
		return math.Log1p(math.Exp(m)) - y*m
	case Softmax:
		var sum float64
		for _, v := range r.Margin {
			sum += math.Exp(v[0])
		}
		return math.Log(sum) - r.Margin[int(y)][0]
	case Poisson:
		return math.Exp(m) - y*m
	case Gamma:
		return y*math.Exp(-m) + m
	case Tweedie:
		a, b := 1-p.TweediePower, 2-p.TweediePower
		return math.Exp(b*m)/b - y*math.Exp(a*m)/a
	}
	return aftTerm(p, m, r)
}

// aftTerm returns −log of the likelihood of a row, computed from densities and distribution
// functions of package math.
func aftTerm(p *Params, m float64, r *Rows) float64 {
	lower, upper := interval(r, 0)
	density := func(z float64) float64 { return math.Exp(-z*z/2) / math.Sqrt(2*math.Pi) }
	share := func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
	switch p.Time {
	case LogisticTime:
		density = func(z float64) float64 { return math.Exp(-z) / ((1 + math.Exp(-z)) * (1 + math.Exp(-z))) }
		share = func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
	case ExtremeTime:
		density = func(z float64) float64 { return math.Exp(z - math.Exp(z)) }
		share = func(z float64) float64 { return -math.Expm1(-math.Exp(z)) }
	}
	z := func(t float64) float64 { return (math.Log(t) - m) / p.TimeScale }
	if lower == upper {
		return -math.Log(density(z(lower)) / p.TimeScale / lower)
	}
	return -math.Log(share(z(upper)) - share(z(lower)))
}

// cases returns parameters, labels and margins for which derivatives are checked.
func cases() []struct {
	p     Params
	y, up float64
	m     []float64
} {
	type c = struct {
		p     Params
		y, up float64
		m     []float64
	}
	list := []c{
		{p: Params{Objective: Squared}, y: 2, m: []float64{-1.5}},
		{p: Params{Objective: Absolute}, y: 2, m: []float64{-1.5}},
		{p: Params{Objective: Huber, HuberDelta: 0.7}, y: 2, m: []float64{1.6}},
		{p: Params{Objective: Huber, HuberDelta: 0.7}, y: 2, m: []float64{-3}},
		{p: Params{Objective: Quantile, QuantileAt: 0.8}, y: 2, m: []float64{3}},
		{p: Params{Objective: Quantile, QuantileAt: 0.8}, y: 2, m: []float64{1}},
		{p: Params{Objective: Logistic}, y: 1, m: []float64{-0.7}},
		{p: Params{Objective: Logistic}, y: 0, m: []float64{3}},
		{p: Params{Objective: Softmax}, y: 2, m: []float64{0.3, -1, 0.5}},
		{p: Params{Objective: Softmax}, y: 0, m: []float64{0.3, -1, 0.5}},
		{p: Params{Objective: Poisson, MaxDeltaStep: -1}, y: 3, m: []float64{0.4}},
		{p: Params{Objective: Gamma}, y: 3, m: []float64{0.4}},
		{p: Params{Objective: Tweedie, TweediePower: 1.3}, y: 3, m: []float64{0.4}},
		{p: Params{Objective: Tweedie}, y: 0, m: []float64{0.4}},
	}
	for _, d := range []Distribution{NormalTime, LogisticTime, ExtremeTime} {
		for _, m := range []float64{-1, 0.2, 1.9} {
			p := Params{Objective: AFT, Time: d, TimeScale: 1.4}
			list = append(list, c{p, 2, 2, []float64{m}}, c{p, 2, math.Inf(1), []float64{m}}, c{p, 0, 2, []float64{m}}, c{p, 1, 3, []float64{m}})
		}
	}
	return list
}

func TestGradientsAreDerivatives(t *testing.T) {
	for _, c := range cases() {
		p := c.p.withDefaults(0)
		k := len(c.m)
		r := &Rows{N: 1, Label: []float64{c.y}, Weight: []float64{2.5}, Margin: make([][]float64, k)}
		if c.up != 0 {
			r.Upper = []float64{c.up}
		}
		grad, hess := make([][]float64, k), make([][]float64, k)
		for i := range r.Margin {
			r.Margin[i], grad[i], hess[i] = []float64{c.m[i]}, []float64{0}, []float64{0}
		}
		o := newLoss(&p, k)
		require.NoError(t, o.check(r, 0))
		require.NoError(t, o.gradients(r, grad, hess))
		name := fmt.Sprint(p.Objective, p.Time, c.y, c.up, c.m)
		for i := range r.Margin {
			const step = 1e-4
			at := func(m float64) float64 {
				r.Margin[i][0] = m
				return termOf(&p, r)
			}
			below, here, above := at(c.m[i]-step), at(c.m[i]), at(c.m[i]+step)
			r.Margin[i][0] = c.m[i]
			require.InDelta(t, 2.5*(above-below)/(2*step), grad[i][0], 1e-5, name)
			curve := 2.5 * (above - 2*here + below) / (step * step)
			switch p.Objective {
			case Absolute, Quantile, Huber:
				curve = 2.5 // the constant that is used in place of the second derivative
			case Softmax:
				curve *= 3.0 / 2
			}
			require.InDelta(t, curve, hess[i][0], 1e-4, name)
		}
	}
}

// TestRankGradientsAreDerivatives requires that the gradients of LambdaMART are the derivatives
// of the logistic losses of pairs of rows, with the changes of NDCG held fixed.
func TestRankGradientsAreDerivatives(t *testing.T) {
	label := []float64{0, 2, 1, 0, 3, 1}
	score := []float64{0.3, -0.2, 0.9, 0.1, 0.25, 0.25}
	for _, truncation := range []int{2, 30} {
		place := []int{1, 5, 0, 4, 2, 3}
		ideal, discount := 0.0, func(i int) float64 { return 1 / math.Log2(float64(i)+2) }
		for i, y := range []float64{3, 2, 1, 1, 0, 0} {
			if i < truncation {
				ideal += (math.Pow(2, y) - 1) * discount(i)
			}
		}
		loss := func(s []float64) float64 {
			var sum float64
			for a := range label {
				for b := range label {
					if label[a] > label[b] && min(place[a], place[b]) < truncation {
						change := math.Abs(discount(place[a])-discount(place[b])) * (math.Pow(2, label[a]) - math.Pow(2, label[b])) / ideal
						sum += change * math.Log1p(math.Exp(-(s[a] - s[b])))
					}
				}
			}
			return 1.5 * sum
		}
		o := newLambdaMART(truncation, false)
		g, h := make([]float64, 6), make([]float64, 6)
		weight := []float64{1.5, 9, 9, 9, 9, 9}
		require.NoError(t, o.gradients(&Rows{N: 6, Margin: [][]float64{score}, Label: label, Weight: weight, Groups: []int32{0, 6}}, [][]float64{g}, [][]float64{h}))
		for i := range label {
			const step = 1e-4
			s := append([]float64(nil), score...)
			at := func(v float64) float64 { s[i] = v; return loss(s) }
			below, here, above := at(score[i]-step), at(score[i]), at(score[i]+step)
			require.InDelta(t, (above-below)/(2*step), g[i], 1e-6)
			require.InDelta(t, (above-2*here+below)/(step*step), h[i], 1e-5)
		}
		// With normalisation, a list of equal labels and a single row have zero gradients, and
		// the gradients of a list sum to 0.
		n := newLambdaMART(truncation, true)
		require.NoError(t, n.gradients(&Rows{N: 6, Margin: [][]float64{score}, Label: label, Groups: []int32{0, 6}}, [][]float64{g}, [][]float64{h}))
		var sum float64
		for _, v := range g {
			sum += v
		}
		require.InDelta(t, 0, sum, 1e-12)
		require.Negative(t, g[4])
		require.NoError(t, n.gradients(&Rows{N: 3, Margin: [][]float64{score[:3]}, Label: []float64{1, 1, 2}, Groups: []int32{0, 2, 3}}, [][]float64{g[:3]}, [][]float64{h[:3]}))
		require.Equal(t, []float64{0, 0, 0}, g[:3])
	}
}

// TestNormalDistribution compares Φ with values from the complementary error function, over the
// whole range.
func TestNormalDistribution(t *testing.T) {
	for z := -12.0; z <= 30; z += 0.0625 {
		share, hazard := normalAbove(z)
		want := math.Erfc(z/math.Sqrt2) / 2
		require.InEpsilon(t, want, share, 1e-12, z)
		if z < 8 {
			require.InEpsilon(t, math.Exp(-z*z/2)/math.Sqrt(2*math.Pi)/want, hazard, 1e-11, z)
		}
	}
	// All results must be finite even far from 0.
	for _, d := range []Distribution{NormalTime, LogisticTime, ExtremeTime} {
		for _, m := range []float64{-1e6, -300, 300, 1e6} {
			for _, up := range []float64{2, math.Inf(1), 2.0000001} {
				for _, lower := range []float64{0, 2} {
					p := Params{Objective: AFT, Time: d, TimeScale: 1}
					r := &Rows{N: 1, Label: []float64{lower}, Upper: []float64{up}, Margin: [][]float64{{m}}}
					g, h := [][]float64{{0}}, [][]float64{{0}}
					require.NoError(t, newLoss(&p, 0).gradients(r, g, h))
					require.True(t, math.Abs(g[0][0]) <= maxAFT && h[0][0] > 0 && h[0][0] <= maxAFT, "%v %v [%v, %v]: %v %v", d, m, lower, up, g, h)
				}
			}
		}
	}
}

func TestDomains(t *testing.T) {
	inf := math.Inf(1)
	for _, c := range []struct {
		o       Objective
		y, up   float64
		problem string
	}{
		{Poisson, -1, 0, "want a number of 0 or more"},
		{Gamma, 0, 0, "want a number above 0"},
		{Tweedie, -0.5, 0, "want a number of 0 or more"},
		{AFT, 3, 2, "want an interval"},
		{AFT, 0, 0, "want an interval"},
		{AFT, inf, inf, "want an interval"},
		{LambdaMART, 32, 0, "want a relevance"},
		{LambdaMART, -1, 0, "want a relevance"},
		{Squared, -1, 0, ""},
		{Poisson, 0, 0, ""},
		{AFT, 0, inf, ""},
		{AFT, 2, 2, ""},
	} {
		p := Params{Objective: c.o}.withDefaults(0)
		r := &Rows{N: 1, Label: []float64{c.y}}
		if c.o == AFT {
			r.Upper = []float64{c.up}
		}
		err := newLoss(&p, 0).check(r, 0)
		if c.problem == "" {
			require.NoError(t, err, c.o)
			continue
		}
		require.ErrorContains(t, err, c.problem)
	}
	p := Params{Objective: AFT}.withDefaults(0)
	require.ErrorContains(t, newLoss(&p, 0).check(&Rows{N: 1, Label: []float64{0}}, 0), "want a time above 0")
}

// random returns n uniform numbers between lo and hi.
func random(seed uint64, n int, lo, hi float64) []float64 {
	d := sharding.NewRandom(seed, "test", 0, 0)
	v := make([]float64, n)
	for i := range v {
		v[i] = lo + (hi-lo)*d.Float64()
	}
	return v
}
