package optim_test

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// plot is a row with two features and a label.
type plot struct {
	At    []float64 `column:"at,dim=2"`
	Yield float64
}

func plots(n int) []plot {
	all := make([]plot, n)
	for i := range all {
		x, y := math.Sin(float64(i)), float64(i%7)/7
		all[i] = plot{[]float64{x, y}, 3 + 2*x - y + math.Cos(float64(3*i))/4}
	}
	return all
}

// squares is the squared error of a linear function whose constant is w[2].
func squares(row plot, w, grad []float64) float64 {
	r := float64(w[0]*row.At[0]) + float64(w[1]*row.At[1]) + w[2] - row.Yield
	grad[0] += float64(r * row.At[0])
	grad[1] += float64(r * row.At[1])
	grad[2] += r
	return r * r / 2
}

// ridge solves (XᵀX/n + l2·I)·w = Xᵀy/n by elimination.
func ridge(rows []plot, l2 float64) [3]float64 {
	var a [3][4]float64
	for _, r := range rows {
		x := [3]float64{r.At[0], r.At[1], 1}
		for i := range 3 {
			for j := range 3 {
				a[i][j] += x[i] * x[j] / float64(len(rows))
			}
			a[i][3] += x[i] * r.Yield / float64(len(rows))
		}
	}
	for i := range 3 {
		a[i][i] += l2
	}
	for i := range 3 {
		for j := range 3 {
			if j != i {
				f := a[j][i] / a[i][i]
				for k := range 4 {
					a[j][k] -= f * a[i][k]
				}
			}
		}
	}
	return [3]float64{a[0][3] / a[0][0], a[1][3] / a[1][1], a[2][3] / a[2][2]}
}

func minimized(t *testing.T, rows []plot, s optim.Settings, options ...engine.Option) optim.Minimum {
	t.Helper()
	r := trial.Run(t, func(b *engine.Builder) {
		engine.Collect(optim.MinimizeRows(operators.FromSlice(b, rows), 3, squares, s), "minimum")
	}, append(options, engine.Shards(16))...)
	found, err := engine.Rows[optim.Minimum](r, "minimum")
	require.NoError(t, err)
	require.Len(t, found, 1)
	return found[0]
}

// TestMinimizeRows compares the result of penalised least squares with the closed form, for
// every method. It requires the same bits at any parallelism.
func TestMinimizeRows(t *testing.T) {
	rows := plots(500)
	for _, test := range []struct {
		settings optim.Settings
		within   float64
	}{
		{optim.Settings{L2: 0.1, Tol: 1e-10}, 1e-8},
		{optim.Settings{Method: optim.GD, L2: 0.1, Tol: 1e-10, MaxIter: 500}, 1e-8},
		{optim.Settings{Method: optim.SGD, L2: 0.1, MaxIter: 10}, 0.2},
		{optim.Settings{Tol: 1e-10}, 1e-8},
	} {
		want := ridge(rows, test.settings.L2)
		got := minimized(t, rows, test.settings, engine.Parallelism(1))
		require.InDeltaSlice(t, want[:], got.Parameters, test.within, "%v", test.settings.Method)
		require.Positive(t, got.Iterations)
		if test.settings.Method != optim.SGD {
			require.True(t, got.Converged, got.Reason)
		}
		for _, options := range [][]engine.Option{
			{engine.Parallelism(2), engine.BatchRows(7)},
			{engine.Parallelism(3), engine.BatchRows(1), engine.CheckState(test.settings.Method == optim.Auto)},
			{engine.Parallelism(8)},
			{engine.Parallelism(2), engine.Workers(2)},
		} {
			require.Equal(t, got, minimized(t, rows, test.settings, options...), "%v", test.settings.Method)
		}
	}
}

