package operators

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/batch/batchtest"
	"github.com/superstep-ml/superstep/internal/disk"
)

// sortable is a row with key columns. They have many equal values, and values that are
// difficult to order, such as NaN and nulls.
type sortable struct {
	Real *float64
	Text *string
	Flag bool
	ID   int64
}

var (
	hardReals = []float64{math.NaN(), math.Copysign(0, -1), 0, 1, -1, math.Inf(1), math.Inf(-1), 1e16, 1e-8, -math.MaxFloat64, math.SmallestNonzeroFloat64}
	hardTexts = []string{"", "a", "A", "ab", "b", "\x00", "ä", "abcdefgh", "abcdefgi", "abcdefghi"}
)

// sortables returns n rows. The values of each key repeat periodically, and the periods have no
// common factor.
func sortables(n int) []sortable {
	rows := make([]sortable, n)
	for i := range rows {
		rows[i] = sortable{ID: int64(i), Flag: i*i%3 == 1}
		if r := i * 7 % (len(hardReals) + 2); r < len(hardReals) {
			rows[i].Real = &hardReals[r]
		}
		if t := i * 5 % (len(hardTexts) + 3); t < len(hardTexts) {
			rows[i].Text = &hardTexts[t]
		}
	}
	return rows
}

// text returns a row as text, such that values with different bits have different texts.
func (r sortable) text() string {
	var real, text any
	if r.Real != nil {
		real = math.Float64bits(*r.Real)
	}
	if r.Text != nil {
		text = *r.Text
	}
	return line(real, text, r.Flag, r.ID)
}

// compareBy returns a function that compares rows key by key. It is a reference for tests.
func compareBy(keys []SortBy) func(x, y sortable) int {
	return func(x, y sortable) int {
		for _, k := range keys {
			var order, xNull, yNull int
			switch k.column {
			case "real":
				xNull, yNull = nullRank(x.Real == nil, k), nullRank(y.Real == nil, k)
				if x.Real != nil && y.Real != nil {
					order = compareReals(*x.Real, *y.Real)
				}
			case "text":
				xNull, yNull = nullRank(x.Text == nil, k), nullRank(y.Text == nil, k)
				if x.Text != nil && y.Text != nil {
					order = bytes.Compare([]byte(*x.Text), []byte(*y.Text))
				}
			case "flag":
				order = cmp.Compare(fmt.Sprint(x.Flag), fmt.Sprint(y.Flag)) // correct, as "false" < "true"
			case "id":
				order = cmp.Compare(x.ID, y.ID)
			}
			if k.descending {
				order = -order
			}
			if order = cmp.Or(cmp.Compare(xNull, yNull), order); order != 0 {
				return order
			}
		}
		return 0
	}
}

func nullRank(null bool, k SortBy) int {
	switch {
	case !null:
		return 0
	case k.nullsFirst:
		return -1
	}
	return 1
}

func compareReals(x, y float64) int {
	xNaN, yNaN := math.IsNaN(x), math.IsNaN(y)
	switch {
	case xNaN && yNaN:
		return 0
	case xNaN:
		return 1
	case yNaN:
		return -1
	case x < y:
		return -1
	case x > y:
		return 1
	}
	return 0
}

// sortOutcome runs the job and returns its rows as text, and the number of rows in each shard.
func sortOutcome(t require.TestingT, shards int, build func(b *engine.Builder) *engine.Dataset, opts ...engine.Option) (rows []string, perShard []int) {
	result, err := engine.Run(context.Background(), engine.Anonymous(func(b *engine.Builder) error {
		engine.Collect(withShard(build(b)), "out")
		return nil
	}), struct{}{}, opts...)
	require.NoError(t, err)
	defer result.Release()
	type row struct {
		Shard int64
		Real  *float64
		Text  *string
		Flag  bool
		ID    int64
	}
	got, err := engine.Rows[row](result, "out")
	require.NoError(t, err)
	perShard = make([]int, shards)
	for _, r := range got {
		rows = append(rows, sortable{r.Real, r.Text, r.Flag, r.ID}.text())
		perShard[r.Shard]++
	}
	return rows, perShard
}

func textOf(rows []sortable) []string {
	var lines []string
	for _, r := range rows {
		lines = append(lines, r.text())
	}
	return lines
}

