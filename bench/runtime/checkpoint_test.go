package runtime

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/superstep-ml/superstep/algorithms/gbdt"
	"github.com/superstep-ml/superstep/algorithms/kmeans"
	"github.com/superstep-ml/superstep/algorithms/logistic"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// labelled is a row of the trainings.
type labelled struct {
	X     [16]float64
	Label bool
}

// drawn adds n rows with a noisy label.
func drawn(b *engine.Builder, n int) *engine.Dataset {
	return operators.FromShards(b, func(shard, shards int, emit func(labelled)) error {
		r := sharding.NewRandom(1, "rows", shard, 0)
		for i := range n / shards {
			var row labelled
			sum := 0.0
			for k := range row.X {
				row.X[k] = r.Float64At(uint64(17*i+k)) - 0.5
				sum += float64(row.X[k] * float64(k%5-2))
			}
			row.Label = sum+r.Float64At(uint64(17*i+16))-0.5 > 0
			emit(row)
		}
		return nil
	})
}

// BenchmarkCheckpoints compares the time of the supersteps of trainings that write a checkpoint
// every second with the time without checkpoints. The runs alternate. The default interval is 30
// times as long.
func BenchmarkCheckpoints(b *testing.B) {
	for name, train := range map[string]func(rows *engine.Dataset) *engine.Dataset{
		"kmeans": func(rows *engine.Dataset) *engine.Dataset {
			return kmeans.Train(rows, kmeans.Params{VectorCol: "x", K: 20, MaxIter: 300, Tol: -1})
		},
		"logistic": func(rows *engine.Dataset) *engine.Dataset {
			return logistic.Train(rows, logistic.Params{VectorCol: "x", LabelCol: "label", MaxIter: 400, Tol: -1})
		},
		"trees": func(rows *engine.Dataset) *engine.Dataset {
			return gbdt.Train(rows, gbdt.Params{VectorCol: "x", LabelCol: "label", Objective: gbdt.Logistic, NumTrees: 300})
		},
	} {
		job := engine.Define("bench", func(eb *engine.Builder, _ struct{}) error {
			engine.Collect(train(drawn(eb, 400_000)), "model")
			return nil
		})
		b.Run(name, func(b *testing.B) {
			run := func(options ...engine.Option) (elapsed time.Duration) {
				result, err := engine.Run(context.Background(), job, struct{}{}, append(options, engine.Parallelism(2))...)
				if err != nil {
					b.Fatal(err)
				}
				defer result.Release()
				for _, q := range result.Report.Queues {
					elapsed += q.Elapsed
				}
				return elapsed
			}
			var without, with []time.Duration
			var ratios []float64
			for b.Loop() {
				plain := run()
				saved := run(engine.CheckpointDir(filepath.Join(b.TempDir(), "checkpoints")), engine.CheckpointEvery(time.Second))
				without, with = append(without, plain), append(with, saved)
				ratios = append(ratios, float64(saved)/float64(plain))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(median(without).Seconds(), "s/without")
			b.ReportMetric(median(with).Seconds(), "s/with")
			b.ReportMetric(median(ratios), "ratio")
		})
	}
}
