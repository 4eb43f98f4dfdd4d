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

// closeOnce emits the rows of the close on subtask 0, as closeShards does on all.
func (b *body) closeOnce(c *engine.Context, out engine.Output) error {
	if err := b.verifyRows(); err != nil {
		return err
	}
	emit, release := b.queue.close.start(c)
	defer release()
	send := func(rows arrow.Record) error { return b.send(c, out, 0, rows) }
	if err := b.guard(func() error { return b.context.takeMisuse(emit(&b.context, 0, send)) }); err != nil {
		return err
	}
	return b.verifyRows()
}

// send emits rows of a shard that the close gives, some at a time where they are copied.
func (b *body) send(c *engine.Context, out engine.Output, shard int, rows arrow.Record) error {
	if !borrowed(rows) {
		return out.Emit(shard, arrowrows.Batch(rows))
	}
	for lo := int64(0); lo < rows.NumRows(); lo += int64(c.BatchRows) {
		if err := b.sendCopy(c, out, shard, rows.NewSlice(lo, min(lo+int64(c.BatchRows), rows.NumRows()))); err != nil {
			return err
		}
	}
	return nil
}

// sendCopy emits a copy of rows, which it releases.
func (b *body) sendCopy(c *engine.Context, out engine.Output, shard int, rows arrow.Record) error {
	defer rows.Release()
	own, err := batch.Concat(c.Allocator, []arrow.Record{rows})
	if err != nil {
		return err
	}
	defer own.Release()
	return out.Emit(shard, arrowrows.Batch(own))
}

// borrowed reports whether rows must be copied before others get them: they lie in files of a
// queue, which nobody verifies after its end, or in memory that the system takes back when the
// queue ends, without a reference to it.
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

// keepsMemory reports whether the buffer keeps its memory: an allocator has made it, or it is a
// slice of one that an allocator has made. Buffers around a slice of Go keep nothing.
func keepsMemory(b *memory.Buffer) bool {
	for b.Parent() != nil {
		b = b.Parent()
	}
	return b.Mutable()
}

// closeShards emits the rows of the close, shard by shard. Files are verified before, as other
// operators compute with the emitted rows, and after, as the close may read the files.
func (b *body) closeShards(c *engine.Context, out engine.Output) error {
	if err := b.verifyRows(); err != nil {
		return err
	}
	emit, release := b.queue.close.start(c)
	defer release()
	for shard := c.Range.Lo; shard < c.Range.Hi; shard++ {
		if c.Err() != nil {
			return context.Cause(c)
		}
		b.context.shard.Store(int32(shard))
		err := b.guard(func() error {
			return b.context.takeMisuse(emit(&b.context, shard, func(rows arrow.Record) error { return b.send(c, out, shard, rows) }))
		})
		if err != nil {
			return err
		}
	}
	return b.verifyRows()
}
