package comqueue

import (
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"syscall"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/mapped"
)

// intake takes the rows of a subtask in, as the queue opens: they are in memory while the
// slot's budget lasts, and beyond it in files of the run's directory that are mapped. A queue
// passes over its rows again and again: what the budget does not hold, the page cache does as
// far as it goes, and the disk gives back. Each frame accounts for what it takes of the budget
// until it is released, which the session does, whoever owns the shard by then.
type intake struct {
	context  *ComContext
	queue    string
	state    int64    // bytes that were asked for and cannot go to disk
	own      int64    // bytes that this intake keeps of the slot's memory
	inMemory []*taken // that may still make room
	later    []int    // ports behind the one that is read
	at       progress
}

// progress is how far an intake is with the shards of a port, for errors that say how much memory
// all of them need.
type progress struct {
	in            engine.Input
	port, shard   int
	bytes         int64 // of rows so far, those of other ports included
	others, state int64 // bytes of rows and state of other ports
}

// taken are the rows of a shard.
type taken struct {
	what  string
	shard int
	frame *Frame
	bytes int64 // of the rows

	copied int64 // bytes on the heap that the rows are being copied from and that count nowhere
}

// onDisk is what a file holds.
type onDisk struct {
	what   string
	shard  int // -1 for none
	region *mapped.Region
}

// rows makes the frame of a shard of what was staged of it, which is given up, with room for what
// stages keep for them.
func (in *intake) rows(c *engine.Context, key PartitionedData, shard int, schema *arrow.Schema, of *staged) (*Frame, error) {
	if err := of.end(); err != nil {
		return nil, err
	}
	batches := of.batches()
	if len(batches) == 0 {
		return newFrame(c.Allocator, schema, nil)
	}
	t := &taken{what: of.what, shard: shard, copied: of.uncount()}
	for _, rows := range batches {
		t.bytes += batch.Size(rows)
	}
	in.at.bytes += t.bytes
	if err := of.guard(func() error { return in.frame(c, t, schema, batches, len(of.pieces) > 0) }); err != nil {
		if t.frame != nil {
			t.frame.Release()
		}
		return nil, err
	}
	of.release()
	t.copied = 0
	if t.frame.file == nil {
		in.inMemory = append(in.inMemory, t)
	}
	if key.state == nil {
		return t.frame, nil
	}
	owned := false
	defer func() { // the function is the user's, and may panic
		if !owned {
			t.frame.Release()
		}
	}()
	n := key.state(in.context, t.frame)
	if err := in.makeRoom(c, n); err != nil {
		return nil, fmt.Errorf("what the queue keeps for its rows: %w", err)
	}
	t.frame.bytes += n
	owned = true
	return t.frame, nil
}

// frame makes the frame of batches, which are borrowed: in memory, where those that a file has
// are copied, or in a file. What they are made of counts besides while it is copied, and takes
// no room from anything.
func (in *intake) frame(c *engine.Context, t *taken, schema *arrow.Schema, batches []arrow.Record, ofFiles bool) (err error) {
	if full := c.Memory.Reserve(t.bytes); full != nil {
		if err := in.toDisk(c, t, batches, full); !errors.Is(err, mapped.ErrUnsupported) {
			return err
		}
		if !c.Memory.Keep(t.bytes) {
			return in.refuse(c, t.bytes, true)
		}
	} else {
		c.Memory.KeepReserved(t.bytes)
	}
	if ofFiles || len(batches) > 1 {
		c.Memory.Take(t.copied)
		defer c.Memory.Release(t.copied)
	}
	if ofFiles && len(batches) == 1 {
		var rows arrow.Record
		if rows, err = batch.Concat(c.RowAllocator, batches); err == nil {
			t.frame = frameOf(rows)
		}
	} else {
		t.frame, err = newFrame(c.RowAllocator, schema, batches)
	}
	if err != nil {
		c.Memory.GiveUp(t.bytes)
		return err
	}
	in.own += t.bytes
	t.frame.memory, t.frame.bytes = c.Memory, t.bytes
	return nil
}

