package glm_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/glm"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
)

// TestTables compares coefficients, standard errors, statistics, p values and measures, for
// every family and link, dense and sparse. The reference is an implementation of iteratively
// reweighted least squares in another language, with the formulas of textbooks.
func TestTables(t *testing.T) {
	type table struct {
		Family            glm.Family
		Link              glm.Link
		Power             float64
		B, SE, Z, P       []float64
		Deviance          float64
		Null, AIC         *float64
		Dispersion        float64
		Pearson           float64
		Weighted, Shifted bool
		Data              string
		Columns           int
	}
	all := trial.JSON[map[string]table](t, "tables.json")
	require.Len(t, all, 26)
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			rows, shift := trial.Abalone(t, 400), 0.1
			if want.Data == "heart" {
				rows, shift = heart(t, want.Columns), 0.5
			}
			for i := range rows.N {
				if want.Weighted {
					rows.Weight = append(rows.Weight, 1+float64(i%3))
				}
				if want.Shifted {
					rows.Offset = append(rows.Offset, shift*math.Cos(float64(i)))
				}
			}
			for _, sparse := range []bool{false, true} {
				rows.Sparse = sparse
				p := glm.Params{Family: want.Family, Link: want.Link, MaxIter: 1000, Tol: 1e-12}
				if want.Family == glm.Tweedie {
					p.Power = want.Power
				}
				m := train(t, rows, p)
				require.True(t, m.Summary.Converged)
				in := m.Summary.Inference
				require.NotNil(t, in)
				require.Len(t, in.Terms, len(want.B))
				require.Equal(t, len(want.B), in.Rank)
				require.Equal(t, float64(rows.N-len(want.B)), in.Freedom)
				statistic := "t"
				if want.Family == glm.Binomial || want.Family == glm.Poisson {
					statistic = "z"
				}
				require.Equal(t, statistic, in.Statistic)
				for j, term := range in.Terms {
					require.True(t, term.Defined)
					require.InDelta(t, want.B[j], term.Estimate, 1e-5*want.SE[j], term.Name)
					require.InEpsilon(t, want.SE[j], term.StdError, 1e-5, term.Name)
					require.InDelta(t, want.Z[j], term.Statistic, 1e-5*(1+math.Abs(want.Z[j])), term.Name)
					require.InDelta(t, want.P[j], term.PValue, 1e-5, term.Name)
				}
				for measure, v := range map[string]*float64{
					glm.Deviance: &want.Deviance, glm.NullDeviance: want.Null, glm.AIC: want.AIC,
					glm.Dispersion: &want.Dispersion, glm.PearsonChiSquared: &want.Pearson,
				} {
					got, ok := m.Summary.Measure(measure)
					require.Equal(t, v != nil, ok, measure)
					if ok {
						require.InEpsilon(t, *v, got, 1e-6, measure)
					}
				}
			}
		})
	}
}

// TestPenaltiesAreScikitLearns compares coefficients with scikit-learn. With NoStandardize, L2
// corresponds to scikit-learn's alpha.
func TestPenaltiesAreScikitLearns(t *testing.T) {
	type fit struct {
		Family       glm.Family
		Link         glm.Link
		Power, Alpha float64
		B            []float64
		C            float64
	}
	table := trial.Abalone(t, 400)
	for i := range table.N {
		table.Weight = append(table.Weight, 1+float64(i%3))
	}
	for name, want := range trial.JSON[map[string]fit](t, "scikit-learn.json") {
		for _, method := range []optim.Method{optim.Auto, optim.LBFGS} {
			t.Run(name+" "+method.String(), func(t *testing.T) {
				p := glm.Params{Family: want.Family, Link: want.Link, L2: want.Alpha, NoStandardize: true, Method: method, Tol: 1e-10, MaxIter: 2000}
				if want.Family == glm.Tweedie {
					p.Power = want.Power
				}
				m := train(t, table, p)
				require.True(t, m.Summary.Converged)
				require.InDeltaSlice(t, want.B, m.Coefficients[0], 1e-6)
				require.InDelta(t, want.C, m.Intercepts[0], 1e-6)
				require.Nil(t, m.Summary.Inference)
				_, ok := m.Summary.Measure(glm.Dispersion)
				require.False(t, ok)
				_, ok = m.Summary.Measure(glm.NullDeviance)
				require.True(t, ok)
			})
		}
	}
}

// TestExposure requires that counts with the logarithm of an exposure as offset, and rates with
// the exposure as weight, give the same coefficients and standard errors.
func TestExposure(t *testing.T) {
	a := counts(200, 3)
	a.Weight = nil
	b := a
	b.Label = nil
	for i, y := range a.Label {
		exposure := 0.5 + float64(i%7)
		a.Offset = append(a.Offset, math.Log(exposure))
		b.Label, b.Weight = append(b.Label, y/exposure), append(b.Weight, exposure)
	}
	p := glm.Params{Family: glm.Poisson, Tol: 1e-12}
	asOffset, asWeight := train(t, a, p), train(t, b, p)
	require.InDeltaSlice(t, asOffset.Coefficients[0], asWeight.Coefficients[0], 1e-9)
	require.InDelta(t, asOffset.Intercepts[0], asWeight.Intercepts[0], 1e-9)
	for j, term := range asOffset.Summary.Inference.Terms {
		require.InEpsilon(t, term.StdError, asWeight.Summary.Inference.Terms[j].StdError, 1e-8)
	}
	x := a.Row(5)
	require.InEpsilon(t, asOffset.Predict(x), asWeight.Predict(x), 1e-9)
	require.Equal(t, asOffset.Predict(x), asOffset.Mean(asOffset.Margin(x)))
}
