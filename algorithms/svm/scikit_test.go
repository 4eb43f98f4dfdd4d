package svm_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/algorithms/svm"
)

// TestClassifiersAreScikitLearns compares coefficients, and the value of the textbook
// objective, with models of scikit-learn that do not penalise the intercept. These models are
// LinearSVC without an intercept or with a large intercept_scaling, and in the other cases SVC
// with the linear kernel.
func TestClassifiersAreScikitLearns(t *testing.T) {
	tables := map[string]trial.Table{"heart": trial.Heart(t), "cancer": trial.Cancer(t), "iris": trial.Iris(t)}
	for name, want := range scikit(t) {
		table, ok := tables[strings.Fields(name)[0]]
		if !ok {
			continue
		}
		methods := []optim.Method{optim.Auto, optim.LBFGS}
		if !strings.Contains(name, "squared") && name != "heart hinge" {
			methods = methods[:1] // LBFGS takes some hundred iterations: one case is enough
		}
		for _, method := range methods {
			t.Run(name+" "+method.String(), func(t *testing.T) {
				table.Sparse = method == optim.Auto
				require.Equal(t, want.Rows, table.N)
				squared, l2 := strings.Contains(name, "squared"), 1/(want.C*float64(table.N))
				m := classify(t, table, svm.LinearSVC{
					Squared: squared, L2: l2, NoStandardize: true, NoIntercept: strings.Contains(name, "without"),
					Method: method, Tol: tolFor(squared),
				})
				require.Len(t, m.Coefficients, len(want.Coef))
				var own, theirs float64
				for a := range want.Coef {
					class := a
					if len(want.Coef) == 1 {
						class = 1
					}
					own += objective(table, class, classNumbers(m, table), m.Coefficients[a], m.Intercepts[a], 0, squared, l2)
					theirs += objective(table, class, classNumbers(m, table), want.Coef[a], want.Intercept[a], 0, squared, l2)
				}
				require.InEpsilon(t, own, m.Summary.Objective, 1e-9)
				checkGap(t, m.Summary, squared)
				require.LessOrEqual(t, own, theirs*(1+1.1e-6))
				require.GreaterOrEqual(t, own, theirs*(1-1.1e-6))
				for a := range want.Coef {
					require.InDeltaSlice(t, want.Coef[a], m.Coefficients[a], 5e-3, "%v", m.Summary.Reason)
				}
			})
		}
	}
}

// classNumbers returns a function from the index of a row to the index of its class.
func classNumbers(m *svm.SVCModel, table trial.Table) func(i int) int {
	return func(i int) int {
		text := ""
		if table.Words != nil {
			text = table.Words[i]
		} else {
			text = trim(table.Label[i])
		}
		return slices.Index(m.Classes.Values, text)
	}
}

// checkGap requires a relative duality gap of at most 1e-6, or convergence if the loss is
// squared.
func checkGap(t *testing.T, s svm.Summary, squared bool) {
	t.Helper()
	require.True(t, s.Converged, s.Reason)
	gap, ok := s.Measure(svm.RelativeDualityGap)
	if squared {
		require.False(t, ok)
		require.Contains(t, []optim.Reason{optim.GradientSmall, optim.Exhausted}, s.Reason)
		return
	}
	require.True(t, ok)
	require.LessOrEqual(t, gap, 1e-6)
	require.Equal(t, optim.GapClosed, s.Reason)
	absolute, ok := s.Measure(svm.DualityGap)
	require.True(t, ok)
	require.InEpsilon(t, s.Objective*(1+gap), s.Objective+absolute, 1e-12)
}

// TestRegressionsAreScikitLearns compares regressions with LinearSVR and SVR of scikit-learn,
// in the same way as TestClassifiersAreScikitLearns.
func TestRegressionsAreScikitLearns(t *testing.T) {
	table := trial.Abalone(t, 800)
	for name, want := range scikit(t) {
		if !strings.HasPrefix(name, "abalone") {
			continue
		}
		for _, method := range []optim.Method{optim.Auto, optim.LBFGS} {
			t.Run(name+" "+method.String(), func(t *testing.T) {
				table.Sparse = method == optim.Auto
				require.Equal(t, want.Rows, table.N)
				squared, l2 := strings.Contains(name, "squared"), 1/(want.C*float64(table.N))
				m := regress(t, table, svm.LinearSVR{
					Squared: squared, Epsilon: want.Epsilon, L2: l2, NoStandardize: true, NoIntercept: strings.Contains(name, "without"),
					Method: method, Tol: tolFor(squared),
				})
				own := objective(table, -1, nil, m.Coefficients[0], m.Intercepts[0], want.Epsilon, squared, l2)
				theirs := objective(table, -1, nil, want.Coef[0], want.Intercept[0], want.Epsilon, squared, l2)
				require.InEpsilon(t, own, m.Summary.Objective, 1e-9)
				checkGap(t, m.Summary, squared)
				require.LessOrEqual(t, own, theirs*(1+1.1e-6))
				require.GreaterOrEqual(t, own, theirs*(1-1.1e-6))
				require.InDeltaSlice(t, want.Coef[0], m.Coefficients[0], 0.2)
			})
		}
	}
}

// tolFor returns a small Tol if the loss is squared. Then only the size of the gradient ends
// training.
func tolFor(squared bool) float64 {
	if squared {
		return 1e-9
	}
	return 0
}
