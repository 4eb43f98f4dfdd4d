package comqueue

import (
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"sync"
	"syscall"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/internal/mapped"
)

// inputReader reads the rows of a subtask when the queue opens. It keeps them in memory while the
// slot's budget has room, and further rows in mapped files of the run's directory. As a queue
// reads its rows in every superstep, rows in files come from the page cache if it has room,
// otherwise from disk. Each frame accounts for its share of the budget until the session
// releases the frame, even if the shard has a new owner by then.
type inputReader struct {
	context  *ComContext
	files    *mapped.Files
	noFiles  bool          // files cannot be mapped
	state    int64         // bytes of state, which cannot go to disk
	own      int64         // bytes of the slot's memory that this inputReader keeps
	ownRows  int64         // bytes of the reader's rows in memory that could move to files
	inMemory []*inputShard // rows that may still move to disk
	later    []int         // ports that are read after the current one, except those whose rows another queue makes
	progress progress
}

// progress records how far an inputReader has read a port. It is for errors that say how much memory
// all shards need.
type progress struct {
	in            engine.Input
	port, shard   int
	bytes         int64 // bytes of the rows that were read so far, including other ports
	others, state int64 // bytes of rows, and of state, of the ports that were read before
}

// inputShard holds the rows of a shard that an inputReader has read.
type inputShard struct {
	title string
	shard int
	frame *Frame
	bytes int64 // size of the rows

	copied int64 // bytes on the heap that the rows are copied from, if the budget does not count them otherwise
}

// onDisk is a file with the rows of a shard, or with a block.
type onDisk struct {
	title  string
	shard  int // -1 if the file belongs to no shard
	region *mapped.Region

	offsets int64 // bytes in memory, of offsets
}

// rows makes the frame of a shard from its staged batches, and releases the batches. It
// reserves memory for the state that stages keep for the rows.
func (in *inputReader) rows(c *engine.Context, key PartitionedData, shard int, schema *arrow.Schema, shardRows *staged) (*Frame, error) {
	if err := shardRows.end(); err != nil {
		return nil, err
	}
	batches := shardRows.batches()
	if len(batches) == 0 {
		return newFrame(c.Allocator, schema, nil)
	}
	t := &inputShard{title: shardRows.title, shard: shard, copied: shardRows.releaseReserved()}
	for _, rows := range batches {
		t.bytes += batch.Size(rows)
	}
	in.progress.bytes += t.bytes
	if err := shardRows.guard(func() error { return in.frame(c, t, schema, batches, len(shardRows.pieces) > 0) }); err != nil {
		if t.frame != nil {
			t.frame.Release()
		}
		return nil, err
	}
	shardRows.release()
	t.copied = 0
	return in.holdState(c, key, t)
}

// holdState reserves memory for the state that stages keep for the rows of a shard, whose frame was
// made, and returns the frame.
func (in *inputReader) holdState(c *engine.Context, key PartitionedData, t *inputShard) (*Frame, error) {
	if t.frame.file == nil {
		in.inMemory = append(in.inMemory, t)
	}
	if key.state == nil {
		return t.frame, nil
	}
	owned := false
	defer func() { // the function of WithState may panic
		if !owned {
			t.frame.Release()
		}
	}()
	n, err := key.stateOf(in.context, t.frame)
	if err != nil {
		return nil, err
	}
	if err := in.makeRoom(c, n); err != nil {
		return nil, fmt.Errorf("what the queue keeps for its rows: %w", err)
	}
	t.frame.bytes += n
	owned = true
	return t.frame, nil
}

// stateOf returns the bytes of state that stages keep for the rows of a shard. If the function
// of WithState fails while the rows are in a file and the file is damaged, the damage is
// reported as the cause.
func (d PartitionedData) stateOf(ctx *ComContext, rows *Frame) (n int64, err error) {
	returned := false
	defer func() {
		if returned && err == nil || rows.file == nil {
			return
		}
		damage := rows.file.verify()
		if damage != nil && !returned {
			panic(damage) // replaces the current panic
		}
		if damage != nil {
			err = damage
		}
	}()
	n = d.state(ctx, rows)
	returned = true
	if n < 0 || n > maxState {
		err = fmt.Errorf("the function of WithState says %d bytes for the state of a shard; it must say how many bytes are kept, from 0 to %d", n, int64(maxState))
	}
	return n, err
}

const maxState = 1 << 50 // bytes of a shard's state, far more than any machine has

