package operators

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"slices"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/internal/testsize"
)

// sale is a row with key columns whose values repeat, and with numbers whose sum depends on the
// order of addition.
type sale struct {
	Shop  *string
	Kind  float64 // a key: ±0 and NaN are among its values
	Price *float64
	Small float32
	Byte  int8
	Big   uint64
	Count *int64
	Note  *string
	Raw   []byte
	Paid  bool
	At    time.Time
	Index int64
}

var saleKinds = []float64{0, math.Copysign(0, -1), 1, math.NaN(), -2.5}

// sales returns n rows. The sum of their prices depends on the order of addition.
func sales(n int) []sale {
	rows := make([]sale, n)
	x := uint64(12345)
	next := func(m int) int { // a linear congruential generator
		x = x*6364136223846793005 + 1442695040888963407
		return int(x>>33) % m
	}
	for i := range rows {
		r := &rows[i]
		r.Index = int64(i)
		if s := next(6); s > 0 {
			shop := string(rune('a' + s*s%7))
			r.Shop = &shop
		}
		r.Kind = saleKinds[next(len(saleKinds))]
		if next(5) > 0 {
			price := (float64(next(1<<20)) - 1<<19) * math.Pow(10, float64(next(25)-8)) / 3
			r.Price = &price
		}
		r.Small = float32(next(1000)) / 7
		r.Byte = int8(next(256) - 128)
		r.Big = uint64(next(1<<30)) << 20
		if next(3) > 0 {
			count := int64(next(2000) - 1000)
			r.Count = &count
		}
		if next(4) > 0 {
			note := fmt.Sprint(next(1000))[:1+next(1)]
			r.Note = &note
		}
		r.Raw = []byte{byte(next(256)), byte(i)}
		r.Paid = next(9) == 0
		r.At = time.UnixMicro(int64(next(1 << 30))).UTC()
	}
	return rows
}

// saleGroup is the result row of one group.
type saleGroup struct {
	Shop       *string
	Kind       float64
	SumPrice   *float64
	MeanPrice  *float64
	MinPrice   *float64
	MaxPrice   *float64
	CountPrice int64
	SumSmall   float64
	SumByte    int64
	MeanByte   float64
	MaxByte    int8
	SumBig     int64
	MeanBig    float64
	MinBig     uint64
	SumCount   *int64
	MeanCount  *float64
	MinNote    *string
	MaxNote    *string
	MinRaw     []byte
	MaxPaid    bool
	First      time.Time
	Count      int64
}

var saleAggregates = []Aggregation{
	SumOf("price"), MeanOf("price"), MinOf("price"), MaxOf("price"), CountOf("price"),
	SumOf("small"), SumOf("byte"), MeanOf("byte"), MaxOf("byte"), SumOf("big"), MeanOf("big"), MinOf("big"),
	SumOf("count").As("sum_count"), MeanOf("count"), MinOf("note"), MaxOf("note"), MinOf("raw"), MaxOf("paid"),
	MinOf("at").As("first"), CountRows(),
}

// treeSum adds the values of shards up the tree by recursion, as a reference for tests. The
// shards [lo, hi) must be a node of the tree.
func treeSum(lo, hi int, of func(shard int) (float64, bool)) (float64, bool) {
	if hi-lo == 1 {
		return of(lo)
	}
	mid := (lo + hi) / 2
	left, haveLeft := treeSum(lo, mid, of)
	right, haveRight := treeSum(mid, hi, of)
	switch {
	case haveLeft && haveRight:
		return left + right, true
	case haveLeft:
		return left, true
	}
	return right, haveRight
}

// sumPerTree adds the values of the rows with the given indices, of n rows in memory: it adds
// the values of each shard in order, and then the sums of shards up the tree.
func sumPerTree(shards, n int, indices []int, value func(i int) (float64, bool)) (float64, bool) {
	return treeSum(0, shards, func(shard int) (sum float64, have bool) {
		for _, i := range indices {
			if i < shard*n/shards || i >= (shard+1)*n/shards {
				continue
			}
			if v, ok := value(i); ok && have {
				sum += v
			} else if ok {
				sum, have = v, true
			}
		}
		return sum, have
	})
}

// key returns the key of a row as text, such that equal keys have equal texts.
func (s sale) key() string {
	kind := s.Kind + 0
	if kind == 0 {
		kind = 0 // 0 and -0 are the same key
	}
	if s.Shop == nil {
		return fmt.Sprint("null ", kind)
	}
	return fmt.Sprintf("%q %v", *s.Shop, kind)
}

