package operators

import (
	"github.com/superstep-ml/superstep/engine"
)

// Grouped is a dataset with the keys by which its rows are grouped; see GroupBy.
type Grouped struct {
	of   *engine.Dataset
	keys []string
	ok   bool
}

// GroupBy groups rows that have equal values in the given columns. Values are compared as in
// PartitionByHash: integers by value; -0 equals +0; all NaNs are equal; and all nulls are
// equal, so that they are one group. Use Aggregate or FoldGroups to compute one row for each
// group:
//
//	operators.GroupBy(sales, "shop").Aggregate(operators.SumOf("price"), operators.CountRows())
//
// A hash of the keys chooses the shard of a group's row. Within a shard, groups are in the
// order of their first rows. The key that is emitted for a group is the key of its first row.
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

// Aggregate computes one row per group, with the key columns first and then a column for each
// aggregation. Values are folded within each source shard before rows are sent, so that at most
// one row per shard and group is sent.
//
// Groups are held in memory, within the run's budget. Rows of groups that do not fit are sorted
// on disk.
func (g *Grouped) Aggregate(aggs ...Aggregation) *engine.Dataset {
	const op = "GroupBy"
	if !g.ok {
		return builderOf(op, g.of).Poisoned(op)
	}
	return addAggregate(op, g.of, g.keys, aggs)
}