// frame makes the frame of borrowed batches, in memory or in a file. If the frame is in memory
// and the batches are in files, they are copied. The budget also counts the source of the copy
// meanwhile, but this does not move other rows to disk.
func (in *inputReader) frame(c *engine.Context, t *inputShard, schema *arrow.Schema, batches []arrow.Record, fromFiles bool) (err error) {
	refusal := c.Memory.Reserve(t.bytes)
	if refusal != nil {
		if err := in.toDisk(c, t, batches, refusal); !errors.Is(err, mapped.ErrUnsupported) {
			return err
		}
		if !in.keep(c, t.bytes) {
			return in.refuse(c, t.bytes, true)
		}
	} else {
		c.Memory.HoldRows(t.bytes)
	}
	giveUp := c.Memory.GiveUp
	if refusal == nil {
		giveUp = c.Memory.GiveUpRows
	}
	if fromFiles || len(batches) > 1 {
		c.Memory.Take(t.copied)
		defer c.Memory.Release(t.copied)
	}
	if fromFiles && len(batches) == 1 {
		var rows arrow.Record
		if rows, err = batch.Concat(c.RowAllocator, batches); err == nil {
			t.frame = frameOf(rows)
		}
	} else {
		t.frame, err = newFrame(c.RowAllocator, schema, batches)
	}
	if err != nil {
		giveUp(t.bytes)
		return err
	}
	t.frame.memory = c.Memory
	if refusal == nil {
		in.ownRows += t.bytes
		t.frame.rowBytes = t.bytes
	} else {
		in.own += t.bytes
		t.frame.bytes = t.bytes
	}
	return nil
}

// toDisk copies borrowed batches of a shard to a file. The copy becomes the shard's frame and
// replaces an existing frame. refusal is the error with which the budget refused to reserve
// memory for the batches. If files cannot be mapped, toDisk changes nothing and returns
// mapped.ErrUnsupported. Offsets of text and vectors stay on the heap: they are used as indices
// long before the file's checksum is verified, so a damaged offset could cause an access out of
// bounds.
func (in *inputReader) toDisk(c *engine.Context, t *inputShard, batches []arrow.Record, refusal error) error {
	if in.noFiles {
		return mapped.ErrUnsupported
	}
	var size int64
	for _, rows := range batches {
		size += batch.Size(rows)
	}
	offsets := &counted{Allocator: c.RowAllocator}
	record, region, err := t.toFile(c, in.files, size, offsets, batches)
	if errors.Is(err, mapped.ErrUnsupported) {
		in.noFiles = true
		return err
	}
	if err != nil {
		return noRoomError(c, refusal, err)
	}
	if err := in.makeRoom(c, offsets.bytes); err != nil {
		record.Release()
		return err
	}
	frame := frameOf(record)
	frame.memory, frame.bytes = c.Memory, offsets.bytes
	frame.file = &onDisk{title: t.title, shard: t.shard, region: region, offsets: offsets.bytes}
	if t.frame == nil {
		t.frame = frame
	} else { // t.frame may already be in use, so the frame is replaced in place
		frame.bytes += t.frame.bytes
		t.frame.record.Release()
		*t.frame = *frame
	}
	prepareDiskRows(c)
	return nil
}

// toFile copies batches to a file. The budget counts the source of the copy meanwhile.
func (t *inputShard) toFile(c *engine.Context, files *mapped.Files, size int64, offsets memory.Allocator, batches []arrow.Record) (arrow.Record, *mapped.Region, error) {
	c.Memory.Take(t.copied)
	defer c.Memory.Release(t.copied)
	return holdRows(files, t.title, size, offsets, batches)
}

// holdRows copies batches of about size bytes to a file of the run's directory.
func holdRows(files *mapped.Files, what string, size int64, offsets memory.Allocator, batches []arrow.Record) (arrow.Record, *mapped.Region, error) {
	const aligned = 3 * 64 // bytes that the alignment of a column's buffers may take
	make := func(mem memory.Allocator) (arrow.Record, error) { return batch.ConcatApart(mem, offsets, batches) }
	compare := func(rows arrow.Record) error { return sameRows(what, rows, batches) }
	return files.Hold(size+aligned*batches[0].NumCols(), make, compare)
}

// sameRows returns an error if rows in a file differ from the batches that they were copied
// from. The checksum does not show this: pages may have been written to disk and read back,
// damaged, before the checksum was computed.
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

