package evaluate_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// requireSame asserts that two reports have the same bits.
func requireSame[R evaluate.Report](t require.TestingT, want, got *R) {
	require.Equal(t, reportText(t, want), reportText(t, got))
}

func reportText[R evaluate.Report](t require.TestingT, r *R) string {
	text, err := any(r).(interface{ MarshalJSON() ([]byte, error) }).MarshalJSON()
	require.NoError(t, err)
	return string(text)
}

// measured runs an evaluation on rows and returns the report.
func measured[R evaluate.Report, T any](t testing.TB, rows []T, evaluation func(*engine.Dataset) *engine.Dataset, options ...engine.Option) *R {
	t.Helper()
	result, err := trial.Try(t, func(b *engine.Builder) {
		engine.Collect(evaluation(operators.FromSlice(b, rows)), "report")
	}, options...)
	require.NoError(t, err)
	defer result.Release()
	r, err := evaluate.ReportOf[R](result, "report")
	require.NoError(t, err)
	return r
}

// requireFailure asserts that an evaluation of rows fails with an error that contains all the
// given texts.
func requireFailure[T any](t testing.TB, rows []T, evaluation func(*engine.Dataset) *engine.Dataset, texts ...string) {
	t.Helper()
	trial.Fails(t, func(b *engine.Builder) {
		engine.Collect(evaluation(operators.FromSlice(b, rows)), "report")
	}, texts...)
}

// requireClose asserts that two numbers differ by a relative error of at most 1e-12.
func requireClose(t require.TestingT, want, got float64, what string) {
	if math.IsNaN(want) {
		require.True(t, math.IsNaN(got), "%s: %v, want NaN", what, got)
		return
	}
	require.InDelta(t, want, got, 1e-12*max(1, math.Abs(want)), what)
}

// wildNumbers returns n numbers with magnitudes from 1e-8 to 1e16.
func wildNumbers(purpose string, n int) []float64 {
	r := sharding.NewRandom(5, purpose, 0, 0)
	v := make([]float64, n)
	for i := range v {
		v[i] = math.Pow(10, -8+24*r.Float64()) * (2*r.Float64() - 1)
	}
	return v
}
