package tree

import (
	"math/rand/v2"
	"testing"
)

func BenchmarkDense(b *testing.B) {
	for name, s := range map[string]shape{
		"depth6":    {features: 28, outputs: 1, trees: 100, leaves: 64, cuts: 40, single: true},
		"leaves255": {features: 28, outputs: 1, trees: 100, leaves: 255, cuts: 40, single: true},
		"double":    {features: 28, outputs: 1, trees: 100, leaves: 64, cuts: 40},
		"forest":    {features: 28, outputs: 1, trees: 20, leaves: 20000, cuts: 40},
	} {
		e := random(1, s)
		if name == "depth6" || name == "double" {
			e = full(1, s, 6)
		}
		sc := e.Scorer()
		r := rand.New(rand.NewPCG(1, 2))
		const n = 10000
		x := make([]float32, n*s.features)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		out := make([]float64, n)
		b.Run(name, func(b *testing.B) {
			for range b.N {
				sc.Dense32(x, n, out, 1)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n/float64(s.trees), "ns/row/tree")
		})
	}
}

// full makes an ensemble of complete trees.
func full(seed uint64, s shape, depth int) *Ensemble {
	r := rand.New(rand.NewPCG(seed, 1))
	e := random(seed, shape{features: s.features, outputs: s.outputs, single: s.single, cuts: s.cuts})
	for range s.trees {
		t := Tree{Weight: 1, Nodes: []Node{{Cover: 1000}}}
		for i := range 1<<depth - 1 {
			s.split(r, &t, int32(i))
		}
		e.Trees = append(e.Trees, t)
	}
	return e
}