var sortCases = [][]SortBy{
	{Asc("real")},
	{Desc("real").NullsFirst()},
	{Asc("text"), Desc("real")},
	{Asc("flag")},
	{Desc("flag"), Asc("text").NullsFirst(), Asc("real")},
	{Desc("id")},
}

func TestSort(t *testing.T) {
	for _, keys := range sortCases {
		for _, n := range []int{0, 1, 100} {
			t.Run(fmt.Sprintf("%v,n=%d", keys, n), func(t *testing.T) {
				want := sortables(n)
				slices.SortStableFunc(want, compareBy(keys))
				forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
					got, perShard := sortOutcome(t, testShards, func(b *engine.Builder) *engine.Dataset {
						return Sort(FromSlice(b, sortables(n)), keys...)
					}, opts...)
					require.Equal(t, textOf(want), got)
					for s, count := range perShard {
						// Every row is in the sample, so the shards must have exactly equal
						// numbers of rows, up to rounding.
						require.Equal(t, (s+1)*n/testShards-s*n/testShards, count, "shard %d", s)
					}
				})
			})
		}
	}
}

func TestSortProperties(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		rows := rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) sortable {
			return sortable{
				Real: rapid.Ptr(rapid.SampledFrom(hardReals), true).Draw(rt, "real"),
				Text: rapid.Ptr(rapid.SampledFrom(hardTexts), true).Draw(rt, "text"),
				Flag: rapid.Bool().Draw(rt, "flag"),
				ID:   rapid.Int64Range(0, 3).Draw(rt, "id"),
			}
		}), 0, 200).Draw(rt, "rows")
		keys := rapid.SampledFrom(sortCases).Draw(rt, "keys")
		shards := rapid.SampledFrom([]int{1, 8, 128}).Draw(rt, "shards")
		parallelism := rapid.SampledFrom([]int{1, 2, 3, 8}).Draw(rt, "parallelism")
		opts := []engine.Option{
			engine.Shards(shards), engine.Parallelism(min(parallelism, shards)),
			engine.BatchRows(rapid.SampledFrom([]int{1, 7, 1024}).Draw(rt, "batch rows")),
			engine.Seed(rapid.Uint64().Draw(rt, "seed")), drawWorkers(rt),
		}
		want := slices.Clone(rows)
		slices.SortStableFunc(want, compareBy(keys))
		got, _ := sortOutcome(rt, shards, func(b *engine.Builder) *engine.Dataset {
			return Sort(FromSlice(b, rows), keys...)
		}, opts...)
		require.Equal(rt, textOf(want), got)

		_, perShard := sortOutcome(rt, shards, func(b *engine.Builder) *engine.Dataset {
			return PartitionByRange(FromSlice(b, rows), keys...)
		}, opts...)
		// Rows with equal keys are in one shard, so a shard must end where the keys change.
		at := 0
		for _, n := range perShard {
			at += n
			if at > 0 && at < len(want) && n > 0 {
				require.Negative(rt, compareBy(keys)(want[at-1], want[at]), "a shard ends at row %d; the keys of this row and the row before must differ", at)
			}
		}
	})
}

// TestPartitionByRangeKeepsOrder requires that the rows of a shard keep their order.
func TestPartitionByRangeKeepsOrder(t *testing.T) {
	keys := []SortBy{Asc("text"), Desc("flag")}
	const n = 300
	rows := sortables(n)
	var first []string
	forEachSetting(t, func(t *testing.T, opts ...engine.Option) {
		lines := outcome(t, func(b *engine.Builder) *engine.Dataset {
			return PartitionByRange(FromSlice(b, rows), keys...)
		}, opts...)
		if first == nil {
			first = lines
		}
		require.Equal(t, first, lines)
		lastShard, lastID := "", int64(-1)
		seen := 0
		for _, l := range lines[1:] {
			cells := strings.Split(l, " | ")
			var id int64
			_, err := fmt.Sscan(cells[len(cells)-1], &id)
			require.NoError(t, err)
			if cells[0] == lastShard {
				require.Greater(t, id, lastID)
			}
			lastShard, lastID = cells[0], id
			seen++
		}
		require.Equal(t, n, seen)
	})
}

