package operators

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// TestDatasetsOfAnotherBuild requires that every operator refuses a dataset that the job's
// function kept from an earlier build, with an error that has the operator's name and the
// caller's line.
func TestDatasetsOfAnotherBuild(t *testing.T) {
	path := t.TempDir() + "/out"
	same := func(f flower) flower { return f }
	type named struct {
		op    string
		build func(kept, own *engine.Dataset)
	}
	// Operators with two inputs are tested twice, with the foreign dataset as each input.
	cases := map[string]named{
		"Map":          {"Map", func(k, _ *engine.Dataset) { Map(k, same) }},
		"MapErr":       {"MapErr", func(k, _ *engine.Dataset) { MapErr(k, func(f flower) (flower, error) { return f, nil }) }},
		"FlatMap":      {"FlatMap", func(k, _ *engine.Dataset) { FlatMap(k, func(f flower, emit func(flower)) error { return nil }) }},
		"other fields": {"Map", func(k, _ *engine.Dataset) { Map(k, func(lineRow) lineRow { return lineRow{} }) }},
		"MapPartition": {"MapPartition", func(k, _ *engine.Dataset) {
			MapPartition(k, func(*Shard[flower], func(flower)) error { return nil })
		}},
		"MapBatch": {"MapBatch", func(k, _ *engine.Dataset) {
			MapBatch(k, engine.Schema{}, func(*engine.Context, engine.Batch) (engine.Batch, error) { return engine.Batch{}, nil })
		}},
		"MapWith": {"MapWith", func(k, o *engine.Dataset) {
			MapWith(k, o, func(f flower, _ []flower) (flower, error) { return f, nil })
		}},
		"MapWith, side": {"MapWith", func(k, o *engine.Dataset) {
			MapWith(o, k, func(f flower, _ []flower) (flower, error) { return f, nil })
		}},
		"MapWith, side of other fields": {"MapWith", func(k, o *engine.Dataset) {
			MapWith(o, k, func(f flower, _ []lineRow) (flower, error) { return f, nil })
		}},
		"MapBatchWith": {"MapBatchWith", func(k, o *engine.Dataset) {
			MapBatchWith(o, k, engine.Schema{}, func(*engine.Context, engine.Batch, []engine.Batch) (engine.Batch, error) { return engine.Batch{}, nil })
		}},
		"Filter":            {"Filter", func(k, _ *engine.Dataset) { Filter(k, func(flower) bool { return true }) }},
		"WithColumn":        {"WithColumn", func(k, _ *engine.Dataset) { WithColumn(k, "x", func(flower) int64 { return 1 }) }},
		"Select":            {"Select", func(k, _ *engine.Dataset) { Select(k, "id") }},
		"Rename":            {"Rename", func(k, _ *engine.Dataset) { Rename(k, "id", "x") }},
		"Vectorize":         {"Vectorize", func(k, _ *engine.Dataset) { Vectorize(k, "x", "id") }},
		"Sort":              {"Sort", func(k, _ *engine.Dataset) { Sort(k, Asc("id")) }},
		"Sort, no column":   {"Sort", func(k, _ *engine.Dataset) { Sort(k, Asc("none")) }},
		"PartitionByRange":  {"PartitionByRange", func(k, _ *engine.Dataset) { PartitionByRange(k, Asc("id")) }},
		"PartitionByHash":   {"PartitionByHash", func(k, _ *engine.Dataset) { PartitionByHash(k, "id") }},
		"PartitionByCustom": {"PartitionByCustom", func(k, _ *engine.Dataset) { PartitionByCustom(k, func(flower, int) int { return 0 }) }},
		"Rebalance":         {"Rebalance", func(k, _ *engine.Dataset) { Rebalance(k) }},
		"Consolidate":       {"Consolidate", func(k, _ *engine.Dataset) { Consolidate(k) }},
		"Aggregate":         {"Aggregate", func(k, _ *engine.Dataset) { Aggregate(k, SumOf("id")) }},
		"GroupBy":           {"GroupBy", func(k, _ *engine.Dataset) { GroupBy(k, "id").Aggregate(CountRows()) }},
		"Reduce":            {"Reduce", func(k, _ *engine.Dataset) { Reduce(k, func(a, _ flower) flower { return a }) }},
		"Count":             {"Count", func(k, _ *engine.Dataset) { Count(k) }},
		"ZipWithIndex":      {"ZipWithIndex", func(k, _ *engine.Dataset) { ZipWithIndex(k, "at") }},
		"First":             {"First", func(k, _ *engine.Dataset) { First(k, 1) }},
		"Sample":            {"Sample", func(k, _ *engine.Dataset) { Sample(k, 0.5, SampleOptions{}) }},
		"Split":             {"Split", func(k, _ *engine.Dataset) { Split(k, 1, 1) }},
		"Union":             {"Union", func(k, o *engine.Dataset) { Union(o, k) }},
		"Union, first":      {"Union", func(k, o *engine.Dataset) { Union(k, o) }},
		"Print":             {"Print", func(k, _ *engine.Dataset) { Print(k, PrintOptions{}) }},
		"WriteCSV":          {"WriteCSV", func(k, _ *engine.Dataset) { WriteCSV(k, path, CSVWriteOptions{}) }},
		"WriteArrow":        {"WriteArrow", func(k, _ *engine.Dataset) { WriteArrow(k, path, ArrowWriteOptions{}) }},
		"Collect":           {`Collect "rows"`, func(k, _ *engine.Dataset) { engine.Collect(k, "rows") }},
	}
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		c := cases[name]
		var kept *engine.Dataset
		_, err := engine.BuildGraph(engine.Anonymous(func(b *engine.Builder) error {
			own := FromSlice(b, flowers(3))
			if kept == nil {
				kept = own
			} else {
				c.build(kept, own)
			}
			engine.Collect(own, "out")
			return nil
		}), struct{}{})
		require.Error(t, err, name)
		require.Regexp(t, fmt.Sprintf(`foreign_test\.go:\d+: %s: (input \d: )?the dataset belongs to another job or to an earlier build of this one; a job function must not keep datasets between calls`, c.op), err.Error(), name)
	}
}