// toDisk copies batches of a shard, which are borrowed, to a file, and makes them its frame,
// which takes the place of the one that there is. full is the error of memory that has no room.
// Where files cannot be mapped it changes nothing and returns mapped.ErrUnsupported. Offsets stay on the heap: they are believed long before the checksum is compared.
func (in *intake) toDisk(c *engine.Context, t *taken, batches []arrow.Record, full error) error {
	var size int64
	for _, rows := range batches {
		size += batch.Size(rows)
	}
	offsets := &counted{Allocator: c.RowAllocator}
	record, region, err := t.toFile(c, size, offsets, batches)
	if errors.Is(err, mapped.ErrUnsupported) {
		return err
	}
	if err != nil {
		return beyond(c, full, err)
	}
	if err := in.makeRoom(c, offsets.bytes); err != nil {
		record.Release()
		return err
	}
	frame := frameOf(record)
	frame.memory, frame.bytes = c.Memory, offsets.bytes
	frame.file = &onDisk{what: t.what, shard: t.shard, region: region}
	if t.frame == nil {
		t.frame = frame
	} else { // it is under its key already
		frame.bytes += t.frame.bytes
		t.frame.record.Release()
		*t.frame = *frame
	}
	tellOfDisk(c, in.queue)
	return nil
}

// toFile copies batches to a file. What they are made of counts meanwhile.
func (t *taken) toFile(c *engine.Context, size int64, offsets memory.Allocator, batches []arrow.Record) (arrow.Record, *mapped.Region, error) {
	c.Memory.Take(t.copied)
	defer c.Memory.Release(t.copied)
	return holdRows(c, t.what, size, offsets, batches)
}

// holdRows copies batches, of about so many bytes, to a file of the run's directory.
func holdRows(c *engine.Context, what string, size int64, offsets memory.Allocator, batches []arrow.Record) (arrow.Record, *mapped.Region, error) {
	const aligned = 3 * 64 // bytes that the buffers of a column may take besides
	make := func(mem memory.Allocator) (arrow.Record, error) { return batch.ConcatApart(mem, offsets, batches) }
	compare := func(rows arrow.Record) error { return sameRows(what, rows, batches) }
	return mapped.Hold(c.Disk, c.SpillDir, size+aligned*batches[0].NumCols(), make, compare)
}

// sameRows compares rows that a file holds with the batches that they were made of: pages may
// have gone to the disk and come back before the checksum was taken.
func sameRows(what string, record arrow.Record, batches []arrow.Record) error {
	at := int64(0)
	for _, rows := range batches {
		part := record.NewSlice(at, at+rows.NumRows())
		differ := batch.Diff(rows, part)
		part.Release()
		if differ != "" {
			return fmt.Errorf("%s, kept beyond the memory budget: the disk gives other rows back than it was given: %s", what, differ)
		}
		at += rows.NumRows()
	}
	return nil
}

// makeRoom takes bytes off the slot's memory, and has rows in memory go to disk where that has
// too few. Nobody has views of them yet. Where no rows can go any more, bytes are taken as long
// as the slot's memory could hold all that was asked for here.
func (in *intake) makeRoom(c *engine.Context, bytes int64) error {
	in.state += bytes
	for {
		full := c.Memory.Reserve(bytes)
		if full == nil {
			c.Memory.KeepReserved(bytes)
			in.own += bytes
			return nil
		}
		moved, err := in.moveLast(c, full)
		if err != nil {
			return err
		}
		if !moved {
			break
		}
	}
	if !c.Memory.Keep(bytes) {
		return in.refuse(c, bytes, len(in.inMemory) > 0)
	}
	in.own += bytes
	return nil
}

