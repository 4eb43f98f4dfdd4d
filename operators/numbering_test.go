package operators

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// even keeps some of the rows, such that rows are missing within shards and some shards are
// empty.
func even(v struct{ Value int64 }) bool { return v.Value%2 == 0 && (v.Value < 30 || v.Value > 60) }

// isEven reports whether even keeps row i.
func isEven(i int) bool { return even(struct{ Value int64 }{int64(i)}) }

func evens(b *engine.Builder, n int) *engine.Dataset { return Filter(Range(b, 0, int64(n)), even) }

func TestCount(t *testing.T) {
	for _, n := range sizes {
		want := 0
		for i := range n {
			if isEven(i) {
				want++
			}
		}
		requireRows(t, "count int64", []string{line(testShards-1, want)}, func(b *engine.Builder) *engine.Dataset {
			return Count(evens(b, n))
		})
	}
	requirePoisonSpreads(t, Count)
	requireNilDataset(t, Count)
}

func TestFirst(t *testing.T) {
	for _, n := range sizes {
		for _, k := range []int{0, 1, 13, 1000} {
			var want []string
			for i := range n {
				if isEven(i) && len(want) < k {
					want = append(want, line(place(i, n), i))
				}
			}
			requireRows(t, "value int64", want, func(b *engine.Builder) *engine.Dataset {
				return First(evens(b, n), int64(k))
			})
		}
	}
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return First(Range(b, 0, 3), -1)
	}, "First: -1 rows: want at least 0")
	operator := func(d *engine.Dataset) *engine.Dataset { return First(d, 1) }
	requirePoisonSpreads(t, operator)
	requireNilDataset(t, operator)
}

func TestZipWithIndex(t *testing.T) {
	for _, n := range sizes {
		var want []string
		for i := range n {
			if isEven(i) {
				want = append(want, line(place(i, n), i, len(want)))
			}
		}
		requireRows(t, "value int64 | index int64", want, func(b *engine.Builder) *engine.Dataset {
			return ZipWithIndex(evens(b, n), "index")
		})
	}
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return ZipWithIndex(Range(b, 0, 3), "value")
	}, `ZipWithIndex: column "value" exists already`)
	operator := func(d *engine.Dataset) *engine.Dataset { return ZipWithIndex(d, "index") }
	requirePoisonSpreads(t, operator)
	requireNilDataset(t, operator)
}

// purposeOf returns the purpose of the random numbers of the operator what on the rows of
// Range, with a seed. If own is set, it returns the purpose of the job's first such operator
// without a seed.
func purposeOf(t *testing.T, what string, own bool) string {
	t.Helper()
	var purpose string
	_, err := engine.BuildGraph(engine.Anonymous(func(b *engine.Builder) error {
		d := Range(b, 0, 1)
		if purpose = b.DrawPurpose(what, d); own {
			purpose = b.OwnDrawPurpose(what, d)
		}
		return nil
	}), struct{}{})
	require.NoError(t, err)
	return purpose
}

// draw returns the random number of row i of n rows in memory.
func draw(seed uint64, purpose string, i, n int) float64 {
	s := place(i, n)
	return sharding.NewRandom(seed, purpose, s, 0).Float64At(uint64(i - s*n/testShards))
}

func TestSample(t *testing.T) {
	purpose := purposeOf(t, "Sample 5", false)
	for _, n := range []int{0, 100, 2000} {
		for _, fraction := range map[int][]float64{0: {0.3}, 100: {0, 1}, 2000: {0.3}}[n] {
			var want []string
			for i := range n {
				if draw(0, purpose, i, n) < fraction {
					want = append(want, line(place(i, n), i))
				}
			}
			if n == 2000 {
				// The tolerance is five standard deviations.
				require.InDelta(t, fraction*float64(n), len(want), 5*math.Sqrt(float64(n)*fraction*(1-fraction)))
			}
			requireRows(t, "value int64", want, func(b *engine.Builder) *engine.Dataset {
				return Sample(Range(b, 0, int64(n)), fraction, SampleOptions{Seed: 5})
			})
		}
	}
}

// TestSampleSeeds requires that a sample has different rows if the seed of the job or of the
// sample differs.
func TestSampleSeeds(t *testing.T) {
	of := func(job, sample uint64) string {
		return fmt.Sprint(outcome(t, func(b *engine.Builder) *engine.Dataset {
			return Sample(Range(b, 0, 100), 0.5, SampleOptions{Seed: sample})
		}, engine.Seed(job)))
	}
	require.Equal(t, of(0, 0), of(0, 0))
	require.NotEqual(t, of(0, 0), of(0, 1))
	require.NotEqual(t, of(0, 0), of(1, 0))
	require.NotEqual(t, of(0, 1), of(1, 0))
}

