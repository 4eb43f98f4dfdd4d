package operators

import (
	"context"
	"fmt"
	"math"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// choices describes two random choices of rows in one job, first and second, which must be
// independent: whether a row is in first must not affect whether it is in second. Rows of first
// are drawn from the dataset from that build gets. Rows of second are drawn from the same
// dataset or, if nested is set, from first.
type choices struct {
	name   string
	of     float64 // expected share of the rows of from that are in first
	share  float64 // expected share of the rows from which second is drawn that are in second
	nested bool
	build  func(b *engine.Builder, from *engine.Dataset) (first, second *engine.Dataset)
}

// half returns a sample of half of the rows.
func half(d *engine.Dataset, seed uint64) *engine.Dataset {
	return Sample(d, 0.5, SampleOptions{Seed: seed})
}

func same(d *engine.Dataset) *engine.Dataset {
	return Map(d, func(v oneNumber) oneNumber { return v })
}

type oneNumber struct {
	Value int64 `column:"value"`
}

var draws = []choices{
	{"sample of a sample", 0.5, 0.5, true, func(_ *engine.Builder, d *engine.Dataset) (*engine.Dataset, *engine.Dataset) {
		first := half(d, 0)
		return first, half(first, 0)
	}},
	{"sample of a sample by the same seed", 0.5, 0.5, true, func(_ *engine.Builder, d *engine.Dataset) (*engine.Dataset, *engine.Dataset) {
		first := half(d, 7)
		return first, half(first, 7)
	}},
	{"sample of a mapped sample by the same seed", 0.5, 0.5, true, func(_ *engine.Builder, d *engine.Dataset) (*engine.Dataset, *engine.Dataset) {
		first := half(d, 7)
		return first, half(same(first), 7)
	}},
	{"split of a part", 0.8, 0.25, true, func(_ *engine.Builder, d *engine.Dataset) (*engine.Dataset, *engine.Dataset) {
		train := Split(d, .8, .2)[0]
		return train, Split(train, .75, .25)[1]
	}},
	{"split of a part by the same seed", 0.2, 0.25, true, func(_ *engine.Builder, d *engine.Dataset) (*engine.Dataset, *engine.Dataset) {
		test := SplitWith(d, SplitOptions{Seed: 3}, .8, .2)[1]
		return test, SplitWith(test, SplitOptions{Seed: 3}, .75, .25)[1]
	}},
	{"sample of a part", 0.5, 0.5, true, func(_ *engine.Builder, d *engine.Dataset) (*engine.Dataset, *engine.Dataset) {
		first := Split(d, 1, 1)[0]
		return first, half(first, 0)
	}},
	{"split of a sample", 0.5, 0.5, true, func(_ *engine.Builder, d *engine.Dataset) (*engine.Dataset, *engine.Dataset) {
		first := half(d, 0)
		return first, Split(first, 1, 1)[0]
	}},
	{"two samples", 0.5, 0.5, false, func(_ *engine.Builder, d *engine.Dataset) (*engine.Dataset, *engine.Dataset) {
		return half(d, 0), half(d, 0)
	}},
	{"samples by two seeds", 0.5, 0.5, false, func(_ *engine.Builder, d *engine.Dataset) (*engine.Dataset, *engine.Dataset) {
		return half(d, 1), half(d, 2)
	}},
	{"two splits", 0.5, 0.5, false, func(_ *engine.Builder, d *engine.Dataset) (*engine.Dataset, *engine.Dataset) {
		return Split(d, 1, 1)[0], Split(d, 1, 1)[0]
	}},
	{"sample and split", 0.5, 0.5, false, func(_ *engine.Builder, d *engine.Dataset) (*engine.Dataset, *engine.Dataset) {
		return half(d, 0), Split(d, 1, 1)[0]
	}},
	{"samples of two datasets", 0.5, 0.5, false, func(_ *engine.Builder, d *engine.Dataset) (*engine.Dataset, *engine.Dataset) {
		return half(d, 0), half(Filter(d, func(oneNumber) bool { return true }), 0)
	}},
	{"samples of two filters by the same seed", 0.5, 0.5, false, func(_ *engine.Builder, d *engine.Dataset) (*engine.Dataset, *engine.Dataset) {
		all := func(oneNumber) bool { return true }
		return half(Filter(d, all), 4), half(Filter(d, all), 4)
	}},
	{"samples of two datasets by the same seed", 0.5, 0.5, false, func(_ *engine.Builder, d *engine.Dataset) (*engine.Dataset, *engine.Dataset) {
		return half(d, 4), half(Filter(d, func(oneNumber) bool { return true }), 4)
	}},
}

// chosen runs all choices in one job and returns, for each of them, the rows of first and
// second.
func chosen(t *testing.T, n int64, seed uint64, opts ...engine.Option) [][2]map[int64]bool {
	t.Helper()
	result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		from := Range(b, 0, n)
		for i, d := range draws {
			first, second := d.build(b, from)
			engine.Collect(first, fmt.Sprint(i, " first"))
			engine.Collect(second, fmt.Sprint(i, " second"))
		}
		return nil
	}), struct{}{}, append(opts, engine.Seed(seed))...)
	require.NoError(t, err)
	defer result.Release()
	out := make([][2]map[int64]bool, len(draws))
	for i := range draws {
		for k, name := range []string{"first", "second"} {
			recs, err := recordsOf(result, fmt.Sprint(i, " ", name))
			require.NoError(t, err)
			out[i][k] = map[int64]bool{}
			for _, rec := range recs {
				column := rec.Schema().FieldIndices("value")[0]
				for _, v := range rec.Column(column).(*array.Int64).Int64Values() {
					out[i][k][v] = true
				}
			}
		}
	}
	return out
}