// moveLast has the last rows that are in memory go to disk, and reports whether there were any
// and files can be mapped.
func (in *intake) moveLast(c *engine.Context, full error) (bool, error) {
	if len(in.inMemory) == 0 {
		return false, nil
	}
	last := in.inMemory[len(in.inMemory)-1]
	in.inMemory = in.inMemory[:len(in.inMemory)-1] // before toDisk, which makes room for offsets
	c.Memory.GiveUp(last.bytes)
	last.frame.bytes -= last.bytes
	in.own -= last.bytes
	err := in.toDisk(c, last, []arrow.Record{last.frame.record}, full)
	if errors.Is(err, mapped.ErrUnsupported) {
		c.Memory.Take(last.bytes)
		c.Memory.KeepReserved(last.bytes)
		last.frame.bytes += last.bytes
		in.own += last.bytes
		in.inMemory = append(in.inMemory, last)
		return false, nil
	}
	return true, err
}

// open turns to a shard of a port. Ports are asked for one after the other.
func (in *intake) open(input engine.Input, port, shard int) {
	if in.at.in == nil || port != in.at.port {
		in.at = progress{in: input, port: port, bytes: in.at.bytes, others: in.at.bytes, state: in.state}
	}
	in.at.shard = shard
}

// refuse is the error of bytes that there is no room for. The memory that it advises is enough for
// what the shards of the port that are still to come keep as well, and for their rows where
// these are in memory, if they need as much for a byte of rows as those so far. They are read for
// that; rows say less, as one may stand for many.
func (in *intake) refuse(c *engine.Context, bytes int64, rows bool) error {
	read, total, ofPort := in.at.bytes-in.at.others, in.state, in.state-in.at.state
	if rows {
		total, ofPort = total+in.at.bytes, ofPort+read
	}
	if read > 0 {
		total += int64(math.Ceil(float64(ofPort) / float64(read) * float64(in.at.rest(c))))
	}
	if rows {
		total += in.ofLater(c)
	}
	total += max(c.Memory.Kept()-in.own, 0) // of other queues
	return c.Memory.Refuse(bytes, total)
}

// ofLater reads and returns the bytes of rows of ports to come: those that can be read.
func (in *intake) ofLater(c *engine.Context) (bytes int64) {
	for _, port := range in.later {
		p := progress{in: in.at.in, port: port, shard: c.Range.Lo - 1}
		bytes += p.rest(c)
	}
	return bytes
}

// rest reads on and returns the bytes of rows in shards to come: about, where the run ends before.
func (p *progress) rest(c *engine.Context) (bytes int64) {
	for shard := p.shard + 1; shard < c.Range.Hi; shard++ {
		for {
			rows, err := p.in.Next(p.port, shard)
			if err == io.EOF {
				break
			}
			if err != nil {
				if before := int64(p.shard + 1 - c.Range.Lo); before > 0 {
					bytes = max(bytes, (p.bytes-p.others)/before*int64(c.Range.Hi-p.shard-1))
				}
				return bytes
			}
			bytes += batch.Size(arrowrows.Record(rows))
			rows.Release()
		}
	}
	return bytes
}

// tellOfDisk prepares the subtask's goroutine for rows that files hold.
func tellOfDisk(c *engine.Context, queue string) {
	if debug.SetPanicOnFault(true) { // rows that the disk does not give back are the subtask's failure, not the process's
		return
	}
	c.Logger.Info("the memory budget is used up: keeping rows of the queue in files", "queue", queue, "directory", c.SpillDir)
}

// holdings are what the stages of a subtask have made of its rows: in memory while the slot's
// budget lasts, and beyond it in files, as rows are.
type holdings struct {
	queue    string
	reserved int64 // bytes taken off the slot's memory
	onDisk   []*onDisk
	free     []func()
}

