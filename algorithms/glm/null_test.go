package glm_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
)

// proportions returns rows of k successes in m trials, with m as weight; some rows have no
// trials.
func proportions() (table trial.Table, k []float64) {
	table = trial.Gaussian(8, 60, 2)
	for i := range table.N {
		m := float64(i % 6)
		successes := math.Min(m, float64(i%4))
		k = append(k, successes)
		table.Weight = append(table.Weight, m)
		table.Label = append(table.Label, successes/math.Max(m, 1))
	}
	return table, k
}

// TestAICOfTrials compares AIC with the densities of binomial counts. If trials are not whole
// numbers, there must be no AIC.
func TestAICOfTrials(t *testing.T) {
	table, k := proportions()
	m := train(t, table, glm.Params{Family: glm.Binomial, Tol: 1e-12})
	choose := func(n, k float64) float64 {
		a, _ := math.Lgamma(n + 1)
		b, _ := math.Lgamma(k + 1)
		c, _ := math.Lgamma(n - k + 1)
		return a - b - c
	}
	want := 2 * 3.0
	for i, trials := range table.Weight {
		mean := m.Predict(table.Row(i))
		want -= 2 * (choose(trials, k[i]) + k[i]*math.Log(mean) + (trials-k[i])*math.Log(1-mean))
	}
	got, ok := m.Summary.Measure(glm.AIC)
	require.True(t, ok)
	require.InEpsilon(t, want, got, 1e-10)

	broken := table
	broken.Weight = append([]float64(nil), table.Weight...)
	broken.Weight[5] += 0.25
	_, ok = train(t, broken, glm.Params{Family: glm.Binomial}).Summary.Measure(glm.AIC)
	require.False(t, ok, "5.25 trials")
	broken.Weight = nil
	_, ok = train(t, broken, glm.Params{Family: glm.Binomial}).Summary.Measure(glm.AIC)
	require.False(t, ok, "there must be no AIC if the numbers of trials are unknown")
}

// TestNullDeviance compares the null deviance of models with an offset with its closed form.
// Some rows have weight 0. If no intercept gives the mean of the labels, there must be no null
// deviance.
func TestNullDeviance(t *testing.T) {
	table := counts(80, 2)
	for i := range table.N {
		table.Offset = append(table.Offset, math.Log(1+float64(i%9)))
		if i%10 == 3 {
			table.Weight[i] = 0
		}
	}
	// With the link log the intercept has a closed form: Σ u·y / Σ u·exposure.
	var labels, exposures, want float64
	for i, u := range table.Weight {
		labels += u * table.Label[i]
		exposures += u * math.Exp(table.Offset[i])
	}
	for i, u := range table.Weight {
		mean, y := labels/exposures*math.Exp(table.Offset[i]), table.Label[i]
		want += 2 * u * (y*math.Log(y/mean) - (y - mean))
	}
	for _, p := range []glm.Params{{}, {L2: 0.1}, {L1: 0.1}} {
		p.Family = glm.Poisson
		got, ok := train(t, table, p).Summary.Measure(glm.NullDeviance)
		require.True(t, ok)
		require.InEpsilon(t, want, got, 1e-12)
	}
	without := train(t, table, glm.Params{Family: glm.Poisson, NoInference: true})
	_, ok := without.Summary.Measure(glm.NullDeviance)
	require.False(t, ok)

	clear(table.Label)
	_, ok = train(t, table, glm.Params{Family: glm.Poisson}).Summary.Measure(glm.NullDeviance)
	require.False(t, ok, "there must be no null deviance, because no intercept gives a mean of 0")
	// The labels are 3.5 and 6.5 and their means 4 and 6. With the link Identity no search is
	// needed.
	one := trial.TableOf([]float64{3.5, 6.5}, []float64{1}, []float64{2})
	one.Offset = []float64{1, 3}
	got, ok := train(t, one, glm.Params{L2: 1}).Summary.Measure(glm.NullDeviance)
	require.True(t, ok)
	require.InEpsilon(t, 0.5, got, 1e-12)
}