// TestBuildersOfAnotherBuild requires that sources refuse the builder of an earlier build.
func TestBuildersOfAnotherBuild(t *testing.T) {
	for op, source := range map[string]func(b *engine.Builder){
		"Range":     func(b *engine.Builder) { Range(b, 0, 1) },
		"FromSlice": func(b *engine.Builder) { FromSlice(b, []int{1}) },
		"Generate":  func(b *engine.Builder) { Generate(b, 1, func(sharding.Random, int64) int64 { return 1 }) },
		"FromShards": func(b *engine.Builder) {
			FromShards(b, func(int, int, func(int64)) error { return nil })
		},
		"ReadText": func(b *engine.Builder) { ReadText(b, t.TempDir(), TextOptions{}) },
		"ReadCSV":  func(b *engine.Builder) { ReadCSV(b, t.TempDir(), CSVOptions{}) },
	} {
		var kept *engine.Builder
		_, err := engine.BuildGraph(engine.Anonymous(func(b *engine.Builder) error {
			if kept == nil {
				kept = b
			}
			engine.Collect(FromSlice(b, flowers(3)), "out")
			if kept != b {
				source(kept)
			}
			return nil
		}), struct{}{})
		require.Error(t, err, op)
		require.Regexp(t, `foreign_test\.go:\d+: `+op+`: the builder belongs to another job or to an earlier build of this one; a job function must not keep it between calls`, err.Error(), op)
	}
}

// TestPartsOfOperatorsAreNamed requires that the error of an operator that is a part of a
// function begins with the name of the function.
func TestPartsOfOperatorsAreNamed(t *testing.T) {
	graph, err := engine.BuildGraph(engine.Anonymous(func(b *engine.Builder) error {
		rows := FromSlice(b, flowers(3))
		engine.Collect(Sort(rows, Asc("id")), "sort")
		engine.Collect(PartitionByRange(rows, Asc("id")), "range")
		engine.Collect(Aggregate(rows, SumOf("id")), "aggregate")
		engine.Collect(GroupBy(rows, "id").Aggregate(CountRows()), "grouped")
		engine.Collect(Reduce(rows, func(a, _ flower) flower { return a }), "reduce")
		engine.Collect(Count(rows), "count")
		engine.Collect(ZipWithIndex(rows, "at"), "zip")
		engine.Collect(First(rows, 1), "first")
		Print(rows, PrintOptions{})
		return nil
	}), struct{}{})
	require.NoError(t, err)
	var parts []string
	for _, n := range graph.Nodes {
		if n.Within != "" {
			parts = append(parts, n.Within+": "+n.Op)
		}
	}
	slices.Sort(parts)
	require.Equal(t, []string{
		"Aggregate: Combine", "Count: CountShards", "First: FirstOfShards", "GroupBy: Combine",
		"PartitionByRange: PlaceRows", "PartitionByRange: SampleKeys", "PartitionByRange: Splitters",
		"Print: FirstOfShards", "Reduce: ReduceShards",
		"Sort: PlaceRows", "Sort: SampleKeys", "Sort: Splitters", "ZipWithIndex: CountShards",
	}, parts)
}