// keep takes bytes of the slot's memory even if they do not fit now because other users of the
// slot have taken too much. It reports false if what the inputReader holds would exceed the
// slot's memory, or if what all queues of the slot keep would exceed twice the slot's memory.
// Rows in memory count as kept if files cannot be mapped.
func (in *inputReader) keep(c *engine.Context, bytes int64) bool {
	return bytes <= c.Memory.Limit()-in.own-in.ownRows && c.Memory.Keep(bytes, in.noFiles)
}

// makeRoom reserves bytes of the slot's memory for state, and moves rows to disk if necessary.
// There are no views of these rows yet. If no further rows can move, it calls keep, which may
// take the bytes although they do not fit.
func (in *inputReader) makeRoom(c *engine.Context, bytes int64) error {
	in.state += bytes
	for {
		refusal := c.Memory.Reserve(bytes)
		if refusal == nil {
			c.Memory.KeepReserved(bytes)
			in.own += bytes
			return nil
		}
		moved, err := in.moveLast(c, refusal)
		if err != nil {
			return err
		}
		if !moved {
			break
		}
	}
	if !in.keep(c, bytes) {
		return in.refuse(c, bytes, len(in.inMemory) > 0)
	}
	in.own += bytes
	return nil
}

// moveLast moves to disk the rows in memory that were read last. It reports false if there are
// no such rows or files cannot be mapped.
func (in *inputReader) moveLast(c *engine.Context, refusal error) (bool, error) {
	if len(in.inMemory) == 0 || in.noFiles {
		return false, nil
	}
	last := in.inMemory[len(in.inMemory)-1]
	in.inMemory = in.inMemory[:len(in.inMemory)-1] // must precede toDisk, which calls moveLast again when it makes room for offsets
	c.Memory.GiveUpRows(last.bytes)
	last.frame.rowBytes = 0
	in.ownRows -= last.bytes
	err := in.toDisk(c, last, []arrow.Record{last.frame.record}, refusal)
	if errors.Is(err, mapped.ErrUnsupported) {
		c.Memory.Take(last.bytes)
		c.Memory.HoldRows(last.bytes)
		last.frame.rowBytes = last.bytes
		in.ownRows += last.bytes
		in.inMemory = append(in.inMemory, last)
		return false, nil
	}
	return true, err
}

// open begins a shard of a port. All shards of a port are read before the next port.
func (in *inputReader) open(input engine.Input, port, shard int) {
	if in.progress.in == nil || port != in.progress.port {
		in.progress = progress{in: input, port: port, bytes: in.progress.bytes, others: in.progress.bytes, state: in.state}
	}
	in.progress.shard = shard
}

// refuse returns the error for bytes that do not fit. The error advises how much memory would
// suffice, also for the state of the port's remaining shards. If rows is true, rows stay in
// memory, so the advice includes the rows of the remaining shards and of later ports. The
// advice also includes what other queues keep now. State is assumed to grow in proportion to
// the bytes of rows. refuse reads the remaining shards to measure their bytes, as the number of
// rows does not determine them.
func (in *inputReader) refuse(c *engine.Context, bytes int64, rows bool) error {
	used := c.Memory.Used()
	read, total, ofPort := in.progress.bytes-in.progress.others, in.state, in.state-in.progress.state
	if rows {
		total, ofPort = total+in.progress.bytes, ofPort+read
	}
	if read > 0 {
		total += int64(math.Ceil(float64(ofPort) / float64(read) * float64(in.progress.rest(c))))
	}
	if rows {
		total += in.bytesOfLaterPorts(c)
	}
	others := c.Memory.Kept(in.noFiles) - in.own
	if in.noFiles {
		others -= in.ownRows
	}
	return c.Memory.Refuse(bytes, used, max(total, (total+max(others, 0))/2))
}

// bytesOfLaterPorts reads the ports in later and returns the bytes of their rows. If the run ends
// meanwhile, it returns the bytes that it has read.
func (in *inputReader) bytesOfLaterPorts(c *engine.Context) (bytes int64) {
	for _, port := range in.later {
		p := progress{in: in.progress.in, port: port, shard: c.Range.Lo - 1}
		bytes += p.rest(c)
	}
	return bytes
}

// rest reads the remaining shards and returns the bytes of their rows. If reading fails, as the
// run ends, it estimates them from the shards that were read before.
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

