package forest

import (
	"math"
	"testing"

	"github.com/superstep-ml/superstep/algorithms/internal/trial"
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// generated returns rows of standard normal features and a class that depends on six of
// them, not without noise.
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

// BenchmarkTree grows trees of 100,000 rows and 28 features, of two classes.
func BenchmarkTree(b *testing.B) {
	x, label := generated(100_000, 28)
	t := quantiles(x, 100_000, 28, label, 2)
	p := Params{Task: Classification}.withDefaults(1)
	r, _ := p.rules(28)
	grower := newBuilder(t, r, newSampler(p))
	b.ResetTimer()
	nodes := 0
	for i := range b.N {
		nodes += len(grower.grow(i).Nodes)
	}
	b.ReportMetric(float64(nodes)/float64(b.N), "nodes")
}

// BenchmarkTrain trains 100 trees on 100,000 rows of 28 features, from the rows of a job to
// the model.
func BenchmarkTrain(b *testing.B) {
	x, label := generated(100_000, 28)
	t := trial.Table{N: 100_000, D: 28, X: make([]float64, len(x)), Label: label}
	for i, v := range x {
		t.X[i] = float64(v)
	}
	for b.Loop() {
		r := trial.Run(b, func(b *engine.Builder) {
			operators.Collect(b, "model", Train(t.Dataset(b), Params{LabelCol: "label", Task: Classification}))
		}, engine.Parallelism(1))
		m, err := ModelOf(r, "model")
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(m.Summary.Nodes)/100, "nodes/tree")
	}
}
