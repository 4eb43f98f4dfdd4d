package evaluate_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// noInfinity asserts that no number of a report is infinite, and that every NaN among the named
// fields has a reason in undefined.
func noInfinity(t *testing.T, report any, undefined []string, fields ...string) {
	t.Helper()
	v := reflect.ValueOf(report).Elem()
	why := "\n" + strings.Join(undefined, "\n")
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if f.Type.Kind() != reflect.Float64 {
			continue
		}
		require.False(t, math.IsInf(v.Field(i).Float(), 0), "%s: %v", f.Name, undefined)
		for _, name := range fields {
			if f.Tag.Get("json") == name && math.IsNaN(v.Field(i).Float()) && !strings.Contains(why, "\nall: ") {
				require.Contains(t, why, "\n"+name+": ")
			}
		}
	}
}

const big = 1e308

func TestBinaryOfExtremeWeights(t *testing.T) {
	truth, score := []int{1, 0, 1, 0, 1}, []float64{0.9, 0.8, 0.7, 0.6, 0.2}
	weights := []float64{1, 2, 3, 4, 2}
	want := must(evaluate.MeasureBinary(truth, score, weights, evaluate.BinaryOptions{}))
	require.InDelta(t, 0.5*float64(0)+(1*6.0+3*4.0)/(6*6), want.AUC, 1e-15)
	for _, power := range []int{-1040, -600, -300, 300, 600, 1019} {
		w := make([]float64, len(weights))
		for i := range w {
			w[i] = math.Ldexp(weights[i], power)
		}
		r := must(evaluate.MeasureBinary(truth, score, w, evaluate.BinaryOptions{}))
		require.Equal(t, want.AUC, r.AUC, power)
		require.InDelta(t, want.MCC, r.MCC, 1e-15, power)
		require.InDelta(t, want.F1, r.F1, 1e-15, power)
		require.InDelta(t, want.PRAUC, r.PRAUC, 1e-9, power)
		noInfinity(t, r, r.Undefined, "auc", "pr_auc", "log_loss", "brier", "mcc", "f1")
	}
	r := must(evaluate.MeasureBinary(truth, score, []float64{big, big, big, big, big}, evaluate.BinaryOptions{}))
	require.Len(t, r.Undefined, 1)
	require.Contains(t, r.Undefined[0], "all: the weights of all rows add up to more than a float64 can hold")
	noInfinity(t, r, r.Undefined)
	require.True(t, math.IsNaN(r.AUC))
	require.Equal(t, 0.5, r.Threshold)
	for i, p := range r.Curve {
		require.Equal(t, i == 0, math.IsInf(p.Score, 1))
	}
	require.Equal(t, 1.0/2, must(evaluate.MeasureBinary([]int{0, 1}, []float64{1, 1}, []float64{5e-324, 5e-324}, evaluate.BinaryOptions{})).AUC)
}

func TestRegressionBeyondTheRange(t *testing.T) {
	fields := []string{"mse", "rmse", "mae", "max_error", "bias", "r2", "explained_variance", "mape", "pinball", "median_ae", "d2_absolute", "d2_pinball"}
	for _, c := range []struct {
		label, prediction, weight []float64
		want                      string
	}{
		{[]float64{1e200, -1e200}, []float64{1, 2}, nil, "r2: an intermediate sum"},
		{[]float64{1.3e154, -1.3e154}, []float64{0, 0}, nil, "r2: an intermediate sum"},
		{[]float64{math.MaxFloat64, -math.MaxFloat64}, []float64{-math.MaxFloat64, math.MaxFloat64}, nil, "bias: an intermediate sum"},
		{[]float64{1, 2}, []float64{2, 3}, []float64{big, big}, "all: the weights"},
		{[]float64{1e10, 2e10}, []float64{2, 3}, []float64{big / 4, big / 4}, "mse: an intermediate sum"},
	} {
		r := must(evaluate.MeasureRegression(c.label, c.prediction, c.weight, evaluate.RegressionOptions{}))
		require.Contains(t, "\n"+strings.Join(r.Undefined, "\n"), "\n"+c.want)
		noInfinity(t, r, r.Undefined, fields...)
	}
	r := must(evaluate.MeasureRegression([]float64{1e200, -1e200}, []float64{0, 0}, nil, evaluate.RegressionOptions{}))
	require.Equal(t, 1e200, r.MAE)
	require.Equal(t, 0.0, r.Bias)
}

