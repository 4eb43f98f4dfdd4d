package main

import (
	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/operators"
)

// placed is a reading with the number of its shard.
type placed struct {
	Shard int64
	Key   int64
	Value float64
	Label string
}

// place returns a dataset with the shard of each row of d. It also sums the rows of each shard
// one after another, so that the sum depends on the order of the rows.
func (e *env) place(d *engine.Dataset, sum string) *engine.Dataset {
	return operators.MapPartition(d, func(s *operators.Shard[reading], emit func(placed)) error {
		e.pause(2, s.Index)
		total := 0.0
		for r := range s.Rows() {
			total += r.Value
			s.Accumulate(sum+" row by row", s.Index, r.Value)
			emit(placed{int64(s.Index), r.Key, r.Value, r.Label})
		}
		s.Accumulate(sum, s.Index, total)
		return nil
	})
}

// operatorChain sends rows through every kind of exchange and through operators that count
// rows, make random draws and number rows.
func operatorChain(b *engine.Builder, e *env) error {
	rows := operators.Generate(b, rowsPerJob, e.makeReading)
	scaled := operators.Map(rows, func(r reading) reading {
		r.Value = r.Value * r.Weight
		return r
	})
	kept := operators.Filter(scaled, func(r reading) bool { return r.Key%7 != 3 })
	collect := func(name string, d *engine.Dataset) { engine.Collect(e.place(d, name), name) }

	collect("kept", kept)
	hashed := operators.PartitionByHash(kept, "key")
	collect("hashed", hashed)
	rebalanced := operators.Rebalance(hashed)
	collect("rebalanced", rebalanced)
	collect("custom", operators.PartitionByCustom(rebalanced, func(r reading, shards int) int { return int(r.Key) % min(shards, 5) }))

	sample := operators.Sample(rebalanced, 0.4, operators.SampleOptions{Seed: 3, Replacement: true})
	engine.Collect(operators.ZipWithIndex(sample, "index"), "numbered")
	parts := operators.Split(rebalanced, 2, 1)
	collect("split", operators.Union(parts[1], parts[0], sample))
	collect("first", operators.First(parts[1], 333))
	engine.Collect(operators.Count(sample), "count")

	heads := operators.First(hashed, 50)
	engine.Collect(operators.MapWith(parts[0], heads, func(r reading, side []reading) (reading, error) {
		for _, s := range side {
			r.Value += s.Value
		}
		return r, nil
	}), "joined")
	return nil
}

// sorting sorts rows by values that differ in every bit and by keys with many ties, and writes
// them to files.
func sorting(b *engine.Builder, e *env) error {
	rows := operators.PartitionByHash(operators.Generate(b, rowsPerJob, e.makeReading), "key")
	engine.Collect(e.place(operators.Sort(rows, operators.Desc("value")), "by value"), "by value")
	engine.Collect(e.place(operators.Sort(rows, operators.Asc("label"), operators.Desc("key")), "by key"), "by key")
	engine.Collect(e.place(operators.PartitionByRange(rows, operators.Asc("key")), "ranges"), "ranges")
	operators.WriteCSV(operators.Sort(rows, operators.Asc("weight")), e.Out+"/sorted.csv", operators.CSVWriteOptions{})
	return nil
}

// labelTotal is the result of a group.
type labelTotal struct {
	Label string
	Total float64
}

// grouping folds the rows of each key, and all rows together. The results depend on the order
// of the rows.
func grouping(b *engine.Builder, e *env) error {
	rows := operators.Rebalance(operators.Generate(b, rowsPerJob, e.makeReading))
	all := []operators.Aggregation{
		operators.SumOf("value"), operators.MeanOf("value"), operators.MinOf("value"), operators.MaxOf("label"),
		operators.SumOf("key").As("sum_of_keys"), operators.CountRows(),
	}
	engine.Collect(operators.GroupBy(rows, "key", "label").Aggregate(all...), "by key and label")
	engine.Collect(operators.GroupBy(rows, "label").Aggregate(all...), "by label")
	engine.Collect(operators.Aggregate(rows, all...), "of all")
	engine.Collect(operators.FoldGroups(operators.GroupBy(rows, "label"),
		func() float64 { return 0 },
		func(total float64, r reading) float64 { return total/3 + r.Value },
		func(key struct{ Label string }, total float64) labelTotal { return labelTotal{key.Label, total} }), "folded")
	engine.Collect(operators.Reduce(rows, func(left, right reading) reading {
		return reading{Key: left.Key, Value: left.Value + right.Value, Weight: left.Weight + right.Weight, Label: right.Label}
	}), "reduced")
	return nil
}

// joining joins, semi-joins, cogroups and looks up rows by keys. The results depend on the
// order of the rows.
func joining(b *engine.Builder, e *env) error {
	left := operators.Rebalance(operators.Generate(b, rowsPerJob, e.makeReading))
	right := operators.Filter(operators.Generate(b, rowsPerJob, e.makeReading), func(r reading) bool { return r.Key%5 < 3 || r.Value > 0 })
	few := operators.First(right, 90)
	pair := func(l, r *reading) (p reading) {
		if l != nil {
			p = *l
		}
		if r != nil {
			p.Value, p.Weight = p.Value/3+r.Value, r.Weight
		}
		return p
	}
	engine.Collect(e.place(operators.Join(left, few, operators.On("key"), operators.Full, pair), "full"), "full")
	engine.Collect(e.place(operators.Join(few, right, operators.On("label", "key"), operators.Inner, pair), "inner"), "inner")
	engine.Collect(e.place(operators.SemiJoin(left, few, operators.On("key", "label")), "semi"), "semi")
	engine.Collect(e.place(operators.AntiJoin(left, few, operators.On("key")), "anti"), "anti")
	engine.Collect(e.place(operators.Distinct(left, "key", "label"), "distinct"), "distinct")
	engine.Collect(operators.CoGroup(left, right, operators.On("label"),
		func(left, right *operators.Group[reading], emit func(labelTotal)) error {
			total := labelTotal{}
			for l := range left.Rows() {
				total = labelTotal{l.Label, total.Total/3 + l.Value}
			}
			for r := range right.Rows() {
				total = labelTotal{r.Label, total.Total/3 - r.Value}
			}
			emit(total)
			return nil
		}), "gathered")
	engine.Collect(operators.MapLookup(left, few, func(r reading) int64 { return r.Key },
		func(l reading, table *operators.Lookup[int64, reading]) (reading, error) {
			for r := range table.All(l.Key) {
				l.Value = l.Value/3 + r.Value
			}
			return l, nil
		}), "looked up")
	return nil
}

// spilling sends rows through exchanges with a memory budget that is too small for the rows, so
// that the exchanges spill.
func spilling(b *engine.Builder, e *env) error {
	rows := operators.Generate(b, 2*rowsPerJob, e.makeReading)
	hashed := operators.PartitionByHash(rows, "label", "key")
	back := operators.Rebalance(hashed)
	engine.Collect(operators.ZipWithIndex(operators.Filter(back, func(r reading) bool { return r.Key == 0 }), "index"), "numbered")
	return nil
}
