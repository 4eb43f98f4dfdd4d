package tree

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
)

// full returns a random ensemble of complete trees of the given depth.
func full(seed uint64, s shape, depth int) *Ensemble {
	r := rand.New(rand.NewPCG(seed, 1))
	trees := s.trees
	s.trees = 0
	e := random(seed, s)
	for range trees {
		t := Tree{Weight: 1, Nodes: []Node{{Cover: 1000}}}
		for i := range 1<<depth - 1 {
			s.split(r, &t, int32(i))
		}
		e.Trees = append(e.Trees, t)
	}
	return e
}

// benchShapes returns typical ensembles: boosted trees that were grown by levels and by leaves,
// trees with categories, and the deep trees of forests.
func benchShapes() map[string]*Ensemble {
	s := shape{features: 28, outputs: 1, trees: 100, leaves: 255, cuts: 40, single: true}
	sets, forest, double := s, s, s
	sets.categorical, double.single = true, false
	forest.leaves, forest.trees = 20000, 20
	return map[string]*Ensemble{
		"depth6": full(1, s, 6), "double": full(1, double, 6), "leaves255": random(1, s), "sets": full(1, sets, 6), "forest": random(1, forest),
	}
}

// benchRows returns n rows of d normally distributed values.
func benchRows(n, d int) []float64 {
	r := rand.New(rand.NewPCG(1, 2))
	x := make([]float64, n*d)
	for i := range x {
		x[i] = r.NormFloat64()
	}
	return x
}

// perTree reports the time per row and tree as a metric of the benchmark.
func perTree(b *testing.B, e *Ensemble, rows int) {
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows)/float64(len(e.Trees)), "ns/row/tree")
}

func BenchmarkDense(b *testing.B) {
	const n = 1 << 13
	for name, e := range benchShapes() {
		b.Run(name, func(b *testing.B) {
			s, x, out := e.Scorer(), benchRows(n, len(e.Features)), make([]float64, n)
			for b.Loop() {
				s.Dense(x, n, out, 1)
			}
			perTree(b, e, n)
		})
	}
}

func BenchmarkOneRow(b *testing.B) {
	const n = 1 << 10
	for name, e := range benchShapes() {
		b.Run(name, func(b *testing.B) {
			d := len(e.Features)
			s, x, out := e.Scorer(), benchRows(n, d), make([]float64, 1)
			for b.Loop() {
				for i := range n {
					s.Scores(x[i*d:(i+1)*d], out)
				}
			}
			perTree(b, e, n)
		})
	}
}

func BenchmarkValues(b *testing.B) {
	const n = 50
	for _, name := range []string{"depth6", "leaves255"} {
		e := benchShapes()[name]
		x, err := e.Explainer(ExplainOptions{})
		if err != nil {
			b.Fatal(err)
		}
		d := len(e.Features)
		rows := benchRows(n, d)
		for what, f := range map[string]func(x *Explainer, out []float64){
			"values": func(x *Explainer, out []float64) { x.DenseValues(rows, n, out, 1) },
			"pairs":  func(x *Explainer, out []float64) { x.DenseInteractions(rows, n, out, 1) },
		} {
			b.Run(name+"/"+what, func(b *testing.B) {
				out := make([]float64, n*(d+1)*(d+1))
				for b.Loop() {
					f(x, out)
				}
				perTree(b, e, n)
			})
		}
	}
}

func BenchmarkJSON(b *testing.B) {
	e := benchShapes()["leaves255"]
	text, err := json.Marshal(e)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("write", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			if _, err := e.MarshalJSON(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("read", func(b *testing.B) {
		b.SetBytes(int64(len(text)))
		for b.Loop() {
			var back Ensemble
			if err := back.UnmarshalJSON(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
