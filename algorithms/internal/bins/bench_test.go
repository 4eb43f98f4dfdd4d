package bins

import (
	"fmt"
	"testing"

	"github.com/superstep-ml/superstep/shared/sharding"
)

// gaussian returns n×d numbers whose distribution is close to normal. Each is a sum of uniform
// numbers.
func gaussian(n, d int) []float64 {
	x := make([]float64, n*d)
	r := sharding.NewRandom(3, "bench", 0, 0)
	for i := range x {
		x[i] = r.Float64() + r.Float64() + r.Float64() - 1.5
	}
	return x
}

// BenchmarkCuts measures the search for the cuts of a million rows of 28 features.
func BenchmarkCuts(b *testing.B) {
	const n, d = 1_000_000, 28
	x := gaussian(n, d)
	p := &plan{kind: denseRows, dim: d, options: Options{MaxBins: MaxBins}, vector: -1, weightAt: -1}
	byFeature := make([]float32, n*d)
	for i := 0; i < n; i += tile {
		transposeTile(x[i*d:], min(tile, n-i), d, byFeature[i:], n)
	}
	weight := make([]float64, n)
	for i := range weight {
		weight[i] = x[i] * x[i]
	}
	for _, c := range []struct {
		name string
		part packed
	}{
		{"rows", packed{n: n, d: d, raw: x}},
		{"columns", packed{n: n, d: d, values: byFeature}},
		{"weighted", packed{n: n, d: d, raw: x, weight: weight}},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				q := *p
				if c.part.weight != nil {
					q.weightAt = 0
				}
				f := &finder{plan: &q, features: q.list(d, nil), parts: []packed{c.part}, rows: n}
				f.prepare(shardStats{Rows: n, MaxWeight: 2.25}, 1)
				f.alone()
			}
		})
	}
}

// BenchmarkBins measures the binning of a million rows of 28 features.
func BenchmarkBins(b *testing.B) {
	const n, d = 1_000_000, 28
	x := gaussian(n, d)
	made := Dense(x, n, d, Options{})
	p := &plan{kind: denseRows, dim: d, vector: -1, weightAt: -1}
	byFeature := make([]float32, n*d)
	for i := 0; i < n; i += tile {
		transposeTile(x[i*d:], min(tile, n-i), d, byFeature[i:], n)
	}
	for _, part := range []packed{{n: n, d: d, raw: x}, {n: n, d: d, values: byFeature}} {
		b.Run(fmt.Sprintf("raw=%t", part.raw != nil), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				data := Data{Layout: made.Layout, Rows: n, Shards: made.Shards}
				data.bin(onHeap, p, []packed{part})
			}
		})
	}
}

// BenchmarkSort measures sorting of a million keys.
func BenchmarkSort(b *testing.B) {
	x := gaussian(1_000_000, 1)
	keys, spare := make([]uint32, len(x)), make([]uint32, len(x))
	for b.Loop() {
		for i, v := range x {
			keys[i] = keyOf(Single(v))
		}
		keys, spare = sortKeys(keys, spare)
	}
}