func TestOtherReportsBeyondTheRange(t *testing.T) {
	heavy := []float64{big, big, big}
	m := must(evaluate.MeasureMulticlass([]int{0, 1, 2}, []int{0, 1, 1}, nil, heavy, evaluate.MulticlassOptions{}))
	require.Len(t, m.Undefined, 1)
	require.Contains(t, m.Undefined[0], "all: the weights")
	noInfinity(t, m, m.Undefined)
	for _, row := range m.Confusion {
		for _, v := range row {
			require.False(t, math.IsInf(v, 0))
		}
	}
	m = must(evaluate.MeasureMulticlass([]int{0, 0}, []int{0, 0}, nil, []float64{big / 2, big / 2}, evaluate.MulticlassOptions{}))
	require.Equal(t, 1.0, m.F1Macro)
	c := must(evaluate.MeasureClustering[int, int]([]int{1, 2, 2}, [][]float64{{1e200}, {-1e200}, {2}}, nil, nil, evaluate.ClusteringOptions{Exact: true}))
	noInfinity(t, c, c.Undefined, "silhouette", "exact_silhouette", "davies_bouldin", "calinski_harabasz", "within")
	require.NotEmpty(t, c.Undefined)
	// Only the numbers of pairs of rows, on which ARI depends, exceed float64.
	c = must(evaluate.MeasureClustering([]int{1, 2, 2}, nil, []int{1, 2, 1}, []float64{1e200, 1e200, 2e200}, evaluate.ClusteringOptions{}))
	require.Len(t, c.Undefined, 1)
	require.Contains(t, c.Undefined[0], "ari: an intermediate sum")
	require.Equal(t, 0.75, c.Purity)
	// If no row is positive, the lift is not defined.
	b := must(evaluate.MeasureBinary([]int{0, 0}, []float64{0.1, 0.2}, nil, evaluate.BinaryOptions{}))
	require.True(t, math.IsNaN(b.Curve[0].Lift))
}

// TestMedianOfErrorsBeyondTheRange requires that a median that falls on an error beyond float64
// is not defined, for slices and for datasets. Such an error must not be replaced by the
// largest float64. Other medians must not change.
func TestMedianOfErrorsBeyondTheRange(t *testing.T) {
	const huge = math.MaxFloat64
	for _, c := range []struct {
		label, prediction []float64
		want              float64
	}{
		{[]float64{huge, -huge, 1}, []float64{-huge, huge, 1}, math.NaN()},
		{[]float64{huge, 1}, []float64{-huge, 1}, math.NaN()},
		{[]float64{huge, 3, 1}, []float64{-huge, 1, 0}, 2},
		{[]float64{huge, 0, huge}, []float64{0, 0, 0}, huge},
	} {
		r := must(evaluate.MeasureRegression(c.label, c.prediction, nil, evaluate.RegressionOptions{}))
		type row struct {
			Label      float64
			Prediction float64
		}
		rows := make([]row, len(c.label))
		for i := range rows {
			rows[i] = row{c.label[i], c.prediction[i]}
		}
		result := trial.Run(t, func(b *engine.Builder) {
			engine.Collect(evaluate.Regression(operators.FromSlice(b, rows), evaluate.RegressionOptions{LabelCol: "label", PredictionCol: "prediction"}), "report")
		})
		for _, r := range []*evaluate.RegressionReport{r, must(evaluate.ReportOf[evaluate.RegressionReport](result, "report"))} {
			if c.want == c.want {
				require.Equal(t, c.want, r.MedianAE)
				continue
			}
			require.True(t, math.IsNaN(r.MedianAE), r.MedianAE)
			noInfinity(t, r, r.Undefined, "median_ae")
		}
	}
}
