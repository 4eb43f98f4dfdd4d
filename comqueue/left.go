package comqueue

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/arrowrows"
	"github.com/superstep-ml/superstep/internal/batch"
)

// If a run fails because of another process, its queues give the rows of their shards to the process, which
// keeps them. The next run of the process gives them back to the queues, or sends them to the process that
// has their shards then. Only rows in memory are kept, as the files of a run are removed at its end.

// leaveRows keeps the rows of whole shards for the next run, and closes the session. It is called when all
// bodies are closed.
func (g *gang) leaveRows() error {
	owned := g.owned()
	for i := g.here.Lo; i < g.here.Hi; i++ {
		for shard := owned[i].Lo; shard < owned[i].Hi; shard++ {
			for port, rows := range g.inMemory(i, shard) {
				g.retain(port, shard, arrowrows.Batch(rows))
			}
		}
	}
	return g.session.Close()
}

// inMemory returns the rows of a shard of all inputs, by port. It returns nil if some are not there or not in
// memory.
func (g *gang) inMemory(subtask, shard int) map[int]arrow.Record {
	objects, rows := g.session.Subtask(subtask), make(map[int]arrow.Record)
	for port, input := range g.queue.inputs {
		if input.partitioned == nil {
			continue
		}
		frame, there := input.partitioned.key.Lookup(objects, shard)
		if !there || frame.file != nil {
			return nil
		}
		rows[port] = frame.record
	}
	return rows
}

// takeRows puts the rows that the process has kept of an earlier run into the session.
func (g *gang) takeRows(kept func(port, shard int) (engine.Batch, bool)) {
	owned := g.owned()
	g.left = make([]bool, g.queue.b.Shards())
	for i := g.here.Lo; i < g.here.Hi; i++ {
		objects := g.session.Subtask(i)
		for shard := owned[i].Lo; shard < owned[i].Hi; shard++ {
			for port, input := range g.queue.inputs {
				if input.partitioned == nil {
					continue
				}
				if rows, there := kept(port, shard); there {
					input.partitioned.key.Put(objects, shard, frameOf(arrowrows.Record(rows)))
					g.left[shard] = true
				}
			}
		}
	}
}

// openLeft takes the rows of a shard that an earlier run has left: they count in the memory budget of
// this run, which may move them to disk.
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
	err = reader.frame(c, t, input.schema(), []arrow.Record{old.record}, false)
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