// TestSortBalances requires that shards get about the same number of rows whatever the keys
// are. For this, rows with equal keys must get different shards.
func TestSortBalances(t *testing.T) {
	const n = 20000
	for name, key := range map[string]func(i int) int64{
		"all equal":  func(int) int64 { return 7 },
		"half equal": func(i int) int64 { return int64(max(i-n/2, 0)) },
		"ascending":  func(i int) int64 { return int64(i) },
		"descending": func(i int) int64 { return -int64(i) },
		"few":        func(i int) int64 { return int64(i % 3) },
	} {
		t.Run(name, func(t *testing.T) {
			build := func(b *engine.Builder) *engine.Dataset {
				rows := make([]sortable, n)
				for i := range rows {
					rows[i] = sortable{ID: key(i)}
				}
				return Sort(FromSlice(b, rows), Asc("id"))
			}
			_, perShard := sortOutcome(t, testShards, build, engine.Shards(testShards), engine.Parallelism(2))
			for s, count := range perShard {
				require.InDelta(t, n/testShards, count, 0.3*n/testShards, "shard %d of %v", s, perShard)
			}
		})
	}
}

// TestSortFromOneShard sorts rows that are all in one shard, and requires that shards then have
// about the same number of rows.
func TestSortFromOneShard(t *testing.T) {
	const n = 5000
	_, perShard := sortOutcome(t, testShards, func(b *engine.Builder) *engine.Dataset {
		rows := sortables(n)
		return Sort(PartitionByRange(FromSlice(b, rows), Asc("flag")), Asc("real"), Desc("text"))
	}, engine.Shards(testShards))
	for s, count := range perShard {
		require.InDelta(t, n/testShards, count, 0.5*n/testShards, "shard %d of %v", s, perShard)
	}
}

// TestSortPassesColumnsThrough sorts rows with columns that cannot be keys, and with columns
// that have the names of the temporary columns of Sort.
func TestSortPassesColumnsThrough(t *testing.T) {
	type row struct {
		Destination int64
		Shard       string
		Index       *int64
		Weight      []float64 `column:"weight,dim=2"`
	}
	two := int64(2)
	rows := []row{{3, "c", nil, []float64{1, 2}}, {1, "a", &two, []float64{3, 4}}, {2, "b", nil, []float64{5, 6}}}
	for name, key := range map[string]SortBy{"destination": Asc("destination"), "shard": Asc("shard")} {
		t.Run(name, func(t *testing.T) {
			requireRows(t, "destination int64 | kept utf8 | index int64 null | weight vector[2]", []string{
				"2 | 1 | a | 2 | [3 4]",
				"5 | 2 | b | null | [5 6]",
				"7 | 3 | c | null | [1 2]",
			}, func(b *engine.Builder) *engine.Dataset {
				return Rename(Sort(FromSlice(b, rows), key), "shard", "kept")
			})
		})
	}
}

func TestSortMisuse(t *testing.T) {
	source := func(b *engine.Builder) *engine.Dataset { return FromSlice(b, flowers(3)) }
	for op, sort := range map[string]func(d *engine.Dataset, keys ...SortBy) *engine.Dataset{"Sort": Sort, "PartitionByRange": PartitionByRange} {
		requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return sort(source(b)) }, op+": no key")
		requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return sort(source(b), Asc("widht")) }, op, `did you mean "width"`)
		requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return sort(source(b), Asc("size")) }, op, `"size"`, "vector[2]")
		requireMisuse(t, func(b *engine.Builder) *engine.Dataset { return sort(source(b), Asc("id"), Desc("id")) }, op, "twice")
		requireNilDataset(t, func(d *engine.Dataset) *engine.Dataset { return sort(d, Asc("id")) })
		requirePoisonSpreads(t, func(d *engine.Dataset) *engine.Dataset { return sort(d, Asc("id")) })
	}
}

// TestSortOnDisk sorts far more rows than fit in memory. The result must have the same bytes as
// with enough memory.
func TestSortOnDisk(t *testing.T) {
	const n = 40000
	requireSameOnDisk(t, func(b *engine.Builder) *engine.Dataset {
		return Sort(FromSlice(b, sortables(n)), Asc("text"), Desc("real"), Asc("flag"))
	})
}

