package operators

import (
	"github.com/superstep-ml/superstep/engine"
)

// Grouped stands for the rows of a dataset grouped by keys; see GroupBy.
type Grouped struct {
	of   *engine.Dataset
	keys []string
	ok   bool
}

// GroupBy groups rows that have equal values in the named columns. Keys are equal as in
// PartitionByHash: integers by value, -0 and +0, all NaN, and all nulls, which are a group of
// their own. Aggregate or FoldGroups computes a row of each group:
//
//	operators.GroupBy(sales, "shop").Aggregate(operators.SumOf("price"), operators.CountRows())
//
// A hash of the keys chooses the shard of a group's row. Within a shard, groups are in the
// order of their first rows; the key of a group is that of its first row.
func GroupBy(d *engine.Dataset, keys ...string) *Grouped {
	const op = "GroupBy"
	b := builderOf(op, d)
	g := &Grouped{of: d, keys: keys}
	switch {
	case !usable(d):
	case len(keys) == 0:
		b.Errorf("%s: no key is given: name at least one column, or use Aggregate for one row of all", op)
	default:
		_, g.ok = keyColumns(op, d, keys)
	}
	return g
}

// Aggregate computes values of each group: one row per group, the keys first, then a column for
// each aggregation. Values are folded per shard before rows are sent, so that at most one row
// per shard and group is sent.
//
// Groups are held in memory within the run's budget; rows of groups beyond it are sorted on
// disk.
func (g *Grouped) Aggregate(aggs ...Aggregation) *engine.Dataset {
	const op = "GroupBy"
	if !g.ok {
		return builderOf(op, g.of).Poisoned(op)
	}
	return addAggregate(op, g.of, g.keys, aggs)
}
