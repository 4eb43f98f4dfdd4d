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

// closeOnce emits the rows of the close on subtask 0.
func (b *body) closeOnce(c *engine.Context, out engine.Output) error {
	emit, release := b.queue.close.start(c)
	defer release()
	back := verifiedOutput{body: b, task: c, out: out, most: max(c.Memory.Limit()/8, leastStaged)}
	defer back.release()
	give := func(rows arrow.Record) error { return b.send(c, out, 0, rows) }
	if b.holdsOnDisk() {
		give = back.add
	}
	if err := b.guard(func() error { return b.context.takeMisuse(emit(&b.context, 0, give)) }); err != nil {
		return err
	}
	if back.err != nil {
		return back.err
	}
	return back.flush()
}

// verifiedOutput are rows that may be made of data in files. They are emitted when the files have been
// verified, which is at the end, or when they take more than an eighth of the slot's memory.
type verifiedOutput struct {
	*body
	task  *engine.Context
	out   engine.Output
	most  int64 // bytes
	rows  []arrow.Record
	bytes int64
	err   error // the first one; the close may have ignored it
}

// add holds back a copy of rows, or the rows if they are not borrowed.
func (h *verifiedOutput) add(rows arrow.Record) (err error) {
	if h.err != nil {
		return h.err
	}
	defer func() { h.err = err }()
	if !borrowed(rows) {
		rows.Retain()
		return h.keep(rows)
	}
	for lo := int64(0); lo < rows.NumRows(); lo += int64(h.task.BatchRows) {
		own, err := copyRows(h.task, rows.NewSlice(lo, min(lo+int64(h.task.BatchRows), rows.NumRows())))
		if err != nil {
			return err
		}
		if err := h.keep(own); err != nil {
			return err
		}
	}
	return nil
}

// keep takes over rows.
func (h *verifiedOutput) keep(rows arrow.Record) error {
	n := batch.Size(rows)
	h.rows, h.bytes = append(h.rows, rows), h.bytes+n
	h.task.Memory.Take(n)
	if h.bytes <= h.most {
		return nil
	}
	return h.flush()
}

// flush verifies the files and emits the rows.
func (h *verifiedOutput) flush() error {
	defer h.release()
	if err := h.verifyRows(); err != nil {
		return err
	}
	for _, rows := range h.rows {
		if err := h.out.Emit(0, arrowrows.Batch(rows)); err != nil {
			return err
		}
	}
	return nil
}

func (h *verifiedOutput) release() {
	for _, rows := range h.rows {
		rows.Release()
	}
	clear(h.rows)
	h.task.Memory.Release(h.bytes)
	h.rows, h.bytes = h.rows[:0], 0
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
	own, err := copyRows(c, rows)
	if err != nil {
		return err
	}
	defer own.Release()
	return out.Emit(shard, arrowrows.Batch(own))
}

// copyRows returns a copy of rows, which it releases.
func copyRows(c *engine.Context, rows arrow.Record) (arrow.Record, error) {
	defer rows.Release()
	return batch.Concat(c.Allocator, []arrow.Record{rows})
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