// expectGroup computes the expected result of a group directly from its rows.
func expectGroup(rows []sale, shards int, indices []int) saleGroup {
	first := rows[indices[0]]
	g := saleGroup{Shop: first.Shop, Kind: first.Kind, MaxByte: -128, MinBig: math.MaxUint64, First: first.At, Count: int64(len(indices))}
	price := func(i int) (float64, bool) {
		if rows[i].Price == nil {
			return 0, false
		}
		return *rows[i].Price, true
	}
	if sum, ok := sumPerTree(shards, len(rows), indices, price); ok {
		g.SumPrice = &sum
	}
	g.SumSmall, _ = sumPerTree(shards, len(rows), indices, func(i int) (float64, bool) { return float64(rows[i].Small), true })
	bytes, bigs, counts, countN := new(big.Int), new(big.Int), new(big.Int), int64(0)
	for _, i := range indices {
		r := rows[i]
		if p := r.Price; p != nil {
			g.CountPrice++
			if g.MinPrice == nil || *p < *g.MinPrice {
				g.MinPrice = p
			}
			if g.MaxPrice == nil || *p > *g.MaxPrice {
				g.MaxPrice = p
			}
		}
		bytes.Add(bytes, big.NewInt(int64(r.Byte)))
		bigs.Add(bigs, new(big.Int).SetUint64(r.Big))
		g.MaxByte, g.MinBig = max(g.MaxByte, r.Byte), min(g.MinBig, r.Big)
		if r.Count != nil {
			counts.Add(counts, big.NewInt(*r.Count))
			countN++
		}
		if n := r.Note; n != nil {
			if g.MinNote == nil || *n < *g.MinNote {
				g.MinNote = n
			}
			if g.MaxNote == nil || *n > *g.MaxNote {
				g.MaxNote = n
			}
		}
		if g.MinRaw == nil || string(r.Raw) < string(g.MinRaw) {
			g.MinRaw = r.Raw
		}
		g.MaxPaid = g.MaxPaid || r.Paid
		if r.At.Before(g.First) {
			g.First = r.At
		}
	}
	if g.SumPrice != nil {
		mean := *g.SumPrice / float64(g.CountPrice)
		g.MeanPrice = &mean
	}
	exactMean := func(sum *big.Int, n int64) float64 {
		mean, _ := new(big.Rat).SetFrac(sum, big.NewInt(n)).Float64()
		return mean
	}
	g.SumByte, g.MeanByte = bytes.Int64(), exactMean(bytes, g.Count)
	g.SumBig, g.MeanBig = bigs.Int64(), exactMean(bigs, g.Count)
	if countN > 0 {
		sum, mean := counts.Int64(), exactMean(counts, countN)
		g.SumCount, g.MeanCount = &sum, &mean
	}
	return g
}

// show returns a group as text that contains the bits of its floats.
func (g saleGroup) show() string {
	bits := func(x *float64) any {
		if x == nil {
			return nil
		}
		return math.Float64bits(*x)
	}
	text := func(x *string) any {
		if x == nil {
			return nil
		}
		return *x
	}
	var count any
	if g.SumCount != nil {
		count = *g.SumCount
	}
	return line(text(g.Shop), bits(&g.Kind), bits(g.SumPrice), bits(g.MeanPrice), bits(g.MinPrice), bits(g.MaxPrice), g.CountPrice,
		bits(&g.SumSmall), g.SumByte, bits(&g.MeanByte), g.MaxByte, g.SumBig, bits(&g.MeanBig), g.MinBig, count, bits(g.MeanCount),
		text(g.MinNote), text(g.MaxNote), fmt.Sprintf("%x", g.MinRaw), g.MaxPaid, g.First.UnixMicro(), g.Count)
}

// groupOutcome runs a job and returns its rows.
func groupOutcome[T any](t require.TestingT, build func(b *engine.Builder) *engine.Dataset, opts ...engine.Option) []T {
	result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		engine.Collect(build(b), "out")
		return nil
	}), struct{}{}, opts...)
	require.NoError(t, err)
	defer result.Release()
	rows, err := engine.Rows[T](result, "out")
	require.NoError(t, err)
	return rows
}

