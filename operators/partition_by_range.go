package operators

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// PartitionByRange divides the keys into one range per shard and sends every row to the shard
// of its key's range. So the keys of a shard precede the keys of later shards, and rows with
// equal keys are in one shard. Within a shard, rows keep their order; use Sort to order them
// too.
//
// The bounds of the ranges are computed from a sample of the rows, which depends on the job's
// seed. Shards get about the same number of rows, unless many rows have equal keys.
func PartitionByRange(d *engine.Dataset, keys ...SortBy) *engine.Dataset {
	const op = "PartitionByRange"
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
		Inputs:   []engine.Port{rangePort(placeRanges(op, d, sort, false), keys)},
		Operator: func() engine.Operator { return &rangeReceiver{schema: arrowrows.Arrow(columns)} },
	})
}

// rangeReceiver drops the last column, which has the shard of each row.
type rangeReceiver struct {
	engine.BaseOperator
	schema *arrow.Schema
}

func (o *rangeReceiver) Process(_ *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	plain := firstColumns(o.schema, rows)
	defer plain.Release()
	return out.Emit(shard, arrowrows.Batch(plain))
}