// prepareDiskRows prepares the current goroutine for rows in files: a fault when it reads a
// mapped file becomes a panic. At its first call in a goroutine it logs that rows are in files.
func prepareDiskRows(c *engine.Context) {
	if debug.SetPanicOnFault(true) { // so a page that cannot be read fails the subtask, not the process
		return
	}
	c.Logger.Info("the memory budget is used up: keeping rows of the queue in files", "queue", c.Node.Queue, "directory", c.SpillDir)
}

// holdings are the blocks that the stages of a subtask have computed from its rows. Like rows,
// they are in memory while the slot's budget has room, and otherwise in files.
type holdings struct {
	files     *mapped.Files
	verifying *sync.Mutex // locked while files are added or released
	reserved  int64       // bytes reserved in the slot's memory
	onDisk    []*onDisk
	free      []func()
}

// block makes a block of pieces, and calls fill to write each piece, which is zeroed before.
// The block is not changed afterwards. block also reports whether it is in a file.
func (h *holdings) block(c *engine.Context, what string, pieces []int, fill func(piece int, b []byte) error) ([]byte, bool, error) {
	n := 0
	for _, size := range pieces {
		n += size
	}
	refusal := c.Memory.Reserve(int64(n))
	if refusal == nil {
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
	b, region, err := h.files.HoldBytes(pieces, fill)
	if err != nil {
		return nil, false, noRoomError(c, refusal, err)
	}
	h.free = append(h.free, region.Release)
	h.verifying.Lock()
	h.onDisk = append(h.onDisk, &onDisk{title: what, shard: -1, region: region})
	h.verifying.Unlock()
	prepareDiskRows(c)
	return b, true, nil
}

// noRoomError returns the error to report if reserving memory has failed with refusal and writing
// to a file has failed with err.
func noRoomError(c *engine.Context, refusal, err error) error {
	var room *mapped.RoomError
	switch {
	case errors.Is(err, mapped.ErrUnsupported):
		return refusal
	case errors.Is(err, syscall.ENOMEM):
		return fmt.Errorf("keep rows beyond the memory budget in %s: %w; let the process map more memory (ulimit -v, and vm.max_map_count of Linux) or raise the memory budget", c.SpillDir, err)
	case errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("keep rows beyond the memory budget in %s: %w; free disk space, choose another spill directory or raise the memory budget", c.SpillDir, err)
	case errors.As(err, &room):
		return fmt.Errorf("keep rows beyond the memory budget in %s: %w; choose another spill directory or raise the memory budget", c.SpillDir, err)
	}
	return err
}

// close releases everything.
func (h *holdings) close(c *engine.Context) {
	if len(h.onDisk) > 0 { // other subtasks read onDisk while they verify files
		h.verifying.Lock()
		defer h.verifying.Unlock()
		h.onDisk = nil
	}
	for _, free := range h.free {
		free()
	}
	if h.reserved > 0 {
		c.Memory.GiveUp(h.reserved)
	}
	h.free, h.reserved = nil, 0
}

// counted is an allocator that adds up the requested bytes.
type counted struct {
	memory.Allocator
	bytes int64
}

// Allocate implements memory.Allocator.
func (a *counted) Allocate(n int) []byte {
	a.bytes += int64(n)
	return a.Allocator.Allocate(n)
}

// HoldBlock returns a block of bytes that is valid until the subtask leaves the queue. It is
// for data that the subtask computes from its rows once and reads in every superstep, such as
// binned features. pieces has the sizes in bytes of the pieces that the block consists of. fill
// is called for one piece after the other. It writes b, the zeroed bytes of the piece, and must
// not keep b. The block must not be changed afterwards.
//
// Like rows, a block is in memory if the budget of the subtask's slot has room. Otherwise, on
// Linux, it is in a mapped file that is verified when the queue ends, and onDisk is true. A
// piece is completely in memory while it is filled. If the block is in a file, damage is found
// only when the queue ends. So code in which a wrong value would cause an access out of bounds,
// such as assembly that uses it as an index, must check the value at each use. what names the
// block in errors. Call HoldBlock in Init.
func (c *ComContext) HoldBlock(what string, pieces []int, fill func(piece int, b []byte) error) (block []byte, onDisk bool, err error) {
	block, onDisk, err = c.blocks.block(c.task, what, pieces, fill)
	if err != nil {
		return nil, false, fmt.Errorf("queue %q: %s: %w", c.session, what, err)
	}
	return block, onDisk, nil
}