// expectGroups returns the expected result of GroupBy for rows in memory. Each group is in the
// shard to which PartitionByHash sends its rows.
func expectGroups(t require.TestingT, rows []sale, shards int, opts ...engine.Option) []string {
	moved := groupOutcome[sale](t, func(b *engine.Builder) *engine.Dataset {
		return PartitionByHash(FromSlice(b, rows), "shop", "kind")
	}, opts...)
	indices := make(map[string][]int)
	for i, r := range rows {
		indices[r.key()] = append(indices[r.key()], i)
	}
	var want []string
	seen := make(map[string]bool)
	for _, r := range moved {
		if !seen[r.key()] {
			seen[r.key()] = true
			want = append(want, expectGroup(rows, shards, indices[r.key()]).show())
		}
	}
	require.Len(t, want, len(indices))
	return want
}

func showGroups(groups []saleGroup) (lines []string) {
	for _, g := range groups {
		lines = append(lines, g.show())
	}
	return lines
}

func TestGroupBy(t *testing.T) {
	for _, n := range []int{0, 1, 7, 1000} {
		rows := sales(n)
		want := expectGroups(t, rows, testShards, engine.Shards(testShards))
		forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
			got := groupOutcome[saleGroup](t, func(b *engine.Builder) *engine.Dataset {
				return GroupBy(FromSlice(b, rows), "shop", "kind").Aggregate(saleAggregates...)
			}, opts...)
			require.Equal(t, want, showGroups(got))
		})
	}
}

func TestGroupByOfManyShards(t *testing.T) {
	rows := sales(1500)
	const shards = 128
	want := expectGroups(t, rows, shards, engine.Shards(shards))
	for _, s := range manyShardSettings {
		got := groupOutcome[saleGroup](t, func(b *engine.Builder) *engine.Dataset {
			return GroupBy(FromSlice(b, rows), "shop", "kind").Aggregate(saleAggregates...)
		}, append(s.options(), engine.Shards(shards), engine.Allocator(batchtest.Allocator(t)))...)
		require.Equal(t, want, showGroups(got))
	}
}

// TestSalesDependOnTheOrder requires that the sum of the test data differs if they are added in
// another order. Otherwise the tests that require equal bits would prove nothing.
func TestSalesDependOnTheOrder(t *testing.T) {
	rows := sales(1000)
	price := func(i int) (float64, bool) { return *rows[i].Price, true }
	var indices []int
	sum := 0.0
	for i, r := range rows {
		if r.Price != nil {
			indices = append(indices, i)
			sum += *r.Price
		}
	}
	tree, _ := sumPerTree(testShards, len(rows), indices, price)
	other, _ := sumPerTree(2*testShards, len(rows), indices, price)
	slices.Reverse(indices)
	back, _ := sumPerTree(testShards, len(rows), indices, price)
	for _, wrong := range []float64{sum, other, back} {
		require.NotEqual(t, math.Float64bits(tree), math.Float64bits(wrong))
	}
}

func TestGroupByProperties(t *testing.T) {
	all := sales(400)
	rapid.Check(t, func(rt *rapid.T) {
		rows := rapid.SliceOfN(rapid.SampledFrom(all), 0, 150).Draw(rt, "rows")
		shards := rapid.SampledFrom([]int{1, 2, 8, 128}).Draw(rt, "shards")
		opts := []engine.Option{
			engine.Shards(shards), engine.Parallelism(min(shards, rapid.SampledFrom([]int{1, 2, 3, 8}).Draw(rt, "parallelism"))),
			engine.BatchRows(rapid.SampledFrom([]int{1, 7, 1024}).Draw(rt, "batch rows")), drawWorkers(rt),
		}
		got := groupOutcome[saleGroup](rt, func(b *engine.Builder) *engine.Dataset {
			return GroupBy(FromSlice(b, rows), "shop", "kind").Aggregate(saleAggregates...)
		}, opts...)
		require.Equal(rt, expectGroups(rt, rows, shards, opts...), showGroups(got))
	})
}

