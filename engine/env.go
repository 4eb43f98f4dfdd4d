package engine

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
)

// newEnv returns what the run takes from its surroundings.
func newEnv(c *config, r *prepared, w *watch) task.Env {
	env := task.Env{
		Allocator:    c.allocator,
		RowAllocator: c.rowAllocator,
		BatchRows:    c.batchRows,
		MemoryBudget: c.memory,
		SpillDir:     c.spillDir,
		Disk:         c.disk,
		Logger:       c.logger,
		Collector:    r.store,
		Advise:       r.advise,
		CheckRows:    c.checkRows,
		Turns:        c.turns,
		Regroup:      c.regroup(),
	}
	if c.observer != nil {
		env.Observer = c.observer
	}
	if w != nil {
		env.Progress = w.event
	}
	return env
}

// Collect takes the rows of a Collect sink.
func (s *resultStore) Collect(node plan.NodeID, shard int, rows arrow.Record) error {
	for _, c := range s.results {
		if c.node == node {
			return c.put(shard, rows)
		}
	}
	return fmt.Errorf("operator %d collects rows under no name", node)
}
