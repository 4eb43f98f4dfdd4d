package comqueue

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// If a run fails because of another process, its queues give the rows of their shards to the process, which
// keeps them. The next run of the process gives them back to the queues, or sends them to the process that
// has their shards then. Rows in mapped files stay there: such a file lives as long as the rows are used, and
// keeps the checksums that were computed when it was written.

// leaveRows keeps the rows of whole shards for the next run, and closes the session. It is called when all
// bodies are closed.
func (g *gang) leaveRows() error {
	owned := g.owned()
	for i := g.here.Lo; i < g.here.Hi; i++ {
		for shard := owned[i].Lo; shard < owned[i].Hi; shard++ {
			for port, frame := range g.frames(i, shard) {
				g.retain(port, shard, frame.kept())
			}
		}
	}
	return g.session.Close()
}

// frames returns the rows of a shard of all inputs, by port. It returns nil if some are not there.
func (g *gang) frames(subtask, shard int) map[int]*Frame {
	objects, frames := g.session.Subtask(subtask), make(map[int]*Frame)
	for port, input := range g.queue.inputs {
		if input.partitioned == nil {
			continue
		}
		frame, there := input.partitioned.key.Lookup(objects, shard)
		if !there {
			return nil
		}
		frames[port] = frame
	}
	return frames
}

// settle says which shards have all of their rows in files that outlive the process. A shard without rows
// needs no file.
func (b *body) settle(shards sharding.Range) {
	if b.settled == nil || len(b.rowsOnDisk) == 0 {
		return
	}
	for shard := shards.Lo; shard < shards.Hi; shard++ {
		frames := b.frames(b.subtask, shard)
		inFiles := len(frames) > 0
		for _, frame := range frames {
			inFiles = inFiles && (frame.file != nil || frame.rows == 0)
		}
		for port, frame := range frames {
			if inFiles {
				b.settled(port, shard, frame.kept())
			}
		}
	}
}

// lendRows lends the rows of shards to the run. They stay where they are until the session closes.
func (b *body) lendRows(shards sharding.Range) {
	if b.lend == nil {
		return
	}
	for shard := shards.Lo; shard < shards.Hi; shard++ {
		for port, frame := range b.frames(b.subtask, shard) {
			b.lend(port, shard, frame.kept())
		}
	}
}

// kept returns the rows of a frame for the next run, borrowed.
func (f *Frame) kept() engine.KeptRows {
	rows := engine.KeptRows{Rows: f.Batch()}
	if f.file != nil {
		rows.File, rows.Memory = f.file.region, f.file.offsets
	}
	return rows
}

// takeRows puts the rows that the process has kept of an earlier run into the session.
func (g *gang) takeRows(kept func(port, shard int) (engine.KeptRows, bool)) error {
	owned := g.owned()
	g.left = make([]bool, g.queue.b.Shards())
	for i := g.here.Lo; i < g.here.Hi; i++ {
		objects := g.session.Subtask(i)
		for shard := owned[i].Lo; shard < owned[i].Hi; shard++ {
			for port, input := range g.queue.inputs {
				if input.partitioned == nil {
					continue
				}
				rows, there := kept(port, shard)
				if !there {
					continue
				}
				frame, err := frameOfKept(rows, input, shard)
				if err != nil {
					return err
				}
				input.partitioned.key.Put(objects, shard, frame)
				g.left[shard] = true
			}
		}
	}
	return nil
}

// frameOfKept returns a frame of rows that the process has kept, and takes over the reference to them.
func frameOfKept(rows engine.KeptRows, input input, shard int) (frame *Frame, err error) {
	record := arrowrows.Record(rows.Rows)
	if rows.File == nil {
		return frameOf(record), nil
	}
	err = rows.File.Read(func() error {
		frame = frameOf(record)
		return nil
	})
	if err != nil {
		record.Release()
		return nil, fmt.Errorf("%s, kept beyond the memory budget: %w", titleOf(input), err)
	}
	frame.file = &onDisk{title: titleOf(input), shard: shard, region: rows.File, offsets: rows.Memory}
	return frame, nil
}

// openLeft takes the rows of a shard that an earlier run has left: they count in the memory budget of
// this run, which may move them to disk. Rows in files stay there.
func (b *body) openLeft(c *engine.Context, in engine.Input, reader *inputReader, port, shard int) error {
	input := b.queue.inputs[port]
	key := input.partitioned.key
	old, err := requireFrame(key.Lookup(&b.context, shard))
	if err != nil || old.rows == 0 {
		return err
	}
	reader.open(in, port, shard)
	t := &inputShard{title: titleOf(input), shard: shard, bytes: batch.Size(old.record)}
	reader.progress.bytes += t.bytes
	if old.file != nil {
		err = reader.keepFile(c, t, old)
	} else {
		err = reader.frame(c, t, input.schema(), []arrow.Record{old.record}, false)
	}
	if err != nil {
		return err
	}
	frame, err := reader.holdState(c, *input.partitioned, t)
	if err != nil {
		return err
	}
	key.Put(&b.context, shard, frame)
	old.Release()
	return nil
}

// keepFile makes the frame of rows that an earlier run has left in a file. Only what is in memory of them
// counts in the budget.
func (in *inputReader) keepFile(c *engine.Context, t *inputShard, old *Frame) error {
	if err := in.makeRoom(c, old.file.offsets); err != nil {
		return err
	}
	old.record.Retain()
	t.frame = frameOf(old.record)
	t.frame.memory, t.frame.bytes, t.frame.file = c.Memory, old.file.offsets, old.file
	prepareDiskRows(c)
	return nil
}
