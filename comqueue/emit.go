package comqueue

import (
	"context"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/mapped"
	"github.com/superstep-ml/superstep/internal/offheap"
)

// closeRows emits the rows that the close function gives, either per shard or once on subtask
// 0. Files are verified before the close function runs, as other operators compute with the
// emitted rows. They are verified again afterwards, as the close function may have read them.
// No sink makes rows of a failed job visible. If another operator fails while the close
// function runs, its failure ends the run, and files are not verified again.
func (b *body) closeRows(c *engine.Context, out engine.Output) error {
	if err := b.verifyRows(); err != nil {
		return err
	}
	emit, release := b.queue.close.start(c)
	defer release()
	give := func(shard int) error {
		return b.guard(func() error {
			return b.context.takeMisuse(emit(&b.context, shard, func(rows arrow.Record) error { return send(c, out, shard, rows) }))
		})
	}
	if !b.queue.close.perShard {
		if err := give(0); err != nil {
			return err
		}
		return b.verifyRows()
	}
	for shard := c.Range.Lo; shard < c.Range.Hi; shard++ {
		if c.Err() != nil {
			return context.Cause(c)
		}
		b.context.shard.Store(int32(shard))
		if err := give(shard); err != nil {
			return err
		}
	}
	return b.verifyRows()
}

// send emits rows that the close function gives for a shard. If they must be copied, it copies
// BatchRows rows at a time.
func send(c *engine.Context, out engine.Output, shard int, rows arrow.Record) error {
	if !borrowed(rows) {
		return out.Emit(shard, arrowrows.Batch(rows))
	}
	for lo := int64(0); lo < rows.NumRows(); lo += int64(c.BatchRows) {
		if err := sendCopy(c, out, shard, rows.NewSlice(lo, min(lo+int64(c.BatchRows), rows.NumRows()))); err != nil {
			return err
		}
	}
	return nil
}

// sendCopy emits a copy of rows, and releases rows.
func sendCopy(c *engine.Context, out engine.Output, shard int, rows arrow.Record) error {
	own, err := batch.Concat(c.Allocator, []arrow.Record{rows})
	rows.Release()
	if err != nil {
		return err
	}
	defer own.Release()
	return out.Emit(shard, arrowrows.Batch(own))
}

// borrowed reports whether rows must be copied before they leave the queue. Rows in files of a
// queue must be copied because these files are not verified after the queue ends. Rows that
// hold no reference to their memory must be copied because the memory may be freed when the
// queue ends.
func borrowed(rows arrow.Record) bool {
	return slices.ContainsFunc(rows.Columns(), func(column arrow.Array) bool { return arrayBorrowed(column.Data()) })
}

func arrayBorrowed(data arrow.ArrayData) bool {
	return slices.ContainsFunc(data.Buffers(), bufferBorrowed) || slices.ContainsFunc(data.Children(), arrayBorrowed) ||
		data.DataType().ID() == arrow.DICTIONARY && arrayBorrowed(data.Dictionary())
}

func bufferBorrowed(b *memory.Buffer) bool {
	if b == nil {
		return false
	}
	return mapped.Contains(b.Bytes()) || offheap.Contains(b.Bytes()) && !keepsMemory(b)
}

// keepsMemory reports whether the buffer holds a reference to its memory: an allocator made it,
// or it is a slice of a buffer that an allocator made. A buffer that wraps a Go slice holds no
// such reference.
func keepsMemory(b *memory.Buffer) bool {
	for b.Parent() != nil {
		b = b.Parent()
	}
	return b.Mutable()
}
