package forest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/algorithms/model"
	"github.com/superstep-ml/superstep/algorithms/tree"
	"github.com/superstep-ml/superstep/engine"
)

// generated returns n rows of d standard normal features, and a class for each row that depends
// on six of the features and on noise.
func generated(n, d int) (x []float32, label []float64) {
	r := draws(1)
	x, label = make([]float32, n*d), make([]float64, n)
	for i := range label {
		row := x[i*d : (i+1)*d]
		for j := range row {
			row[j] = float32(r.NormFloat64())
		}
		z := float64(row[0]*row[1]) + math.Sin(2*float64(row[2])) + float64(row[3]*row[3])/2 - 0.5 + r.NormFloat64()
		if row[5] > 0 {
			z += float64(row[4]) / 2
		}
		if z > 0 {
			label[i] = 1
		}
	}
	return x, label
}

// BenchmarkTree grows trees on 100,000 rows of 28 features and two classes.
func BenchmarkTree(b *testing.B) {
	x, label := generated(100_000, 28)
	t := quantiles(x, 100_000, 28, label, 2)
	p := Params{Task: Classification}.withDefaults(1)
	r, _ := p.rules(28)
	grower := newBuilder(t, r, newSampler(p))
	b.ResetTimer()
	nodes := 0
	for i := range b.N {
		nodes += len(grower.grow(context.Background(), i).Nodes)
	}
	b.ReportMetric(float64(nodes)/float64(b.N), "nodes")
}

// BenchmarkTrain trains 100 trees on 100,000 rows of 28 features, including everything from the
// job's rows to the model.
func BenchmarkTrain(b *testing.B) {
	x, label := generated(100_000, 28)
	t := trial.Table{N: 100_000, D: 28, X: make([]float64, len(x)), Label: label}
	for i, v := range x {
		t.X[i] = float64(v)
	}
	for _, task := range []Task{Classification, Regression} {
		p := Params{LabelCol: "label", Task: task, NumTrees: 100}
		if task == Regression { // the labels are distinct numbers
			t.Label = make([]float64, t.N)
			r := draws(2)
			for i := range t.Label {
				t.Label[i] = label[i] + r.NormFloat64()
			}
		}
		for _, parallelism := range []int{1, 2} {
			b.Run(fmt.Sprintf("%v/%d", task, parallelism), func(b *testing.B) {
				for b.Loop() {
					r := trial.Run(b, func(b *engine.Builder) {
						engine.Collect(Train(t.Dataset(b), p), "model")
					}, engine.Parallelism(parallelism))
					if _, err := model.Encoded(r, "model"); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// BenchmarkMemory trains 10 trees on the same rows with two subtasks, once with a copy of all
// rows on each subtask and once without.
func BenchmarkMemory(b *testing.B) {
	x, label := generated(100_000, 28)
	t := trial.Table{N: 100_000, D: 28, X: make([]float64, len(x)), Label: label}
	for i, v := range x {
		t.X[i] = float64(v)
	}
	for _, memory := range []int64{1 << 30, 4 << 20, 1 << 20} {
		b.Run(fmt.Sprintf("%d KiB", memory>>10), func(b *testing.B) {
			for b.Loop() {
				trial.Run(b, func(b *engine.Builder) {
					engine.Collect(Train(t.Dataset(b), Params{LabelCol: "label", Task: Classification, NumTrees: 10, Memory: memory}), "model")
				}, engine.Parallelism(2))
			}
		})
	}
}

// BenchmarkPredict predicts single rows with 100 trees.
func BenchmarkPredict(b *testing.B) {
	x, label := generated(100_000, 28)
	t := quantiles(x, 100_000, 28, label, 2)
	p := Params{Task: Classification}.withDefaults(1)
	r, _ := p.rules(28)
	grower := newBuilder(t, r, newSampler(p))
	m := &Model{Task: Classification, Classes: Classes{Values: []string{"0", "1"}}, Dim: 28, Trees: &tree.Ensemble{Features: make([]string, 28), Outputs: 2, Base: make([]float64, 2), Average: true, Single: true}}
	for i := range 100 {
		t := grower.grow(context.Background(), i)
		t.Nodes, t.Values = slices.Clone(t.Nodes), slices.Clone(t.Values)
		m.Trees.Trees = append(m.Trees.Trees, t)
	}
	row, out := make([]float64, 28), make([]float64, 2)
	i := 0
	for b.Loop() {
		for j := range row {
			row[j] = float64(x[i*28+j])
		}
		m.PredictProbability(row, out)
		i = (i + 1) % 100_000
	}
}
