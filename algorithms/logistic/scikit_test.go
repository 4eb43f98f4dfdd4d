package logistic_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/algorithms/optim"
)

// TestProbabilitiesAreScikitLearns compares every probability with scikit-learn, for dense and
// sparse rows and all methods. It sets NoStandardize and L2 = 1/(C·n) for n rows.
func TestProbabilitiesAreScikitLearns(t *testing.T) {
	type fit struct {
		C             float64
		Rows          int
		Classes       []string
		Probabilities []float64
	}
	tables := map[string]trial.Table{"heart": trial.Heart(t), "iris": trial.Iris(t), "cancer": trial.Cancer(t), "higgs": higgs(t)}
	for name, want := range trial.JSON[map[string]fit](t, "scikit-learn.json") {
		for _, method := range []optim.Method{optim.Auto, optim.Newton, optim.LBFGS} {
			t.Run(fmt.Sprint(name, " by ", method), func(t *testing.T) {
				table := tables[name]
				table.Sparse = method == optim.LBFGS && name != "higgs"
				require.Equal(t, want.Rows, table.N)
				m := train(t, table, logistic.Params{L2: 1 / (want.C * float64(table.N)), NoStandardize: true, Tol: 1e-9, Method: method, MaxIter: 500})
				require.Equal(t, want.Classes, m.Classes.Values)
				require.True(t, m.Summary.Converged, m.Summary.Reason)
				k := len(want.Probabilities) / table.N
				for i := range table.N {
					p := probabilities(t, m, table.Row(i))
					for a, v := range want.Probabilities[i*k : (i+1)*k] {
						got := p[a]
						if k == 1 {
							got = p[1]
						}
						require.InDelta(t, v, got, 1e-6, "row %d", i)
					}
				}
			})
		}
	}
}

// TestTableOfStandardErrors compares the table of standard errors with a table that a program
// in another language computed by Newton's method.
func TestTableOfStandardErrors(t *testing.T) {
	type table struct {
		B, SE, Z, P []float64
		LL, Null    float64
	}
	tables := map[string]trial.Table{"heart": trial.Heart(t), "cancer": trial.Cancer(t)}
	for name, want := range trial.JSON[map[string]table](t, "tables.json") {
		for _, sparse := range []bool{false, true} {
			rows := tables[name]
			rows.Sparse = sparse
			m := train(t, rows, logistic.Params{Tol: 1e-11, Inference: true})
			require.NotNil(t, m.Summary.Inference)
			in := m.Summary.Inference
			require.Equal(t, "z", in.Statistic)
			require.Len(t, in.Terms, len(want.B))
			require.Equal(t, len(want.B), in.Rank)
			for j, term := range in.Terms {
				require.True(t, term.Defined)
				require.InEpsilon(t, want.B[j], term.Estimate, 1e-8, term.Name)
				require.InEpsilon(t, want.SE[j], term.StdError, 1e-8, term.Name)
				require.InEpsilon(t, want.Z[j], term.Statistic, 1e-8, term.Name)
				require.InEpsilon(t, want.P[j], term.PValue, 1e-7, term.Name)
			}
			require.Equal(t, "intercept", in.Terms[len(in.Terms)-1].Name)
			require.Equal(t, "features[0]", in.Terms[0].Name)
			for measure, v := range map[string]float64{
				logistic.LogLikelihood: want.LL, logistic.NullLogLikelihood: want.Null, logistic.PseudoRSquared: 1 - want.LL/want.Null,
				logistic.AIC: 2*float64(len(want.B)) - 2*want.LL,
			} {
				got, ok := m.Summary.Measure(measure)
				require.True(t, ok, measure)
				require.InEpsilon(t, v, got, 1e-9, measure)
			}
		}
	}
}
