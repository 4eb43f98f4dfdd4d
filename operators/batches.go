package operators

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// emitIndices emits the rows of a batch at the given indices, which must be in ascending order
// but may repeat. It does not copy the rows if the indices are contiguous.
func emitIndices(c *engine.Context, shard int, rows arrow.Record, indices []int32, out engine.Output) error {
	if len(indices) == 0 {
		return nil
	}
	if batch.Consecutive(indices) {
		first := int(indices[0])
		return emitSlice(shard, rows, first, first+len(indices), out)
	}
	taken, err := batch.Take(c.Allocator, rows, indices)
	if err != nil {
		return err
	}
	defer taken.Release()
	return out.Emit(shard, arrowrows.Batch(taken))
}

// emitSlice emits the rows [lo, hi) of a batch.
func emitSlice(shard int, rows arrow.Record, lo, hi int, out engine.Output) error {
	if lo >= hi {
		return nil
	}
	part, err := batch.Slice(rows, lo, hi)
	if err != nil {
		return err
	}
	defer part.Release()
	return out.Emit(shard, arrowrows.Batch(part))
}

// emitColumns emits a batch of the borrowed columns cols, whose schema is schema.
func emitColumns(shard int, schema *arrow.Schema, cols []arrow.Array, rows int64, out engine.Output) error {
	rec := array.NewRecord(schema, cols, rows)
	defer rec.Release()
	return out.Emit(shard, arrowrows.Batch(rec))
}

// withField returns the schema with f, which replaces the field of the same name or is
// appended, and the index of f.
func withField(schema *arrow.Schema, f arrow.Field) (*arrow.Schema, int) {
	fields := schema.Fields()
	at := len(fields)
	if found := schema.FieldIndices(f.Name); len(found) == 1 {
		at = found[0]
		fields[at] = f
	} else {
		fields = append(fields, f)
	}
	return arrow.NewSchema(fields, nil), at
}

// shardBuffer keeps the batches of a shard until the shard ends. It reserves their bytes in the
// slot's memory.
type shardBuffer struct {
	rows  []arrow.Record // batches of the shard; retained
	count int64
	bytes int64 // number of bytes that are reserved
}

// add retains a borrowed batch, or returns an error if the memory does not suffice.
func (h *shardBuffer) add(c *engine.Context, rows arrow.Record) error {
	n := batch.Size(rows)
	if err := c.Memory.Reserve(n); err != nil {
		return err
	}
	rows.Retain()
	h.rows = append(h.rows, rows)
	h.count += rows.NumRows()
	h.bytes += n
	return nil
}

// drop releases all batches.
func (h *shardBuffer) drop(c *engine.Context) {
	for i, r := range h.rows {
		r.Release()
		h.rows[i] = nil
	}
	if h.bytes > 0 {
		c.Memory.Release(h.bytes)
	}
	h.rows, h.count, h.bytes = h.rows[:0], 0, 0
}

// forwarder emits rows unchanged. It implements functions such as Rebalance, which only move
// rows to other shards.
type forwarder struct{ engine.BaseOperator }

func (forwarder) Process(_ *engine.Context, _, shard int, in engine.Batch, out engine.Output) error {
	rows := arrowrows.Record(in)
	return out.Emit(shard, arrowrows.Batch(rows))
}
