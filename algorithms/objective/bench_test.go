package objective_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/algorithms/internal/rows"
	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/objective"
	"github.com/superstep-ml/superstep/algorithms/optim"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/kernel"
	"github.com/superstep-ml/superstep/operators/arrowbridge"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// benchTable returns n rows of d features with two classes that a hyperplane nearly separates.
// If entries is above 0, the rows are sparse with that many entries each.
func benchTable(n, d, entries int) trial.Table {
	table := trial.Table{N: n, D: d, Sparse: entries > 0, Label: make([]float64, n)}
	table.X = make([]float64, n*d)
	r := sharding.NewRandom(3, "bench", 0, 0)
	for i := range n {
		row := table.Row(i)
		var m float64
		if entries == 0 {
			for j := range row {
				row[j] = (0.1 + 2.9*float64(j)/float64(d)) * (2*r.Float64() - 1)
				m += row[j]
			}
		}
		for range entries {
			j := r.IntN(d)
			row[j] = r.Float64()
			m += row[j] * float64(j%5-2)
		}
		if m > 0 {
			table.Label[i] = 1
		}
	}
	return table
}

func BenchmarkPass(b *testing.B) {
	shapes := []struct{ n, d, entries int }{{100_000, 50, 0}, {20_000, 2_000, 50}}
	for _, at := range shapes {
		table := benchTable(at.n, at.d, at.entries)
		bytes := int64(8 * at.n * at.d)
		if at.entries > 0 {
			bytes = int64(12 * at.n * at.entries)
		}
		for _, l := range []objective.Loss{objective.Squared{}, objective.Logistic{}} {
			with(b, table, objective.Linear{Loss: l}, func(o opened) {
				n := o.e.Dim
				v, out := make([]float64, n), make([]float64, 1+n)
				full := out
				if at.d < 100 {
					full = make([]float64, 1+n+n*(n+1)/2)
				}
				for i := range v {
					v[i] = 0.1 * math.Sin(float64(i))
				}
				run := func(name string, pass func(shard int) error) {
					b.Run(fmt.Sprintf("%s/%v/%d×%d", name, l, at.n, at.d), func(b *testing.B) {
						b.SetBytes(bytes)
						b.ReportAllocs()
						for b.Loop() {
							if err := o.ctx.ForShards(pass); err != nil {
								b.Fatal(err)
							}
						}
					})
				}
				_ = o.ctx.ForShards(func(shard int) error { return o.e.Margins.Start(shard, v, out) })
				run("Evaluate", func(shard int) error { clear(out); return o.e.Evaluate(shard, v, out) })
				run("Along", func(shard int) error { clear(out); return o.e.Margins.Direction(shard, v, 1, out) })
				run("Trials1", func(shard int) error { clear(out); return o.e.Margins.Trials(shard, []float64{0.5}, out) })
				if at.d < 100 {
					run("Hessian", func(shard int) error { clear(full); return o.e.Hessian(shard, v, full) })
				}
			})
		}
		if at.entries > 0 {
			continue
		}
		b.Run("kernels alone", func(b *testing.B) {
			b.SetBytes(bytes)
			w, m, g := make([]float64, at.d), make([]float64, 64), make([]float64, at.d)
			for b.Loop() {
				for lo := 0; lo+64 <= at.n; lo += 64 {
					x := table.X[lo*at.d : (lo+64)*at.d]
					kernel.DotRows(x, 64, at.d, w, m)
					kernel.AddScaledRows(x, 64, at.d, m, g)
				}
			}
		})
		b.Run("sum of the features", func(b *testing.B) {
			b.SetBytes(bytes)
			var total float64
			for b.Loop() {
				for lo := 0; lo+4 <= len(table.X); lo += 32 {
					total += table.X[lo]
				}
			}
			_ = total
		})
	}
}

// BenchmarkTraining measures a training on two subtasks: checking the rows, computing the
// facts, and minimising the objective. The facts and the minimisation are also timed
// separately. All times are times of the fastest run.
func BenchmarkTraining(b *testing.B) {
	for _, at := range []struct {
		n, d, entries int
		settings      optim.Settings
	}{
		{500_000, 50, 0, optim.Settings{Method: optim.Newton, L2: 1e-6}},
		{500_000, 50, 0, optim.Settings{Method: optim.LBFGS, L2: 1e-6}},
		{20_000, 10_000, 50, optim.Settings{Method: optim.LBFGS, L2: 1e-5}},
	} {
		record := benchTable(at.n, at.d, at.entries).Record()
		data := func(b *engine.Builder) *engine.Dataset { return arrowbridge.FromRecords(b, []arrow.Record{record}) }
		b.Run(fmt.Sprintf("%d×%d/method %d", at.n, at.d, at.settings.Method), func(b *testing.B) {
			best := [2]float64{math.Inf(1), math.Inf(1)}
			for b.Loop() {
				f, r := fitOf(b, data, rows.Columns{Vector: "features", Label: "label"}, objective.Linear{Loss: objective.Logistic{}}, at.settings,
					engine.Parallelism(2), engine.Shards(128), engine.CheckBroadcasts(false))
				b.ReportMetric(float64(f.Iterations), "iterations")
				b.ReportMetric(f.Reads, "reads")
				for i, queue := range []string{"test facts", "fit"} {
					best[i] = min(best[i], r.Queue(queue).Elapsed.Seconds())
				}
			}
			b.ReportMetric(1000*best[0], "ms-facts")
			b.ReportMetric(1000*best[1], "ms-fit")
		})
	}
}