// TestRowSorter compares the sorter with a stable sort. The limits are so small that the sorter
// merges in several passes.
func TestRowSorter(t *testing.T) {
	codec, err := batch.NewCodec[sortable]()
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		mem := memory.NewCheckedAllocator(memory.NewGoAllocator())
		defer mem.AssertSize(rt, 0)
		dir, err := os.MkdirTemp(t.TempDir(), "sorter")
		require.NoError(rt, err)
		c := &engine.Context{
			Context: context.Background(), Allocator: mem, SpillDir: dir, Disk: disk.OS(),
			BatchRows: rapid.IntRange(1, 20).Draw(rt, "batch rows"),
		}
		keys := rapid.SampledFrom(sortCases).Draw(rt, "keys")
		s := newRowSorter(c, codec.Schema(), columnsOf(codec.Schema(), keys))
		s.limits = sortLimits{
			run: rapid.Int64Range(50, 2000).Draw(rt, "run"), fan: rapid.IntRange(2, 4).Draw(rt, "fan"),
			block: rapid.Int64Range(1, 500).Draw(rt, "block"),
		}
		for range rapid.IntRange(1, 3).Draw(rt, "times") {
			all := sortables(rapid.IntRange(0, 150).Draw(rt, "rows"))
			for rest := all; len(rest) > 0; {
				k := rapid.IntRange(1, len(rest)).Draw(rt, "batch")
				rec, err := codec.Record(mem, rest[:k])
				require.NoError(rt, err)
				require.NoError(rt, s.add(rec))
				rec.Release()
				rest = rest[k:]
			}
			var got []string
			require.NoError(rt, s.each(func(rows arrow.Record) error {
				require.LessOrEqual(rt, rows.NumRows(), int64(c.BatchRows))
				part, err := codec.Rows(rows)
				got = append(got, textOf(part)...)
				return err
			}))
			slices.SortStableFunc(all, compareBy(keys))
			require.Equal(rt, textOf(all), got)
			require.True(rt, s.empty())
			require.Zero(rt, s.bytes)
		}
		require.NoError(rt, s.close())
		left, err := os.ReadDir(dir)
		require.NoError(rt, err)
		require.Empty(rt, left)
	})
}

// columnsOf returns keys with the indices of their columns in schema.
func columnsOf(schema *arrow.Schema, keys []SortBy) []batch.SortKey {
	var cols []batch.SortKey
	for _, k := range keys {
		cols = append(cols, batch.SortKey{Column: schema.FieldIndices(k.column)[0], Descending: k.descending, NullsFirst: k.nullsFirst})
	}
	return cols
}

// TestRowSorterGivesUp requires that a sorter leaves neither files nor memory behind, whenever
// it is closed, and that it returns the errors of the disk.
func TestRowSorterGivesUp(t *testing.T) {
	codec, err := batch.NewCodec[sortable]()
	require.NoError(t, err)
	dir := t.TempDir()
	c := &engine.Context{Context: context.Background(), Allocator: batchtest.Allocator(t), SpillDir: dir, Disk: disk.OS(), BatchRows: 10}
	fill := func() *rowSorter {
		s := newRowSorter(c, codec.Schema(), columnsOf(codec.Schema(), sortCases[0]))
		s.limits.run = 1000
		for range 10 {
			rec, err := codec.Record(c.Allocator, sortables(50))
			require.NoError(t, err)
			defer rec.Release()
			require.NoError(t, s.add(rec))
		}
		return s
	}
	require.NoError(t, fill().close())

	s, failure := fill(), errors.New("enough")
	require.ErrorIs(t, s.each(func(arrow.Record) error { return failure }), failure)
	require.NoError(t, s.close())

	s = fill()
	require.NoError(t, os.Truncate(s.runs.file.Name(), s.runs.frames.Size()/2))
	var damage *disk.DamagedError
	require.ErrorAs(t, s.each(func(arrow.Record) error { return nil }), &damage)
	require.Equal(t, s.runs.file.Name(), damage.File)
	require.NoError(t, s.close())

	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)

	s = fill()
	require.NoError(t, s.close())
	c.SpillDir = filepath.Join(dir, "missing")
	s = newRowSorter(c, codec.Schema(), columnsOf(codec.Schema(), sortCases[0]))
	s.limits.run = 1
	rec, err := codec.Record(c.Allocator, sortables(2))
	require.NoError(t, err)
	defer rec.Release()
	require.NoError(t, s.add(rec))
	require.ErrorContains(t, s.add(rec), "spill directory")
	require.NoError(t, s.close())
}