// block makes pieces of zeroed bytes, which fill changes and nobody after it, and reports whether
// a file holds them.
func (h *holdings) block(c *engine.Context, what string, pieces []int, fill func(piece int, b []byte) error) ([]byte, bool, error) {
	n := 0
	for _, size := range pieces {
		n += size
	}
	full := c.Memory.Reserve(int64(n))
	if full == nil {
		c.Memory.KeepReserved(int64(n))
		h.reserved += int64(n)
		b := c.RowAllocator.Allocate(n)
		h.free = append(h.free, func() { c.RowAllocator.Free(b) })
		clear(b)
		at := 0
		for i, size := range pieces {
			if err := fill(i, b[at:at+size:at+size]); err != nil {
				return nil, false, err
			}
			at += size
		}
		return b, false, nil
	}
	b, region, err := mapped.HoldBytes(c.Disk, c.SpillDir, pieces, fill)
	if err != nil {
		return nil, false, beyond(c, full, err)
	}
	h.free = append(h.free, region.Release)
	h.onDisk = append(h.onDisk, &onDisk{what: what, shard: -1, region: region})
	tellOfDisk(c, h.queue)
	return b, true, nil
}

// beyond is the error where no file takes what memory has no room for.
func beyond(c *engine.Context, full, err error) error {
	var room *mapped.RoomError
	switch {
	case errors.Is(err, mapped.ErrUnsupported):
		return full
	case errors.Is(err, syscall.ENOMEM):
		return fmt.Errorf("keep rows beyond the memory budget in %s: %w; let the process map more memory (ulimit -v, and vm.max_map_count of Linux) or raise the memory budget", c.SpillDir, err)
	case errors.As(err, &room):
		return fmt.Errorf("keep rows beyond the memory budget in %s: %w; free disk space, choose another spill directory or raise the memory budget", c.SpillDir, err)
	}
	return err
}

// close gives everything back.
func (h *holdings) close(c *engine.Context) {
	for _, free := range h.free {
		free()
	}
	if h.reserved > 0 {
		c.Memory.GiveUp(h.reserved)
	}
	h.free, h.onDisk, h.reserved = nil, nil, 0
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

// verifyRows compares what files hold with what was put there.
func (b *body) verifyRows() error {
	if err := b.verify(b.rowsOnDisk); err != nil {
		return err
	}
	return b.verify(b.made.onDisk)
}

func (b *body) verify(all []*onDisk) error {
	for _, held := range all {
		b.context.shard.Store(int32(held.shard))
		if err := held.region.Verify(); err != nil {
			return fmt.Errorf("%s, kept beyond the memory budget: %w; or a function changed rows that it was lent, which --check tells", held.what, err)
		}
	}
	b.context.shard.Store(-1)
	return nil
}

// holdsOnDisk reports whether files hold rows of the subtask, or what it made of them.
func (b *body) holdsOnDisk() bool { return len(b.rowsOnDisk)+len(b.made.onDisk) > 0 }

// guard calls f. Where it fails while files hold rows, these are compared first: rows that the
// disk has damaged are the cause of whatever else seems wrong.
func (b *body) guard(f func() error) (err error) {
	returned := false
	defer func() {
		if returned && err == nil || !b.holdsOnDisk() || b.context.Context().Err() != nil {
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

// HoldBlock returns a block of bytes that is good as long as the subtask is in the queue: what the
// subtask has made of its rows once and reads superstep after superstep, such as features as bins.
// It is made of pieces of given sizes, one behind the other. fill fills one after the other, each
// of zeros at first, and does not keep it; afterwards the block must not be changed.
//
// Like rows, a block is held in memory within the budget of the subtask's slot, and beyond it, on
// Linux, in a file that is mapped and verified when the queue ends; onDisk says so. A piece is in
// memory whole while it is filled. What is believed without looking, such as an index into memory
// that assembly takes, is looked at each time where a file holds it. what names the block in
// errors. Init is the place to call it.
func (c *ComContext) HoldBlock(what string, pieces []int, fill func(piece int, b []byte) error) (block []byte, onDisk bool, err error) {
	block, onDisk, err = c.made.block(c.task, what, pieces, fill)
	if err != nil {
		return nil, false, fmt.Errorf("%s: %w", what, err)
	}
	return block, onDisk, nil
}
