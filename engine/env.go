package engine

import (
	"fmt"

	"github.com/superstep-ml/superstep/engine/columnar"
	"github.com/superstep-ml/superstep/engine/plan"
	"github.com/superstep-ml/superstep/engine/task"
	"github.com/superstep-ml/superstep/internal/arrowrows"
)

// newEnv returns the environment of a run in this process.
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

// Collect adds rows of a Collect sink to the store. It implements task.Collector.
func (s *resultStore) Collect(node plan.NodeID, shard int, rows columnar.Batch) error {
	for _, c := range s.results {
		if c.node == node {
			return c.put(shard, arrowrows.Record(rows))
		}
	}
	return fmt.Errorf("operator %d collects rows under no name", node)
}
