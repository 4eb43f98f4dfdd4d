package kernel

import (
	"math/rand/v2"
	"testing"
)

// forms has all forms that this processor can run, for benchmarks that compare them.
var forms = func() (list []namedForm) {
	for i, form := range append([]dispatch{{}}, assembled...) {
		list = append(list, namedForm{[]string{"go", "avx2", "avx512"}[i], form})
	}
	return list
}()

type namedForm struct {
	name string
	k    dispatch
}

// benchForms runs a loop in all forms and reports the bytes read and the floating-point
// operations per second.
func benchForms(b *testing.B, name string, bytes, flops int, run func(k dispatch)) {
	for _, f := range forms {
		b.Run(name+"/"+f.name, func(b *testing.B) {
			b.SetBytes(int64(bytes))
			for b.Loop() {
				run(f.k)
			}
			b.ReportMetric(float64(flops)*float64(b.N)/float64(b.Elapsed().Nanoseconds()), "GFlop/s")
		})
	}
}

func benchRows[T Float](b *testing.B, element string, size, n, d int) {
	rng := rand.New(rand.NewPCG(45, 46))
	x, w := mixed[T](rng, n*d, 0, 0), mixed[T](rng, d, 0, 0)
	coef, out := mixed[T](rng, n, 0, 0), make([]T, n)
	bytes, flops := n*d*size, 2*n*d
	benchForms(b, "DotRows/"+element, bytes, flops, func(k dispatch) { dotRows(k, x, n, d, w, out) })
	benchForms(b, "RowNorms/"+element, bytes, flops, func(k dispatch) { rowNorms(k, x, d, out) })
	benchForms(b, "AddScaledRows/"+element, bytes, flops, func(k dispatch) { addScaledRows(k, x, n, d, coef, w) })
}

func BenchmarkRowForms(b *testing.B) {
	b.Run("cache", func(b *testing.B) {
		benchRows[float64](b, "float64", 8, 64, 50)
		benchRows[float32](b, "float32", 4, 128, 50)
	})
	b.Run("memory", func(b *testing.B) {
		benchRows[float64](b, "float64", 8, 200_000, 50)
		benchRows[float32](b, "float32", 4, 400_000, 50)
	})
	b.Run("wide", func(b *testing.B) {
		benchRows[float64](b, "float64", 8, 2000, 5000)
	})
}

func BenchmarkElementwiseForms(b *testing.B) {
	const n = 2000
	rng := rand.New(rand.NewPCG(47, 48))
	x, y := mixed[float64](rng, n, 0, 0), mixed[float64](rng, n, 0, 0)
	benchForms(b, "Axpy", 16*n, 2*n, func(k dispatch) { axpy(k, 1e-9, x, y) })
	benchForms(b, "Scale", 8*n, n, func(k dispatch) { scaleBy(k, 1.0000001, y) })
	benchForms(b, "AddTo", 16*n, n, func(k dispatch) { addTo(k, y, x) })
	x32, y32 := mixed[float32](rng, n, 0, 0), mixed[float32](rng, n, 0, 0)
	benchForms(b, "Axpy32", 8*n, 2*n, func(k dispatch) { axpy(k, 1e-9, x32, y32) })
}
