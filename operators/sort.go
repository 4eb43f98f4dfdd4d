package operators

import (
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// SortBy is a column by which rows are ordered; see Asc and Desc.
//
// The order is total. Numbers are ordered by value; -0 equals +0; NaN is greater than all
// numbers, and all NaNs are equal. false precedes true. Text is ordered by its bytes, and dates
// and timestamps by time. Nulls are equal and come last in both directions, or first with
// NullsFirst. Vectors have no order.
type SortBy struct {
	column     string
	descending bool
	nullsFirst bool
}

// Asc returns a key that orders by a column, with the smallest values first.
func Asc(column string) SortBy { return SortBy{column: column} }

// Desc returns a key that orders by a column, with the largest values first.
func Desc(column string) SortBy { return SortBy{column: column, descending: true} }

// NullsFirst returns a copy of the key that puts nulls before all values.
func (k SortBy) NullsFirst() SortBy {
	k.nullsFirst = true
	return k
}

// String returns the text that plans show, such as "age desc nulls first".
func (k SortBy) String() string {
	s := k.column
	if k.descending {
		s += " desc"
	}
	if k.nullsFirst {
		s += " nulls first"
	}
	return s
}

// Sort sorts the whole dataset by the first key; it sorts rows that are equal in the first key
// by the second key, and so on. Rows that are equal in all keys keep their order, so the result
// is unique.
//
// The sorted rows are divided into consecutive shards of about the same number of rows, even if
// many rows have equal keys: rows with equal keys may be in neighbouring shards.
// (PartitionByRange keeps such rows in one shard.) The bounds of shards are computed from a
// sample of the rows, which depends on the job's seed. Rows are sorted in memory if they fit in
// the run's budget, and otherwise on disk.
func Sort(d *engine.Dataset, keys ...SortBy) *engine.Dataset {
	const op = "Sort"
	b := builderOf(op, d)
	sort, ok := sortKeysOf(op, d, keys)
	if !ok {
		return b.Poisoned(op)
	}
	columns := d.Schema()
	return b.Add(engine.Spec{
		Op:       op,
		Attrs:    []engine.Attr{{Key: "by", Value: sortText(keys)}},
		Schema:   columns,
		Inputs:   []engine.Port{rangePort(placeRanges(op, d, sort, true), keys)},
		Operator: func() engine.Operator { return &sortOperator{schema: arrowrows.Arrow(columns), keys: sort} },
	})
}

// sortKeysOf returns the keys with the indices of their columns in d. If keys is not valid, it
// records a misuse and returns false.
func sortKeysOf(op string, d *engine.Dataset, keys []SortBy) ([]batch.SortKey, bool) {
	b := builderOf(op, d)
	if !usable(d) {
		return nil, false
	}
	if len(keys) == 0 {
		b.Errorf("%s: no key is given: name at least one column", op)
		return nil, false
	}
	ok := true
	sort := make([]batch.SortKey, len(keys))
	seen := make(map[string]bool)
	for i, k := range keys {
		col, found := findColumn(op, d, k.column)
		if !found {
			ok = false
			continue
		}
		sort[i] = batch.SortKey{Column: col, Descending: k.descending, NullsFirst: k.nullsFirst}
		if seen[k.column] {
			b.Errorf("%s: key %q is named twice", op, k.column)
			ok = false
		} else if err := batch.CheckSortable(arrowrows.Arrow(d.Schema()), sort[i:i+1]); err != nil {
			b.Errorf("%s: %w", op, err)
			ok = false
		}
		seen[k.column] = true
	}
	return sort, ok
}

// sortText returns the text by which plans show keys.
func sortText(keys []SortBy) string {
	parts := make([]string, len(keys))
	for i, k := range keys {
		parts[i] = k.String()
	}
	return strings.Join(parts, ", ")
}

// sortOperator sorts each shard and drops the last column, which has the shard of each row.
type sortOperator struct {
	engine.BaseOperator
	schema *arrow.Schema
	keys   []batch.SortKey
	sorter *rowSorter
}

func (o *sortOperator) Open(c *engine.Context) error {
	o.sorter = newRowSorter(c, o.schema, o.keys)
	return nil
}

func (o *sortOperator) Process(_ *engine.Context, _, _ int, in engine.Batch, _ engine.Output) error {
	rows := arrowrows.Record(in)
	plain := firstColumns(o.schema, rows)
	defer plain.Release()
	return o.sorter.add(plain)
}

func (o *sortOperator) EndShard(_ *engine.Context, shard int, out engine.Output) error {
	return o.sorter.each(func(rows arrow.Record) error { return out.Emit(shard, arrowrows.Batch(rows)) })
}

func (o *sortOperator) Close() error {
	if o.sorter == nil {
		return nil
	}
	return o.sorter.close()
}

// firstColumns returns the first columns of a batch: as many as schema has, which is the schema
// of the result.
func firstColumns(schema *arrow.Schema, rows arrow.Record) arrow.Record {
	return array.NewRecord(schema, rows.Columns()[:schema.NumFields()], rows.NumRows())
}