func TestAggregate(t *testing.T) {
	type totals struct {
		SumPrice *float64
		Low      *float64
		Rows     int64
		Byte     *int64
	}
	for _, n := range []int{0, 1, 2, 1000} {
		rows := sales(n)
		want := totals{Rows: int64(n)}
		var indices []int
		for i, r := range rows {
			indices = append(indices, i)
			if want.Byte == nil {
				want.Byte = new(int64)
			}
			*want.Byte += int64(r.Byte)
			if r.Price != nil && (want.Low == nil || *r.Price < *want.Low) {
				want.Low = r.Price
			}
		}
		sum, ok := sumPerTree(testShards, n, indices, func(i int) (float64, bool) {
			if rows[i].Price == nil {
				return 0, false
			}
			return *rows[i].Price, true
		})
		if ok {
			want.SumPrice = &sum
		}
		forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
			got := groupOutcome[totals](t, func(b *engine.Builder) *engine.Dataset {
				return Aggregate(FromSlice(b, rows), SumOf("price"), MinOf("price").As("low"), CountRows().As("rows"), SumOf("byte").As("byte"))
			}, opts...)
			require.Equal(t, []totals{want}, got)
		})
	}
	requireRows(t, "count int64", []string{"7 | 3"}, func(b *engine.Builder) *engine.Dataset {
		return Aggregate(FromSlice(b, flowers(3)), CountRows())
	})
}

func TestSumOfIntegersIsExact(t *testing.T) {
	type row struct {
		Signed   int64
		Unsigned uint64
	}
	// Sums of some of the rows are outside of the range of int64, but the sum of all rows is
	// not.
	rows := []row{{math.MaxInt64, math.MaxInt64}, {math.MaxInt64, 0}, {math.MinInt64, 0}, {math.MinInt64, 0}, {5, 0}, {-9, 0}}
	sum := func(b *engine.Builder) *engine.Dataset {
		return Aggregate(FromSlice(b, rows), SumOf("signed"), MeanOf("signed"), SumOf("unsigned"))
	}
	requireRows(t, "sum_signed int64 null | mean_signed float64 null | sum_unsigned int64 null",
		[]string{line(7, -6, -1, int64(math.MaxInt64))}, sum)

	rows[0].Unsigned++
	err := runError(t, sum)
	require.ErrorContains(t, err, `the sum of column "unsigned", 9223372036854775808, is beyond the range of int64`)
	require.ErrorContains(t, err, "Aggregate")

	rows = []row{{math.MinInt64, math.MaxUint64}, {math.MinInt64, math.MaxUint64}, {math.MinInt64, math.MaxUint64 - 1}}
	requireRows(t, "mean_signed float64 null | mean_unsigned float64 null",
		[]string{line(7, float64(math.MinInt64), float64(1<<63)*2)}, func(b *engine.Builder) *engine.Dataset {
			return Aggregate(FromSlice(b, rows), MeanOf("signed"), MeanOf("unsigned"))
		})
}

func TestExtremesOfHardFloats(t *testing.T) {
	nan, negative := math.NaN(), math.Copysign(0, -1)
	for _, c := range []struct {
		values    []float64
		low, high string
	}{
		{[]float64{nan, 1, 2}, "1", "NaN"},
		{[]float64{nan, nan}, "NaN", "NaN"},
		{[]float64{negative, 0}, "-0", "-0"}, // the first of equal values
		{[]float64{0, negative}, "0", "0"},
		{[]float64{math.Inf(-1), 3}, "-Inf", "3"},
	} {
		requireRows(t, "min_value float64 null | max_value float64 null", []string{line(7, c.low, c.high)}, func(b *engine.Builder) *engine.Dataset {
			return Aggregate(FromSlice(b, c.values), MinOf("value"), MaxOf("value"))
		})
	}
	requireRows(t, "sum_value float64 null", []string{"7 | -0"}, func(b *engine.Builder) *engine.Dataset {
		return Aggregate(FromSlice(b, []float64{negative, negative}), SumOf("value"))
	})
}