func TestSampleWithReplacement(t *testing.T) {
	purpose := purposeOf(t, "Sample", true)
	for _, n := range sizes {
		for _, mean := range []float64{0, 0.7, 40} {
			var want []string
			for i := range n {
				// By definition, k is the smallest number with P(X <= k) > u.
				u, p, k := draw(9, purpose, i, n), math.Exp(-mean), 0
				for sum := p; u >= sum; sum += p {
					k++
					p *= mean / float64(k)
				}
				for range k {
					want = append(want, line(place(i, n), i))
				}
			}
			build := func(b *engine.Builder) *engine.Dataset {
				return Sample(Range(b, 0, int64(n)), mean, SampleOptions{Replacement: true})
			}
			forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
				got := outcome(t, build, append(opts, engine.Seed(9))...)
				require.Equal(t, append([]string{"shard int64 | value int64"}, want...), got)
			})
		}
	}
}

// TestSampleBoundsBatches draws so many copies of each row of a large batch that the copies
// must be emitted in several batches.
func TestSampleBoundsBatches(t *testing.T) {
	result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		engine.Collect(Sample(Range(b, 0, 1000), 200, SampleOptions{Replacement: true}), "out")
		return nil
	}), struct{}{}, engine.Shards(1), engine.Allocator(batchtest.Allocator(t)))
	require.NoError(t, err)
	defer result.Release()
	recs, err := recordsOf(result, "out")
	require.NoError(t, err)
	require.Greater(t, len(recs), 1)
	for _, rec := range recs {
		require.Less(t, rec.NumRows(), int64(maxCopies+1000))
	}
}

// TestPoissonBounds compares the distribution function with the textbook formula, in which the
// logarithm of a probability is computed by the gamma function.
func TestPoissonBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lambda := rapid.Float64Range(0, maxSampleFraction).Draw(t, "lambda")
		bounds := poissonBounds(lambda)
		require.Equal(t, 1.0, bounds[len(bounds)-1])
		sum := 0.0
		for k, bound := range bounds {
			factorial, _ := math.Lgamma(float64(k + 1))
			if lambda == 0 {
				sum = 1
			} else {
				sum += math.Exp(float64(k)*math.Log(lambda) - lambda - factorial)
			}
			require.InDelta(t, sum, bound, 1e-10)
		}
	})
}

func TestSampleMisuse(t *testing.T) {
	for _, fraction := range []float64{-0.1, 1.1, math.NaN(), math.Inf(1)} {
		requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
			return Sample(Range(b, 0, 3), fraction, SampleOptions{})
		}, fmt.Sprintf("Sample: a fraction of %v: want 0 to 1", fraction))
	}
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Sample(Range(b, 0, 3), 1001, SampleOptions{Replacement: true})
	}, "Sample: a fraction of 1001: want 0 to 1000")
	operator := func(d *engine.Dataset) *engine.Dataset { return Sample(d, 0.5, SampleOptions{}) }
	requirePoisonSpreads(t, operator)
	requireNilDataset(t, operator)
}

// TestSplit requires that each row is in exactly one part, which the random number of the row
// determines.
func TestSplit(t *testing.T) {
	purpose := purposeOf(t, "Split", true)
	for _, n := range []int{0, 2000} {
		weights := []float64{3, 1, 0.5, 0.5}
		want := make([][]string, len(weights))
		for i := range n {
			u, part := draw(0, purpose, i, n), 0
			for _, bound := range []float64{0.6, 0.8, 0.9} {
				if u >= bound {
					part++
				}
			}
			want[part] = append(want[part], line(place(i, n), i))
		}
		for k := range weights {
			if n == 2000 {
				require.InDelta(t, weights[k]*2000/5, len(want[k]), 5*math.Sqrt(500))
			}
			requireRows(t, "value int64", want[k], func(b *engine.Builder) *engine.Dataset {
				return Split(Range(b, 0, int64(n)), weights...)[k]
			})
		}
	}
}

func TestSplitBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		weights := rapid.SliceOfN(rapid.Float64Range(1e-300, 1e300), 1, 20).Draw(t, "weights")
		bounds, ok := splitBounds(nil, weights)
		require.True(t, ok)
		require.Equal(t, 0.0, bounds[0])
		require.Equal(t, 1.0, bounds[len(weights)])
		for k := range weights {
			require.LessOrEqual(t, bounds[k], bounds[k+1])
		}
	})
}

func TestSplitMisuse(t *testing.T) {
	for _, w := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
			return Split(Range(b, 0, 3), 1, w)[1]
		}, fmt.Sprintf("Split: weight 2 is %v; want a positive number", w))
	}
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		return Split(Range(b, 0, 3), math.MaxFloat64, math.MaxFloat64)[1]
	}, "Split: the sum of the weights is not finite")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset {
		require.Empty(t, Split(Range(b, 0, 3)))
		return nil
	}, "Split: no weight is given")
	operator := func(d *engine.Dataset) *engine.Dataset { return Split(d, 1, 2)[1] }
	requirePoisonSpreads(t, operator)
	requireNilDataset(t, operator)
}

func TestRange(t *testing.T) {
	for _, c := range []struct{ lo, hi int64 }{{0, 0}, {-2, 1}, {5, 105}, {math.MaxInt64 - 3, math.MaxInt64}, {math.MinInt64, math.MinInt64 + 9}} {
		n := int(c.hi - c.lo)
		var want []string
		for i := range n {
			want = append(want, line(place(i, n), c.lo+int64(i)))
		}
		requireRows(t, "value int64", want, func(b *engine.Builder) *engine.Dataset {
			return Range(b, c.lo, c.hi)
		})
	}
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return Range(b, 3, 2) }, "Range: from 3 up to 2")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return Range(b, math.MinInt64, 0) }, "at most 9223372036854775807 numbers")
	requireMisuse(t, func(*engine.Builder) *engine.Dataset { return Range(nil, 0, 1) }, "the builder is nil")
}

type drawn struct {
	I    int64
	A, B float64
}

func twoDraws(draws sharding.Random, i int64) drawn {
	return drawn{i, draws.Float64(), draws.NormFloat64()}
}

// TestGenerate requires that the random numbers of a row depend on how many datasets the job
// made by Generate before, and on nothing else in the job.
func TestGenerate(t *testing.T) {
	for _, n := range sizes {
		var first, second []string
		for i := range n {
			for purpose, to := range map[string]*[]string{"Generate #0": &first, "Generate #1": &second} {
				r := sharding.NewRandom(0, purpose, -1, i)
				*to = append(*to, line(place(i, n), i, r.Float64(), r.NormFloat64()))
			}
		}
		for _, name := range []string{"", "points"} {
			requireRows(t, "i int64 | a float64 | b float64", first, func(b *engine.Builder) *engine.Dataset {
				Range(b, 0, 1)
				return Generate(b, int64(n), twoDraws).Named(name)
			})
			requireRows(t, "i int64 | a float64 | b float64", second, func(b *engine.Builder) *engine.Dataset {
				Generate(b, 1, twoDraws).Named(name)
				return Generate(b, int64(n), twoDraws).Named(name)
			})
		}
	}
}

// TestGenerateKeepsRowsAcrossShards requires that Generate makes the same rows for different
// numbers of shards, although their shards differ.
func TestGenerateKeepsRowsAcrossShards(t *testing.T) {
	rows := func(shards int) []string {
		lines := outcome(t, func(b *engine.Builder) *engine.Dataset {
			return Generate(b, 50, twoDraws).Named("points")
		}, engine.Shards(shards), engine.Allocator(batchtest.Allocator(t)))
		for i, l := range lines {
			_, lines[i], _ = cutShard(l)
		}
		return lines
	}
	require.Equal(t, rows(1), rows(64))
}

func TestGenerateMisuse(t *testing.T) {
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return Generate(b, -1, twoDraws) }, "Generate: -1 rows")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return Generate(b, 1<<41, twoDraws) }, "Generate: 2199023255552 rows: want 0 to 1099511627776")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return Generate[drawn](b, 1, nil) }, "Generate: the function is nil")
	requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return Generate(nil, 1, twoDraws) }, "the builder is nil")
	err := runError(t, func(b *engine.Builder) *engine.Dataset {
		return Generate(b, 100, func(_ sharding.Random, i int64) []float64 {
			if i == 42 {
				panic("user code gave up")
			}
			return nil
		})
	})
	require.ErrorContains(t, err, "shard 3: panic: user code gave up")
}
