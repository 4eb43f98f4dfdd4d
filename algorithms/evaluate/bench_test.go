package evaluate_test

import (
	"context"
	"testing"

	"github.com/superstep-ml/superstep/algorithms/evaluate"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
	"github.com/superstep-ml/superstep/shared/sharding"
)

const benchRows = 1_000_000

func benchData() (truth []int64, score, weight []float64) {
	r := sharding.NewRandom(1, "bench", 0, 0)
	truth, score, weight = make([]int64, benchRows), make([]float64, benchRows), make([]float64, benchRows)
	for i := range truth {
		score[i] = r.Float64()
		if r.Float64() < score[i] {
			truth[i] = 1
		}
		weight[i] = r.Float64()
	}
	return truth, score, weight
}

func BenchmarkMeasureBinary(b *testing.B) {
	truth, score, weight := benchData()
	for name, w := range map[string][]float64{"plain": nil, "weighted": weight} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				must(evaluate.MeasureBinary(truth, score, w, evaluate.BinaryOptions{}))
			}
		})
	}
}

func BenchmarkBinary(b *testing.B) {
	rows := scoredRows(benchData())
	job := engine.Define("bench", func(b *engine.Builder, _ struct{}) error {
		engine.Collect(evaluate.Binary(operators.FromSlice(b, rows), binaryCols), "report")
		return nil
	})
	for b.Loop() {
		r, err := engine.Run(context.Background(), job, struct{}{})
		if err != nil {
			b.Fatal(err)
		}
		r.Release()
	}
}

func BenchmarkMeasureRegression(b *testing.B) {
	_, label, guess := benchData()
	for b.Loop() {
		must(evaluate.MeasureRegression(label, guess, nil, evaluate.RegressionOptions{NoMedian: true}))
	}
}

func BenchmarkMeasureClustering(b *testing.B) {
	const n, d, k = 100_000, 16, 10
	r := sharding.NewRandom(1, "bench", 0, 0)
	x, c := make([][]float64, n), make([]int, n)
	for i := range x {
		c[i] = r.IntN(k)
		for range d {
			x[i] = append(x[i], r.Float64()+float64(c[i]))
		}
	}
	for b.Loop() {
		must(evaluate.MeasureClustering(c, x, []int(nil), nil, evaluate.ClusteringOptions{}))
	}
}