func TestGroupByMisuse(t *testing.T) {
	source := func(b *engine.Builder) *engine.Dataset { return FromSlice(b, flowers(3)) }
	for _, c := range []struct {
		build func(d *engine.Dataset) *engine.Dataset
		words []string
	}{
		{func(d *engine.Dataset) *engine.Dataset { return GroupBy(d).Aggregate(CountRows()) }, []string{"GroupBy: no key"}},
		{func(d *engine.Dataset) *engine.Dataset { return GroupBy(d, "nam").Aggregate(CountRows()) }, []string{"GroupBy", `did you mean "name"`}},
		{func(d *engine.Dataset) *engine.Dataset { return GroupBy(d, "size").Aggregate(CountRows()) }, []string{"GroupBy", "vector[2]"}},
		{func(d *engine.Dataset) *engine.Dataset { return GroupBy(d, "id", "id").Aggregate(CountRows()) }, []string{`"id" is named twice`}},
		{func(d *engine.Dataset) *engine.Dataset { return GroupBy(d, "id").Aggregate() }, []string{"no aggregation"}},
		{func(d *engine.Dataset) *engine.Dataset { return GroupBy(d, "id").Aggregate(SumOf("widht")) }, []string{`did you mean "width"`}},
		{func(d *engine.Dataset) *engine.Dataset { return GroupBy(d, "id").Aggregate(SumOf("name")) }, []string{`sum of column "name"`, "utf8"}},
		{func(d *engine.Dataset) *engine.Dataset { return GroupBy(d, "id").Aggregate(MeanOf("size")) }, []string{`mean of column "size"`, "vector[2]"}},
		{func(d *engine.Dataset) *engine.Dataset { return GroupBy(d, "id").Aggregate(MaxOf("size")) }, []string{`max of column "size"`, "no order"}},
		{func(d *engine.Dataset) *engine.Dataset { return GroupBy(d, "id").Aggregate(CountRows().As("id")) }, []string{`"id"`, "As"}},
		{func(d *engine.Dataset) *engine.Dataset {
			return Aggregate(d, SumOf("id"), MinOf("id").As("sum_id"))
		}, []string{"Aggregate: two columns", `"sum_id"`}},
		{func(d *engine.Dataset) *engine.Dataset { return Aggregate(d) }, []string{"Aggregate: no aggregation"}},
	} {
		requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return c.build(source(b)) }, c.words...)
		requirePoisonSpreads(t, c.build)
		requireNilDataset(t, c.build)
	}
}

// TestLateGroups limits the number of groups in memory, so that rows of the other groups are
// sorted on disk. It compares the result with the reference for keys and values of every kind.
func TestLateGroups(t *testing.T) {
	all := sales(400)
	rapid.Check(t, func(rt *rapid.T) {
		rows := rapid.SliceOfN(rapid.SampledFrom(all), 0, 150).Draw(rt, "rows")
		partial, total := rapid.IntRange(1, 6).Draw(rt, "partial"), rapid.IntRange(1, 6).Draw(rt, "total")
		growing := rapid.Bool().Draw(rt, "growing")
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer mem.AssertSize(rt, 0)
		opts := []engine.Option{
			engine.Shards(testShards), engine.Parallelism(rapid.SampledFrom([]int{1, 3}).Draw(rt, "parallelism")),
			engine.BatchRows(rapid.SampledFrom([]int{1, 7, 1024}).Draw(rt, "batch rows")), engine.Allocator(mem), drawWorkers(rt),
		}
		got := groupOutcome[saleGroup](rt, func(b *engine.Builder) *engine.Dataset {
			keys, d := []string{"shop", "kind"}, FromSlice(b, rows)
			p, ok := planAggregate("GroupBy", d, keys, saleAggregates)
			require.True(rt, ok)
			p.partial.most, p.total.most, p.partial.growing = partial, total, growing
			return p.add("GroupBy", d, keys)
		}, opts...)
		require.Equal(rt, expectGroups(rt, rows, testShards, opts...), showGroups(got))
	})
}

// TestGroupByOnDisk groups rows by far more keys than fit in memory, and requires the same
// result as with enough memory.
func TestGroupByOnDisk(t *testing.T) {
	rows := manyKeys()
	for name, aggs := range map[string][]Aggregation{
		"fixed":   {SumOf("price"), CountRows()},
		"growing": {SumOf("price"), MaxOf("note")},
	} {
		t.Run(name, func(t *testing.T) {
			requireSameOnDisk(t, func(b *engine.Builder) *engine.Dataset {
				return GroupBy(FromSlice(b, rows), "key").Aggregate(aggs...)
			})
		})
	}
}

// saleSmall is a narrow row, for tests with many rows.
type saleSmall struct {
	Key   int64
	Price *float64
	Note  *string
}

// manyKeys returns rows with more keys than the memory of requireSameOnDisk holds.
func manyKeys() []saleSmall {
	rows := make([]saleSmall, testsize.Of(16_000, 50_000))
	for i, s := range sales(len(rows)) {
		rows[i] = saleSmall{Key: int64(i) * 7919 % 30011, Price: s.Price, Note: s.Note}
	}
	return rows
}
