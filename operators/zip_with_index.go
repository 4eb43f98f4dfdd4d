package operators

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// ZipWithIndex adds a column of type int64 that numbers the rows from 0, without gaps, in the
// order of the dataset. Rows keep their shards and order.
//
// All rows are counted before the first one is numbered; meanwhile they are kept in memory or
// on disk. The counts of all shards are broadcast. The index of the first row of a shard is the
// sum of the counts of earlier shards.
func ZipWithIndex(d *engine.Dataset, name string) *engine.Dataset {
	const op = "ZipWithIndex"
	b := builderOf(op, d)
	if !usable(d) || !newColumnName(op, d, name) {
		return b.Poisoned(op)
	}
	codec, ok := outputRows[counted](op, b)
	if !ok {
		return b.Poisoned(op)
	}
	schema, _ := withField(arrowrows.Arrow(d.Schema()), arrow.Field{Name: name, Type: arrow.PrimitiveTypes.Int64})
	return b.Add(engine.Spec{
		Op:       op,
		Attrs:    []engine.Attr{{Key: "column", Value: name}},
		Schema:   arrowrows.Schema(schema),
		Inputs:   []engine.Port{{From: d, Use: keeps(d)}, {From: countShards(op, d), Side: true}},
		RowByRow: true,
		Operator: func() engine.Operator {
			return &indexer{schema: schema, counts: rowReader[counted]{codec: codec}}
		},
	})
}

// indexer is the operator behind ZipWithIndex.
type indexer struct {
	engine.BaseOperator
	schema *arrow.Schema
	counts rowReader[counted]
	starts []int64 // index of the first row of each shard
	index  rowIndex

	numbers numbers
	cols    []arrow.Array // working space
}

func (o *indexer) Open(c *engine.Context) error {
	next := int64(0)
	for _, rec := range c.Side(1) {
		if err := o.counts.reset(arrowrows.Record(rec)); err != nil {
			return err
		}
		for i := range o.counts.len() {
			row, err := o.counts.read(i)
			if err != nil {
				return err
			}
			o.starts = append(o.starts, next)
			next += row.Count
		}
	}
	if len(o.starts) != c.Shards {
		return fmt.Errorf("the rows of %d shards were counted, but there are %d", len(o.starts), c.Shards)
	}
	return nil
}

func (o *indexer) Process(c *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	first := o.starts[shard] + o.index.batch(rows.NumRows())
	made := o.numbers.column(c, first, rows.NumRows())
	defer made.Release()
	o.cols = append(append(o.cols[:0], rows.Columns()...), made)
	return emitColumns(shard, o.schema, o.cols, rows.NumRows(), out)
}

func (o *indexer) EndShard(*engine.Context, int, engine.Output) error {
	o.index.endShard()
	return nil
}