// TestMinimizeRowsRefuses requires that errors name the line of the call, and that they
// are reported when the job is built if they can be detected then.
func TestMinimizeRowsRefuses(t *testing.T) {
	type other struct{ Height float64 }
	type null struct {
		At    []float64 `column:"at,dim=2"`
		Yield *float64
	}
	bad := func(other, []float64, []float64) float64 { return 0 }
	for name, test := range map[string]struct {
		build func(b *engine.Builder) *engine.Dataset
		want  []string
	}{
		"no parameters": {func(b *engine.Builder) *engine.Dataset {
			return optim.MinimizeRows(operators.FromSlice(b, plots(5)), 0, squares, optim.Settings{})
		}, []string{"MinimizeRows: there are 0 parameters"}},
		"no dataset": {func(b *engine.Builder) *engine.Dataset {
			return optim.MinimizeRows(nil, 3, squares, optim.Settings{})
		}, []string{"MinimizeRows: the dataset is nil"}},
		"no function": {func(b *engine.Builder) *engine.Dataset {
			return optim.MinimizeRows[plot](operators.FromSlice(b, plots(5)), 3, nil, optim.Settings{})
		}, []string{"MinimizeRows: the function is nil"}},
		"start": {func(b *engine.Builder) *engine.Dataset {
			return optim.MinimizeRows(operators.FromSlice(b, plots(5)), 3, squares, optim.Settings{Start: []float64{1, 2}})
		}, []string{"rows_test.go:", "MinimizeRows: Settings.Start has 2 parameters, and there are 3"}},
		"newton": {func(b *engine.Builder) *engine.Dataset {
			return optim.MinimizeRows(operators.FromSlice(b, plots(5)), 3, squares, optim.Settings{Method: optim.Newton})
		}, []string{"needs second derivatives"}},
		"settings": {func(b *engine.Builder) *engine.Dataset {
			return optim.MinimizeRows(operators.FromSlice(b, plots(5)), 3, squares, optim.Settings{L2: -1})
		}, []string{"L2"}},
		"other columns": {func(b *engine.Builder) *engine.Dataset {
			return optim.MinimizeRows(operators.FromSlice(b, plots(5)), 3, bad, optim.Settings{})
		}, []string{`the dataset for "rows": rows as optim_test.other: `, `"height"`}},
		"no rows": {func(b *engine.Builder) *engine.Dataset {
			return optim.MinimizeRows(operators.FromSlice(b, plots(0)), 3, squares, optim.Settings{})
		}, []string{"there are no rows"}},
		"a null": {func(b *engine.Builder) *engine.Dataset {
			y := 1.0
			return optim.MinimizeRows(operators.FromSlice(b, []null{{[]float64{1, 2}, &y}, {[]float64{1, 2}, nil}}), 3, squares, optim.Settings{})
		}, []string{`column "yield" is null`}},
		"not a number": {func(b *engine.Builder) *engine.Dataset {
			return optim.MinimizeRows(operators.FromSlice(b, plots(5)), 3, func(plot, []float64, []float64) float64 { return math.NaN() }, optim.Settings{})
		}, []string{"NaN"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := trial.Try(t, func(b *engine.Builder) { engine.Collect(test.build(b), "minimum") }, engine.Parallelism(2))
			for _, want := range append(test.want, "rows_test.go:") {
				require.ErrorContains(t, err, want)
			}
		})
	}
}

// BenchmarkMinimizeRows measures a pass over rows with a user's function.
func BenchmarkMinimizeRows(b *testing.B) {
	const n = 200_000
	rows, reads := plots(n), 0.0
	for b.Loop() {
		job := engine.Define("benchmark", func(build *engine.Builder, _ struct{}) error {
			engine.Collect(optim.MinimizeRows(operators.FromSlice(build, rows), 3, squares, optim.Settings{MaxIter: 20, Tol: 1e-300}), "minimum")
			return nil
		})
		r, err := engine.Run(context.Background(), job, struct{}{}, engine.Parallelism(1))
		require.NoError(b, err)
		found, err := engine.Rows[optim.Minimum](r, "minimum")
		require.NoError(b, err)
		reads += found[0].Reads
		r.Release()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/(reads*n), "ns/row")
}

// reading is a row of the example.
type reading struct{ Hours, Height float64 }

// ExampleMinimizeRows fits a user-defined curve by least squares: heights that approach a
// limit.
func ExampleMinimizeRows() {
	job := engine.Define("growth", func(b *engine.Builder, _ struct{}) error {
		readings := operators.FromSlice(b, []reading{{0, 0}, {1, 4}, {2, 6}, {3, 7}, {4, 7.5}})
		fit := optim.MinimizeRows(readings, 2, func(row reading, w, grad []float64) float64 {
			share := row.Hours / (w[1] + row.Hours)
			r := float64(w[0]*share) - row.Height
			grad[0] += float64(r * share)
			grad[1] -= float64(r * w[0] * share / (w[1] + row.Hours))
			return r * r / 2
		}, optim.Settings{Start: []float64{1, 1}})
		engine.Collect(fit, "fit")
		return nil
	})
	r, err := engine.Run(context.Background(), job, struct{}{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Release()
	fits, err := engine.Rows[optim.Minimum](r, "fit")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("height = %.2f·t / (%.2f + t), mean loss %.3f (%s)\n", fits[0].Parameters[0], fits[0].Parameters[1], fits[0].Loss, fits[0].Reason)
	// Output: height = 10.62·t / (1.60 + t), mean loss 0.003 (gradient)
}
