package forest

import (
	"math"
	"testing"
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
