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

// holdings are rows that a subtask holds, or what its stages have made of rows: in memory
// while the slot's budget lasts, and beyond it in files of the run's directory that are mapped.
// A queue passes over its rows again and again: what the budget does not hold, the page cache
// does as far as it goes, and the disk gives back.
type holdings struct {
	context  *ComContext
	queue    string
	reserved int64 // bytes taken off the slot's memory
	state    int64 // of these, what cannot go to disk
	inMemory []inMemory
	onDisk   []onDisk
	free     []func()
}

// inMemory are the rows of a shard that may still make room.
type inMemory struct {
	what  string
	shard int
	frame *Frame
	bytes int64
}

// onDisk is what a file holds.
type onDisk struct {
	what   string
	shard  int // -1 for none
	region *mapped.Region
}

// rows makes the frame of a shard of batches, which are borrowed, with room for what stages
// keep for them.
func (h *holdings) rows(c *engine.Context, key PartitionedData, shard int, schema *arrow.Schema, batches []arrow.Record) (*Frame, error) {
	if len(batches) == 0 {
		return newFrame(c.Allocator, schema, nil)
	}
	what := fmt.Sprintf("rows of %q", key.Name())
	var size int64
	for _, rows := range batches {
		size += batch.Size(rows)
	}
	var frame *Frame
	full := h.reserve(c, size)
	if full == nil {
		var err error
		if frame, err = newFrame(c.RowAllocator, schema, batches); err != nil {
			return nil, err
		}
		h.inMemory = append(h.inMemory, inMemory{what, shard, frame, size})
	} else {
		record, err := h.toDisk(c, what, shard, batches, full)
		if err != nil {
			return nil, err
		}
		frame = frameOf(record)
		frame.onDisk = true
	}
	if key.state != nil {
		if err := h.makeRoom(c, key.state(h.context, frame)); err != nil {
			frame.Release()
			return nil, fmt.Errorf("what the queue keeps for its rows: %w", err)
		}
	}
	return frame, nil
}

// toDisk copies batches of a shard, which are borrowed, to a file. full is the error where
// there are none. Offsets stay on the heap: they are believed long before the checksum is
// compared.
func (h *holdings) toDisk(c *engine.Context, what string, shard int, batches []arrow.Record, full error) (arrow.Record, error) {
	var size int64
	for _, rows := range batches {
		size += batch.Size(rows)
	}
	offsets := &counted{Allocator: c.RowAllocator}
	record, region, err := mapped.Hold(c.Disk, c.SpillDir, size, func(mem memory.Allocator) (arrow.Record, error) {
		return batch.ConcatApart(mem, offsets, batches)
	})
	if err != nil {
		return nil, h.beyond(c, full, err)
	}
	if err := h.makeRoom(c, offsets.bytes); err != nil {
		record.Release()
		return nil, err
	}
	h.keep(c, onDisk{what: what, shard: shard, region: region})
	return record, nil
}

// makeRoom takes bytes off the slot's memory, and has rows in memory go to disk where that has
// too few. Nobody has views of them yet. Where what others hold leaves too few still, they
// spill as they go on: bytes are taken as long as the slot's memory could hold all that was
// asked for here.
func (h *holdings) makeRoom(c *engine.Context, bytes int64) error {
	for {
		full := h.reserve(c, bytes)
		if full == nil {
			h.state += bytes
			return nil
		}
		if len(h.inMemory) == 0 {
			if h.state+bytes > c.Memory.Limit() {
				return full
			}
			c.Memory.Take(bytes)
			h.state += bytes
			h.reserved += bytes
			return nil
		}
		last := h.inMemory[len(h.inMemory)-1]
		h.inMemory = h.inMemory[:len(h.inMemory)-1]
		c.Memory.Release(last.bytes)
		h.reserved -= last.bytes
		record, err := h.toDisk(c, last.what, last.shard, []arrow.Record{last.frame.record}, full)
		if err != nil {
			return err
		}
		last.frame.Release()
		*last.frame = *frameOf(record)
		last.frame.onDisk = true
	}
}

// block makes n zeroed bytes, which fill changes and nobody after it, and reports whether a
// file holds them.
func (h *holdings) block(c *engine.Context, what string, n int, fill func(block []byte) error) ([]byte, bool, error) {
	full := h.reserve(c, int64(n))
	if full == nil {
		b := c.RowAllocator.Allocate(n)
		h.free = append(h.free, func() { c.RowAllocator.Free(b) })
		clear(b)
		return b, false, fill(b)
	}
	b, region, err := mapped.HoldBytes(c.Disk, c.SpillDir, n, fill)
	if err != nil {
		return nil, false, h.beyond(c, full, err)
	}
	h.free = append(h.free, region.Release)
	h.keep(c, onDisk{what: what, shard: -1, region: region})
	return b, true, nil
}

