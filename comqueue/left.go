package comqueue

import (
	"errors"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine"
	"github.com/superstep-ml/superstep/internal/batch"
	"github.com/superstep-ml/superstep/shared/sharding"
)

// If a run fails because of another process, its queues leave the rows of their shards in their
// sessions, and the next run of the process takes them from there instead of from the inputs. Only
// rows in memory are left, as the files of a run are removed at its end. Everything else in the
// session belongs to the failed run and is released.

// leaveRows keeps the rows of whole shards in the session, and releases the rest. It is called when
// all bodies are closed.
func (g *gang) leaveRows() error {
	owned := g.owned()
	left := make([]bool, g.queue.b.Shards())
	for i := g.here.Lo; i < g.here.Hi; i++ {
		for shard := owned[i].Lo; shard < owned[i].Hi; shard++ {
			left[shard] = g.inMemory(i, shard)
		}
	}
	if err := g.session.Regroup([]sharding.Range{{Lo: 0, Hi: len(left)}}, g.queue.isPartitioned); err != nil {
		return errors.Join(err, g.session.Close())
	}
	err := g.forgetOthers(left)
	g.retain(left)
	return err
}

// inMemory reports whether the rows of a shard of all inputs are there and in memory.
func (g *gang) inMemory(subtask, shard int) bool {
	objects, any := g.session.Subtask(subtask), false
	for _, input := range g.queue.inputs {
		if input.partitioned == nil {
			continue
		}
		if frame, there := input.partitioned.key.Lookup(objects, shard); !there || frame.file != nil {
			return false
		}
		any = true
	}
	return any
}

// forgetOthers releases the rows of the shards that are not in keep, and what the session has
// dropped. The session has one subtask.
func (g *gang) forgetOthers(keep []bool) error {
	objects := g.session.Subtask(0)
	for _, input := range g.queue.inputs {
		if input.partitioned == nil {
			continue
		}
		for shard := range keep {
			frame, there := input.partitioned.key.Lookup(objects, shard)
			if !there {
				continue
			}
			frame.memory = nil // of the run that has failed
			if !keep[shard] {
				input.partitioned.key.Remove(objects, shard)
				frame.Release()
			}
		}
	}
	return g.session.ReleaseForgotten()
}

// takeRows makes the rows that an earlier run has left available to the subtasks of the gang. Rows
// that the subtasks here do not need are released.
func (g *gang) takeRows(left []bool) error {
	owned := g.owned()
	here := sharding.Range{Lo: owned[g.here.Lo].Lo, Hi: owned[g.here.Hi-1].Hi}
	g.left = make([]bool, g.queue.b.Shards())
	for shard := range left {
		g.left[shard] = left[shard] && here.Contains(shard)
	}
	if err := g.forgetOthers(g.left); err != nil {
		return err
	}
	return g.session.Regroup(owned, g.queue.isPartitioned)
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
