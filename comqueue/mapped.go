package comqueue

import (
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/mapped"
)

// holdRows makes the frame of a shard of batches, which are borrowed: in memory while the
// slot's budget lasts, and beyond it, if they are of fixed width, in a file of the run's
// directory that is mapped. A queue
// passes over its rows again and again: what the budget does not hold, the page cache does as
// far as it goes, and the disk gives back.
func (b *body) holdRows(c *engine.Context, name string, shard int, schema *arrow.Schema, batches []arrow.Record) (*Frame, error) {
	if len(batches) == 0 {
		return newFrame(c.Allocator, schema, nil)
	}
	var size int64
	for _, rows := range batches {
		size += batch.Size(rows)
	}
	full := c.Memory.Reserve(size)
	if full == nil {
		b.reserved += size
		return newFrame(c.Allocator, schema, batches)
	}
	for _, f := range schema.Fields() {
		if !fixedWidth(f.Type) {
			return nil, full
		}
	}
	record, region, err := mapped.Hold(c.Disk, c.SpillDir, size, func(mem memory.Allocator) (arrow.Record, error) {
		return batch.Concat(mem, batches)
	})
	switch {
	case errors.Is(err, mapped.ErrUnsupported):
		return nil, full
	case err != nil:
		return nil, fmt.Errorf("keep rows beyond the memory budget in %s: %w; free disk space, choose another spill directory or raise the memory budget", c.SpillDir, err)
	}
	if len(b.onDisk) == 0 {
		debug.SetPanicOnFault(true) // of this subtask's goroutine: rows that the disk does not give back are its failure, not the process's
		c.Logger.Info("the memory budget is used up: keeping rows of the queue in files", "queue", b.queue.name, "directory", c.SpillDir)
	}
	b.onDisk = append(b.onDisk, heldRows{name, shard, region})
	return frameOf(record), nil
}

// fixedWidth reports whether values of a type are numbers of which nothing is an offset or an
// index. Files hold no others: they are verified when the queue ends, and kernels believe
// offsets and indices long before.
func fixedWidth(dt arrow.DataType) bool {
	switch dt := dt.(type) {
	case *arrow.FixedSizeListType:
		return fixedWidth(dt.Elem())
	case *arrow.Float64Type, *arrow.Float32Type, *arrow.Int64Type, *arrow.Int32Type:
		return true
	}
	return false
}

// heldRows are the rows of a shard that are in a file.
type heldRows struct {
	name   string // of the key
	shard  int
	region *mapped.Region
}

// verifyRows compares what files hold with what was put there, before anything that the
// queue made of it leaves the queue.
func (b *body) verifyRows() error {
	for _, h := range b.onDisk {
		b.context.shard.Store(int32(h.shard))
		if err := h.region.Verify(); err != nil {
			return fmt.Errorf("rows of %q, kept beyond the memory budget: %w; or a function changed rows that it was lent, which --check tells", h.name, err)
		}
	}
	b.context.shard.Store(-1)
	return nil
}