// reserve takes bytes off the slot's memory.
func (h *holdings) reserve(c *engine.Context, n int64) error {
	if err := c.Memory.Reserve(n); err != nil {
		return err
	}
	h.reserved += n
	return nil
}

// beyond is the error where no file takes what memory has no room for.
func (h *holdings) beyond(c *engine.Context, full, err error) error {
	var room *mapped.RoomError
	switch {
	case errors.Is(err, mapped.ErrUnsupported):
		return full
	case errors.As(err, &room):
		return fmt.Errorf("keep rows beyond the memory budget in %s: %w; free disk space, choose another spill directory or raise the memory budget", c.SpillDir, err)
	}
	return err
}

func (h *holdings) keep(c *engine.Context, held onDisk) {
	if len(h.onDisk) == 0 {
		debug.SetPanicOnFault(true) // of this subtask's goroutine: rows that the disk does not give back are its failure, not the process's
		c.Logger.Info("the memory budget is used up: keeping rows of the queue in files", "queue", h.queue, "directory", c.SpillDir)
	}
	h.onDisk = append(h.onDisk, held)
}

// close gives everything back but the frames, which are the session's.
func (h *holdings) close(c *engine.Context) {
	for _, free := range h.free {
		free()
	}
	if h.reserved > 0 {
		c.Memory.Release(h.reserved)
	}
	h.free, h.inMemory, h.onDisk, h.reserved, h.state = nil, nil, nil, 0, 0
}

// counted is an allocator that adds up what was asked of it.
type counted struct {
	memory.Allocator
	bytes int64
}

// Allocate implements memory.Allocator.
func (a *counted) Allocate(n int) []byte {
	a.bytes += int64(n)
	return a.Allocator.Allocate(n)
}

// verifyRows compares what files hold with what was put there, before anything that the
// queue made of it leaves the queue.
func (b *body) verifyRows() error {
	for _, of := range []*holdings{&b.inputs, &b.made} {
		for _, held := range of.onDisk {
			b.context.shard.Store(int32(held.shard))
			if err := held.region.Verify(); err != nil {
				return fmt.Errorf("%s, kept beyond the memory budget: %w; or a function changed rows that it was lent, which --check tells", held.what, err)
			}
		}
	}
	b.context.shard.Store(-1)
	return nil
}

// guard calls f. Where it fails while files hold rows, these are compared first: rows that the
// disk has damaged are the cause of whatever else seems wrong.
func (b *body) guard(f func() error) (err error) {
	returned := false
	defer func() {
		if returned && err == nil || len(b.inputs.onDisk)+len(b.made.onDisk) == 0 || b.context.Context().Err() != nil {
			return
		}
		shard := b.context.shard.Load()
		damage := b.verifyRows()
		if damage == nil {
			b.context.shard.Store(shard)
			return
		}
		if !returned {
			panic(damage) // in place of the one that is under way
		}
		err = damage
	}()
	err = f()
	returned = true
	return err
}

// guarded has the functions of stages go through guard.
func (b *body) guarded(stages []engine.Stage) []engine.Stage {
	for i := range stages {
		s := &stages[i]
		if run := s.Run; run != nil {
			s.Run = func() error { return b.guard(run) }
		}
		if s.Repeat != nil {
			s.Repeat.Stages = b.guarded(s.Repeat.Stages)
		}
	}
	return stages
}

// HoldBlock returns a block of n bytes that is good until the queue ends: what the subtask has
// made of its rows once and reads superstep after superstep, such as features as bins. It is
// zeroed, filled by fill, and must not be changed afterwards. Like rows, it is held in memory
// within the budget of the subtask's slot, and beyond it, on Linux, in a file that is mapped
// and verified when the queue ends; onDisk says so. What is believed without looking, such as
// an index into memory that assembly takes, is looked at each time there. what names the block
// in errors. Init is the place to call it.
func (c *ComContext) HoldBlock(what string, n int, fill func(block []byte) error) (block []byte, onDisk bool, err error) {
	block, onDisk, err = c.made.block(c.task, what, n, fill)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", what, err)
	}
	return block, onDisk, nil
}