// TestDrawsAreIndependent tests whether the two choices are independent, with few rows for many
// seeds and many rows for few seeds, by Pearson's chi-square test with one degree of freedom.
// It tests the 2×2 table of the two choices or, for nested choices, the share of second in
// first. For nested choices it also tests all seeds together: if each squared deviation of a
// count is divided by its variance, the sum over the seeds must be about the number of seeds.
func TestDrawsAreIndependent(t *testing.T) {
	// If choices are independent, the statistic is below this bound with probability 0.999994.
	// As the seeds are fixed, every run of the test computes the same statistics.
	const most = 20.5
	for _, size := range []struct {
		rows   int64
		shards int
		seeds  int
	}{{100, 64, fewRowsSeeds}, {20_000, 16, manyRowsSeeds}} {
		table := make([][2][2]float64, len(draws))
		spread := make([]float64, len(draws))
		for seed := range size.seeds {
			for i, got := range chosen(t, size.rows, uint64(seed), engine.Shards(size.shards), engine.Parallelism(1)) {
				d, both := draws[i], 0
				for v := range size.rows {
					row, column := 0, 0
					if got[0][v] {
						row = 1
					}
					if got[1][v] {
						column = 1
						both += row
					}
					table[i][row][column]++
				}
				require.True(t, !d.nested || both == len(got[1]), "%s: every row of second must be in first", d.name)
				if n := float64(len(got[0])); n > 0 {
					spread[i] += math.Pow(float64(both)-n*d.share, 2) / (n * d.share * (1 - d.share))
				}
			}
		}
		for i, d := range draws {
			name, c := fmt.Sprintf("%s, %d rows", d.name, size.rows), table[i]
			first := c[1][0] + c[1][1]
			total := first + c[0][0] + c[0][1]
			require.Less(t, math.Pow(first-total*d.of, 2)/(total*d.of*(1-d.of)), most, "%s: first has %v of %v rows; the share must be the expected one", name, first, total)
			require.Less(t, math.Pow(c[1][1]-first*d.share, 2)/(first*d.share*(1-d.share)), most, "%s: second has %v of the %v rows of first; the share must be the expected one", name, c[1][1], first)
			require.InDelta(t, size.seeds, spread[i], 5*math.Sqrt(2*float64(size.seeds)), "%s: the sum over the seeds of normalized squared deviations must be about the number of seeds", name)
			if d.nested {
				continue
			}
			second := c[0][1] + c[1][1]
			cross := c[0][0]*c[1][1] - c[0][1]*c[1][0]
			require.Less(t, cross*cross*total/(first*(total-first)*second*(total-second)), most, "%s: %v", name, c)
		}
	}
}

// TestDrawsKeepTheirPlace requires that a sample has the same rows if other operators are added
// to the job, and at another parallelism. With a seed, it must also have the same rows if the
// job has another Split of the same rows.
func TestDrawsKeepTheirPlace(t *testing.T) {
	of := func(p int, build func(b *engine.Builder) *engine.Dataset) string {
		return fmt.Sprint(outcome(t, build, engine.Parallelism(p), engine.Shards(8)))
	}
	alone := of(1, func(b *engine.Builder) *engine.Dataset { return Split(half(Range(b, 0, 500), 0), 1, 3)[0] })
	for _, p := range []int{1, 3, 8} {
		require.Equal(t, alone, of(p, func(b *engine.Builder) *engine.Dataset {
			other := Generate(b, 10, func(_ sharding.Random, i int64) oneNumber { return oneNumber{i} })
			engine.Collect(half(Split(other, 1, 1)[1], 0), "other")
			d := Range(b, 0, 500)
			engine.Collect(Count(d), "counted")
			kept := Select(half(d, 0), "value")
			engine.Collect(same(kept), "more")
			return Split(kept, 1, 3)[0]
		}))
	}
	d := func(b *engine.Builder) *engine.Dataset { return Range(b, 0, 500) }
	seeded := func(d *engine.Dataset) *engine.Dataset { return SplitWith(d, SplitOptions{Seed: 9}, 1, 3)[0] }
	want := of(1, func(b *engine.Builder) *engine.Dataset { return seeded(d(b)) })
	require.Equal(t, want, of(2, func(b *engine.Builder) *engine.Dataset {
		from := d(b)
		engine.Collect(Split(from, 1, 3)[0], "before")
		engine.Collect(seeded(from), "same")
		return seeded(same(from))
	}))
	require.NotEqual(t, want, of(1, func(b *engine.Builder) *engine.Dataset { return Split(d(b), 1, 3)[0] }))
	require.NotEqual(t, want, of(1, func(b *engine.Builder) *engine.Dataset {
		return SplitWith(d(b), SplitOptions{Seed: 8}, 1, 3)[0]
	}))
}
